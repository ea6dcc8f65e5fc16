//! `verdone demo --agent claude`: the demo's plan with the real client, which costs users money.

use verdone_testkit::model_server::{Script, Turn, Usage};
use verdone_testkit::{Output, Sandbox, Tmux};

use crate::claude::world::{PATIENCE, World, verdone};

/// A few dollars with any model.
const DEAR: Usage = Usage { input: 10, cache_read: 0, cache_creation: 0, output: 1_000_000 };

/// An honest agent: for each story, it reads the test and writes the command.
fn honest() -> Script {
    let largest = "m=$1; for n; do if [ \"$n\" -gt \"$m\" ]; then m=$n; fi; done; echo \"$m\"";
    let commands = [
        ("US-001", "greet", "echo \"Hello, $1!\""),
        ("US-002", "add", "s=0; for n; do s=$((s + n)); done; echo \"$s\""),
        ("US-003", "count", "echo \"$#\""),
        ("US-004", "largest", largest),
    ];
    commands.into_iter().fold(Script::new(), |script, (story, name, body)| {
        let write = Turn::write(format!("bin/{name}"), &format!("#!/bin/sh\n{body}\n"));
        let turns = [write, Turn::bash(&format!("chmod +x bin/{name} && tests/{name}")), Turn::say("It is done.")];
        script.on(&format!("# Story {story}"), turns)
    })
}

fn says(output: &Output, words: &[&str]) {
    let said = format!("{}{}", output.stdout, output.stderr);
    for word in words {
        assert!(said.contains(word), "{word}\n{}", output.transcript());
    }
}

/// Asserts that the demo left nothing behind and did not touch the user's files.
fn clean(world: &World) {
    assert_eq!(world.sandbox.git(["status", "--porcelain"]), "");
    let left: Vec<_> = std::fs::read_dir(world.sandbox.root().join("tmp"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| name.to_string_lossy().starts_with("verdone-demo"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    world.sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn the_demo_with_claude_verifies_every_story_with_the_configured_client_and_a_small_cap() {
    let config = "[agent.claude]\nbinary = \"noted-claude\"\npermission = \"bypass\"\n";
    let Some(world) = World::with(&[(".verdone/config.toml", config)], honest()) else { return };
    world.sandbox.add_script(
        "noted-claude",
        "#!/bin/sh\nown=$HOME/.claude/projects/$(pwd | sed 's/[^A-Za-z0-9]/-/g')\nmkdir -p \"$own\"\necho \"$@\" >> \"$own/started\"\n\
         exec claude \"$@\"\n",
    );
    let output = world.verdone(&["demo", "--agent", "claude", "--yes"]);
    output.assert_code(0);
    world.assert_scripted();
    says(
        &output,
        &["costs real money. It stops after spending 1.00 USD", "noted-claude", "did all 4 stories, and each is verified"],
    );
    // Files that a client keeps among its project's transcripts outlive the workspace.
    let projects = std::fs::read_dir(world.sandbox.home().join(".claude/projects")).unwrap();
    let started: String =
        projects.filter_map(|entry| std::fs::read_to_string(entry.unwrap().path().join("started")).ok()).collect();
    assert!(started.contains("--max-budget-usd 1") && !started.contains("bypass"), "{started}");
    clean(&world);
}

#[test]
fn a_demo_whose_stories_do_not_all_pass_ends_as_its_run_does_and_says_so() {
    let lie = Turn::say("It is done, trust me.");
    let script = Script::new().then(lie.clone()).then(lie.usage(DEAR));
    let Some(world) = World::new(script) else { return };
    let output = world.verdone(&["demo", "--agent", "claude", "--yes", "--max-cost", "0.5", "--keep", "kept"]);
    output.assert_code(3);
    says(
        &output,
        &["It stops after spending 0.50 USD", "0 of 4 stories are verified, for ", "It claimed once that a story was done"],
    );
    assert!(world.has("kept/PLAN.md"));
    world.sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn a_demo_with_claude_asks_first_and_starts_nothing_where_nobody_can_answer() {
    let Some(world) = World::new(honest()) else { return };
    let output = world.verdone(&["demo", "--agent", "claude", "--keep", "kept"]);
    output.assert_code(2);
    says(&output, &["costs real money", "there is no terminal to ask for confirmation", "add --yes"]);
    assert!(!world.has("kept") && world.model.turns().is_empty());
    clean(&world);
}

#[test]
fn a_demo_with_a_client_that_is_not_logged_in_ends_as_a_fault_of_the_setup() {
    let Some(mut world) = World::new(Script::new()) else { return };
    world.sandbox.set("ANTHROPIC_API_KEY", "");
    let output = world.verdone(&["demo", "--agent", "claude", "--yes"]);
    output.assert_code(2);
    says(&output, &["does not seem to be logged in", "could not log in", "/login", "0 of 4 stories are verified"]);
    clean(&world);
}

#[test]
fn a_demo_without_the_client_is_refused_before_anything_is_asked() {
    let sandbox = Sandbox::new();
    let output = sandbox.verdone(verdone(), ["demo", "--agent", "claude"]);
    output.assert_code(2);
    says(&output, &["claude: no such program", "install Claude Code, or set agent.claude.binary"]);
    assert!(!output.stdout.contains("money"), "{}", output.transcript());
}

#[test]
fn a_demo_with_claude_that_is_declined_on_a_terminal_starts_nothing() {
    let sandbox = Sandbox::new();
    sandbox.add_script("claude", "#!/bin/sh\necho \"$@\" >> \"$HOME/started\"\necho '2.1.325 (Claude Code)'\n");
    let terminal = Tmux::start(&sandbox, 100, 24, [verdone(), "demo", "--agent", "claude", "--max-cost", "2.5"]);
    let screen = terminal.wait_for("Start it? [y/N]", PATIENCE);
    assert!(screen.contains("costs real money. It stops after spending 2.50 USD"), "{screen}");
    terminal.send_keys(&["n", "Enter"]);
    assert_eq!(terminal.wait_for_exit(PATIENCE), 4);
    assert!(terminal.capture().contains("Nothing was started."), "{}", terminal.capture());
    assert_eq!(std::fs::read_to_string(sandbox.home().join("started")).unwrap(), "--version\n");
}
