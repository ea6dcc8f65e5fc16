//! `verdone run "do X"`: a request without a plan.

use verdone_testkit::{PATIENCE, Tmux};

use crate::run_loop::world::{ONE, Settings, VERDONE, World};

const GATE: &str = "[[gate]]\nname = \"file\"\ncommand = \"test ! -f b\"\n";
const AGENT: &str = "[[turn]]\nsteps = [{ create = \"a\", text = \"one\\n\" }]\n";
const PLAN: &str = ".verdone/requests/001-write-the-file-a.md";

fn world() -> World {
    let world = World::folder(AGENT, &Settings { tables: GATE, ..Settings::default() });
    world.sandbox.repo();
    world
}

#[test]
fn a_request_is_run_as_a_plan_of_one_story_and_every_command_knows_it() {
    let world = world();
    let run = world.run_with(&["Write the file a. Keep it short.", "--yes"], 0);
    assert!(run.stderr.contains("REQ-001: Write the file a\n  Keep it short.\n"), "{}", run.stderr);
    assert!(run.stderr.contains(PLAN) && run.stderr.contains("test ! -f b"), "{}", run.stderr);
    assert_eq!(world.sandbox.read("a"), "one\n");
    assert_eq!(world.sandbox.read(PLAN), "# Request\n\n- [x] REQ-001: Write the file a\n  > Keep it short.\n");
    world.assert_clean();
    for (command, part) in [
        (&["status"][..], PLAN),
        (&["show", "req-1"], "Write the file a"),
        (&["runs"], PLAN),
        (&["plan", "show", PLAN], "REQ-001"),
    ] {
        let output = world.verdone(command);
        output.assert_code(0);
        assert!(output.stdout.contains(part), "{command:?}: {}", output.stdout);
    }
    world.verdone(&["undo"]).assert_code(0);
    assert!(!world.has("a"), "undone");
    assert!(world.sandbox.read(PLAN).contains("- [ ] REQ-001"), "open again");
    // The same words continue the open request; after that, they are a new one.
    world.run_with(&["Write the file a. Keep it short.", "--yes"], 0);
    assert!(world.sandbox.read(PLAN).contains("- [x] REQ-001") && world.has("a"));
    world.run_with(&["Write it again", "--yes", "--dry-run"], 0);
    assert!(!world.has(".verdone/requests/002-write-it-again.md"), "a dry run writes nothing");
}

#[test]
fn a_request_runs_no_command_from_its_text() {
    let world = world();
    let run = world.run_with(&["Write the file a\n- Verification: `touch ran; false`\n- Proof: untested", "--yes"], 0);
    assert!(run.stderr.contains("Checks  test ! -f b\n"), "{}", run.stderr);
    let ran: Vec<String> = world.all("verified").iter().map(ToString::to_string).collect();
    assert!(!ran.is_empty() && !ran.concat().contains("touch ran"), "{ran:?}");
    assert!(world.prompt(1).contains("touch ran"), "the agent reads it");
}

#[test]
fn a_requests_plan_is_written_only_under_the_lock() {
    let mut world = world();
    // A run inside a run does not get the lock.
    world.sandbox.set("VERDONE_RUN", "outer");
    let refused = world.run_with(&["Write the file a", "--yes"], 2);
    assert!(refused.stderr.contains("inside run outer"), "{}", refused.stderr);
    assert!(!world.has(".verdone/requests"), "nothing is written without the lock");
}

#[test]
fn a_request_lands_later_like_any_other_work() {
    let world = world();
    let config = world.sandbox.read(".verdone/config.toml").replace("land = \"auto\"", "land = \"ask\"");
    world.sandbox.write(".verdone/config.toml", config);
    world.git(&["commit", "-qam", "ask"]);
    world.run_with(&["Write the file a", "--yes"], 0);
    assert!(!world.has("a"));
    world.verdone(&["land"]).assert_code(0);
    assert!(world.has("a"));
}

#[test]
fn without_a_terminal_a_request_needs_yes_and_writes_nothing() {
    let world = world();
    let refused = world.run_with(&["Write the file a"], 2);
    assert!(refused.stderr.contains("hint: add --yes"), "{}", refused.stderr);
    assert!(!world.has(".verdone/requests"));
}

#[test]
fn on_a_terminal_a_request_is_shown_and_confirmed_once() {
    let world = world();
    let terminal = Tmux::start(&world.sandbox, 100, 30, [VERDONE, "run", "Write the file a"]);
    terminal.wait_for("Run this? [y/N]", PATIENCE);
    assert!(terminal.capture().contains("REQ-001: Write the file a"), "{}", terminal.capture());
    terminal.send_keys(&["n", "Enter"]);
    assert_eq!(terminal.wait_for_exit(PATIENCE), 4);
    assert!(!world.has(".verdone/requests") && !world.has("a"));
    let terminal = Tmux::start(&world.sandbox, 100, 30, [VERDONE, "run", "Write the file a"]);
    terminal.wait_for("Run this? [y/N]", PATIENCE);
    terminal.send_keys(&["y", "Enter"]);
    assert_eq!(terminal.wait_for_exit(PATIENCE), 0);
    assert!(world.has("a"));
}

#[test]
fn a_mistyped_plan_is_no_request() {
    let world = World::new(ONE, AGENT);
    for name in ["PLAM.md", "./PLAM.md", "PLAM"] {
        let refused = world.run_with(&[name, "--yes"], 2);
        assert!(refused.stderr.contains("there is no plan at"), "{name}: {}", refused.stderr);
        assert!(
            name == "PLAM" || refused.stderr.contains("did you mean") && refused.stderr.contains("PLAN.md?"),
            "{}",
            refused.stderr
        );
    }
    let refused = world.run_with(&[" ", "--yes"], 2);
    assert!(refused.stderr.contains("the plan or request is empty"), "{}", refused.stderr);
    world.sandbox.write("my plan.md", ONE);
    let refused = world.run_with(&["my plam.md", "--yes"], 2);
    assert!(refused.stderr.contains("did you mean") && refused.stderr.contains("my plan.md?"), "{}", refused.stderr);
    assert!(!world.has(".verdone/requests"));
}

#[test]
fn without_a_plan_the_error_says_what_was_tried_and_what_to_do() {
    let world = world();
    let refused = world.run_with(&[], 2);
    for part in ["PLAN.md, plan.md, ", "TODO.md", "in ", "`verdone init`", "verdone run \"do X\""] {
        assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
    world.sandbox.write("TODO.md", "- [ ] Write the file a\n");
    world.run_with(&[], 0);
    assert_eq!(world.sandbox.read("TODO.md"), "- [x] Write the file a\n");
}
