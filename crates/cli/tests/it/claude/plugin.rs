//! The plugin with the real client: validated, installed from the repository's marketplace, and at work in sessions.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use verdone_testkit::Tmux;
use verdone_testkit::model_server::{Kind, Request, Script, Times, Turn, When};

use crate::claude::world::{PATIENCE, Told, World, verdone};

const GATE: &str = "[[gate]]\nname = \"parts\"\ncommand = \"! grep -rn BROKEN parts\"\n";
const SKILLS: [&str; 3] = ["verdone:keep-going", "verdone:orchestrate", "verdone:plan"];

fn repository_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A project of a user who installed the plugin, and nothing with `verdone install`.
fn world(settings: &str, files: &[(&str, &str)], script: Script) -> Option<World> {
    let settings = format!("{settings}{GATE}");
    let files = [&[(".verdone/config.toml", settings.as_str()), ("parts/README", "Parts.\n")], files].concat();
    let mut world = World::with(&files, script)?;
    world.sandbox.add_program("verdone", verdone().as_ref());
    // The client's newest models have no task list.
    world.sandbox.set("ANTHROPIC_MODEL", "claude-sonnet-4-5");
    let marketplace = repository_root();
    client(&world, &["plugin", "marketplace", "add", &marketplace.to_string_lossy()]);
    client(&world, &["plugin", "install", "verdone@verdone"]);
    Some(world)
}

#[track_caller]
fn client(world: &World, arguments: &[&str]) -> String {
    let output = world.sandbox.run("claude", arguments);
    output.assert_code(0);
    output.stdout
}

/// A session started by the user: its command line names neither Verdone nor the plugin.
fn session(world: &World, prompt: &str, more: &[&str]) -> Told {
    let lines = ["--output-format", "stream-json", "--verbose", "--include-hook-events", "--permission-mode", "acceptEdits"];
    let told = Told { output: world.sandbox.run("claude", lines.iter().chain(more).chain(&["-p", prompt])) };
    told.output.assert_code(0);
    world.assert_scripted();
    told
}

fn results(world: &World) -> Vec<String> {
    world.model.turns().iter().flat_map(Request::tool_results).map(|result| result.text).collect()
}

#[track_caller]
fn has(results: &[String], part: &str) {
    assert!(results.iter().any(|text| text.contains(part)), "no {part:?} in {results:#?}");
}

#[test]
fn the_client_finds_no_fault_in_the_plugin_or_the_marketplace() {
    let Some(world) = World::new(Script::new()) else { return };
    for folder in [repository_root().join("plugin"), repository_root()] {
        let output = world.sandbox.run("claude", ["plugin", "validate", "--strict", &folder.to_string_lossy()]);
        output.assert_code(0);
        assert!(output.stdout.contains("Validation passed"), "{}", output.transcript());
    }
}

#[test]
fn a_session_has_the_skills_and_the_hooks_and_a_push_is_denied() {
    let script = Script::new().on("Publish", [Turn::bash("git push origin main"), Turn::say("I was not allowed to.")]);
    let Some(world) = world("", &[], script) else { return };
    let told = session(&world, "Publish it", &["--allowedTools", "Bash"]);
    let init = &told.events_of("system", "init")[0];
    for skill in SKILLS {
        assert!(init["slash_commands"].as_array().unwrap().contains(&skill.into()), "no {skill} in {init:#}");
    }
    assert!(init["plugins"].to_string().contains("verdone@verdone") && init["plugin_errors"].is_null(), "{init:#}");
    told.assert_hooks_were_understood();
    let denied = &world.model.turns()[1].tool_results()[0];
    assert!(denied.is_error && denied.text.contains("git-push"), "{denied:?}");
    let recorded: Vec<Value> = world.hook_records().into_iter().map(|record| record["event"].clone()).collect();
    assert_eq!((recorded.first(), recorded.last()), (Some(&json!("SessionStart")), Some(&json!("SessionEnd"))), "{recorded:?}");
}

#[test]
fn keep_going_holds_the_session_and_its_tasks_until_the_work_is_verified() {
    let task = json!({ "subject": "Write it", "description": "The part", "activeForm": "Writing" });
    let complete = || Turn::call("TaskUpdate", json!({ "taskId": "1", "status": "completed" }));
    let script = Script::new()
        .then(Turn::bash("verdone loop start 'Write the part'"))
        .then(Turn::call("TaskCreate", task))
        .then(Turn::write("parts/a.rs", "// TODO: all of it\nfn a() { BROKEN }\n"))
        .then(complete())
        .then(Turn::say("Done."))
        .then(Turn::write("parts/a.rs", "fn a() { BROKEN }\n"))
        .then(complete())
        .then(Turn::say("Now it is done."))
        .then(Turn::write("parts/a.rs", "fn a() {}\n"))
        .then(Turn::say("Fixed."));
    let Some(world) = world("", &[], script) else { return };
    // The skill itself allows `verdone`: no option does.
    let told = session(&world, "/verdone:keep-going Write the part", &[]);
    let turns = world.model.turns();
    let skill = turns[0].prompts().concat();
    assert!(skill.contains("The task: Write the part") && skill.contains("Only Verdone's checks end the loop"), "{skill}");
    let results = results(&world);
    has(&results, "A loop holds the session");
    // TaskCompleted blocks from a plugin's hook by exit code 2.
    has(&results, "TaskCompleted hook feedback");
    has(&results, "parts/a.rs:1 note to self");
    assert!(turns[5].prompt().contains("- Write it"), "{}", turns[5].prompt());
    assert!(turns[8].prompt().contains("parts/a.rs:1:fn a() { BROKEN }"), "{}", turns[8].prompt());
    assert_eq!(told.result()["result"], "Fixed.");
    let stops: Value = serde_json::from_str(&world.verdone(&["log", "--stops", "--json"]).stdout).unwrap();
    let decided: Vec<&Value> = stops["stops"].as_array().unwrap().iter().map(|stop| &stop["stop"]["decision"]).collect();
    // The task, the Stop, the task again, and two more Stops: each is answered once.
    assert_eq!(decided, ["block", "block", "yield", "block", "yield"], "{stops:#}");
}

#[test]
fn orchestrate_leaves_its_phase_in_the_state_file_at_the_end_of_each_phase() {
    const SETTINGS: &str = "[done]\nprofile = \"orchestrator\"\nralph_state = \"always\"\n";
    const MORE_GATES: &str = "[[gate]]\nname = \"lint\"\nstage = \"quality\"\ncommand = \"true\"\n\
                              [[gate]]\nname = \"attack\"\nstage = \"adversarial\"\ncommand = \"true\"\n";
    let plan = "- [ ] US-001: Write a part\n  - Verification: `test -f parts/a`\n";
    let phase = |command: &str| Turn::bash(&format!("{command}; cat ~/.ralph/state/*/orchestrator.json"));
    let script = Script::new()
        .then(phase("verdone log; verdone show; verdone done"))
        .then(phase("verdone claim task_classified --complexity 3 --note 'one file'"))
        .then(Turn::write("parts/a", "good\n"))
        .then(phase("git add parts && git commit --quiet --message 'a part'; verdone done"))
        .then(phase("verdone verify US-001; verdone done"))
        .then(phase("verdone claim retrospective_done --note 'parts are easy'"))
        .then(Turn::say("All of it is done."));
    let files = [("PLAN.md", plan), (".verdone/guardrails.md", "- Parts are small.\n")];
    let Some(world) = world(&format!("{SETTINGS}{MORE_GATES}"), &files, script) else { return };
    world.verdone(&["plan", "approve", "--yes", "PLAN.md"]).assert_code(0);
    session(&world, "/verdone:orchestrate Write a part", &["--allowedTools", "Bash"]);
    let state = |text: &String| {
        let from = text.rfind("\n{\n")?;
        serde_json::Deserializer::from_str(&text[from..]).into_iter::<Value>().next()?.ok()
    };
    let states: Vec<Value> = results(&world).iter().filter_map(state).collect();
    let phases: Vec<&Value> = states.iter().map(|state| &state["phase"]).collect();
    assert_eq!(phases, ["planning", "implementation", "quality", "learning", "complete"], "{:#?}", results(&world));
    let last = states.last().unwrap();
    assert_eq!((&last["verified_done"], &last["task"]), (&json!(true), &json!("Write a part")), "{last:#}");
    assert!(last["conditions"].as_object().unwrap().values().all(|met| *met == true), "{last:#}");
}

/// The client has teammates only in a terminal.
#[test]
fn a_teammate_in_a_real_terminal_is_sent_back_by_the_plugins_hook() {
    let teammate = json!({ "description": "Helps", "prompt": "Do the part", "subagent_type": "general-purpose", "name": "bob" });
    let inner = |turn: Turn| (When::kind(Kind::Subagent), Times::Once, turn);
    let mut script = Script::new().on("Delegate", [Turn::call("Agent", teammate), Turn::say("Bob is at work.")]);
    for (when, times, turn) in [
        inner(Turn::write("parts/a.ts", "console.log(1)\n")),
        inner(Turn::say("The part is done.")),
        inner(Turn::write("parts/a.ts", "export const a = 1\n")),
        inner(Turn::say("Now it is clean.")),
    ] {
        script = script.rule(when, times, turn);
    }
    let Some(mut world) = world("[stop]\nteam_gates = \"always\"\n", &[], script.otherwise(Turn::say("Noted."))) else { return };
    world.sandbox.set("CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS", "1");
    // In a terminal, the client would look for its vendor's plugins on the network.
    world.sandbox.set("CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL", "1");
    let client = world.sandbox.root().join("bin/claude").display().to_string();
    let mode = ["--teammate-mode", "in-process", "--permission-mode", "acceptEdits", "Delegate it"];
    let terminal = Tmux::start(&world.sandbox, 120, 40, [client.as_str()].iter().chain(&mode));
    let has = |requests: &[Request], text: &str| requests.iter().any(|request| request.contains(text));
    world.model.wait_for("the hook's feedback", PATIENCE, |requests| has(requests, "TeammateIdle hook feedback"));
    world.model.wait_for("the part of the feedback", PATIENCE, |requests| has(requests, "parts/a.ts:1 debug output"));
    terminal.wait_for("Now it is clean.", PATIENCE);
    assert_eq!(world.sandbox.read("parts/a.ts"), "export const a = 1\n");
}

#[test]
fn doctor_finds_hooks_that_are_installed_twice_in_the_clients_real_files() {
    let Some(world) = world("", &[], Script::new()) else { return };
    let findings = || {
        let output = world.verdone(&["doctor"]);
        let lines: Vec<&str> = output.stdout.lines().skip_while(|line| !line.contains(" hooks ")).collect();
        lines.join("\n")
    };
    let plugin = "plugin verdone@verdone: working, but Claude Code lets a turn end after 8 blocks in a row";
    let found = findings();
    assert!(found.contains(plugin) && found.contains("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP") && !found.contains("twice"), "{found}");
    world.verdone(&["install", "--yes"]).assert_code(0);
    let found = findings();
    assert!(found.contains("plugin verdone@verdone: working\n"), "install sets the limit: {found}");
    let twice = "warning  hooks      installed twice: by the plugin verdone@verdone and in .claude/settings.local.json";
    assert!(found.contains(twice) && found.contains("hint: verdone uninstall --local"), "{found}");
    client(&world, &["plugin", "disable", "verdone@verdone"]);
    let found = findings();
    assert!(!found.contains("plugin") && found.contains(".claude/settings.local.json: 19 events, working"), "{found}");
    client(&world, &["plugin", "enable", "verdone@verdone"]);
    world.verdone(&["uninstall", "--yes"]).assert_code(0);
    assert!(findings().contains(plugin), "{}", findings());
    fs::remove_file(world.sandbox.root().join("bin/verdone")).unwrap();
    assert!(findings().contains("plugin verdone@verdone: verdone is not in PATH, so its hooks fail"), "{}", findings());
    client(&world, &["plugin", "uninstall", "verdone@verdone"]);
    assert_eq!(findings(), "");
}
