//! The Stop gate with the real client: sessions that Verdone did not start, with the hooks of `verdone install`.

use serde_json::{Value, json};
use verdone_testkit::model_server::{Script, Turn};

use crate::claude::world::{Told, World, verdone};

const GATE: &str = "[[gate]]\nname = \"parts\"\ncommand = \"! grep -rn BROKEN parts\"\n";

fn features() -> String {
    let list: Vec<Value> = (1..=5)
        .map(|n| json!({ "id": format!("F{n}"), "description": format!("Part {n}"), "steps": [format!("Write parts/{n}")], "passes": false }))
        .collect();
    serde_json::to_string_pretty(&json!({ "features": list })).unwrap()
}

fn world(script: Script) -> Option<World> {
    let files = [(".verdone/config.toml", GATE), ("parts/README", "Parts.\n"), ("feature_list.json", &features())];
    let world = World::with(&files, script)?;
    world.verdone(&["install", "--yes"]).assert_code(0);
    Some(world)
}

/// A session started by the user: its command line has none of our options.
fn session(world: &World, prompt: &str) -> Told {
    let lines = ["--output-format", "stream-json", "--verbose", "--include-hook-events"];
    let mode = ["--permission-mode", "acceptEdits", "--allowedTools", "Bash", "-p", prompt];
    let told = Told { output: world.sandbox.run("claude", lines.iter().chain(&mode)) };
    told.output.assert_code(0);
    told
}

fn decisions(world: &World) -> Vec<(String, String)> {
    let output = world.verdone(&["log", "--stops", "--json"]);
    output.assert_code(0);
    let log: Value = serde_json::from_str(&output.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    log["stops"].as_array().unwrap().iter().map(|stop| (text(&stop["stop"]["decision"]), text(&stop["stop"]["cause"]))).collect()
}

/// An attempt at a part, and the end of the turn.
fn writes(script: Script, part: usize, text: &str) -> Script {
    script.then(Turn::write(format!("parts/{part}"), text)).then(Turn::say("Done."))
}

#[test]
fn a_session_over_five_features_is_held_through_twelve_blocks_and_released_when_green() {
    let mut script = Script::new().then(Turn::say("All five features are done."));
    for part in 1..=5 {
        script = writes(script, part, "BROKEN\n");
        if part <= 2 {
            script = writes(script, part, "BROKEN again\n");
        }
        script = writes(script, part, "good\n");
    }
    let Some(world) = world(script) else { return };
    world.verdone(&["loop", "start", "Build the parts", "--plan", "feature_list.json"]).assert_code(0);
    let told = session(&world, "Build the parts, please");
    world.assert_scripted();
    told.assert_hooks_were_understood();
    let decisions = decisions(&world);
    let blocks = decisions.iter().filter(|(decision, _)| decision == "block").count();
    assert_eq!((blocks, decisions.last().unwrap()), (12, &("yield".to_owned(), "complete".to_owned())), "{decisions:?}");
    assert_eq!(world.sandbox.read("feature_list.json").matches("\"passes\": true").count(), 5);
    assert_eq!(told.result()["result"], "Done.");
    let feedback = world.model.turns()[3].prompt();
    assert!(feedback.contains("THE STORY (F1): Part 1") && feedback.contains("parts/1:1:BROKEN"), "{feedback}");
}

#[test]
fn a_session_where_nothing_changes_is_released_with_a_reason_and_a_second_one_is_never_captured() {
    let script =
        ["Done.", "Really done.", "I told you.", "I am another."].into_iter().map(Turn::say).fold(Script::new(), Script::then);
    let Some(world) = world(script) else { return };
    world.verdone(&["loop", "start", "--plan", "feature_list.json"]).assert_code(0);
    let told = session(&world, "Build the parts, please");
    told.assert_hooks_were_understood();
    assert_eq!((world.model.turns().len(), &told.result()["result"]), (3, &json!("I told you.")), "{}", world.model.overview());
    assert!(told.output.stdout.contains("nothing has changed in 3 turns in a row"), "{}", told.output.transcript());
    let told = session(&world, "What is this?");
    world.assert_scripted();
    assert_eq!(told.result()["result"], "I am another.");
    let expected = ["nothing_changed", "nothing_changed", "same", "foreign"];
    assert_eq!(decisions(&world).iter().map(|(_, cause)| cause.as_str()).collect::<Vec<_>>(), expected);
    let status: Value = serde_json::from_str(&world.verdone(&["loop", "status", "--json"]).stdout).unwrap();
    assert_eq!((&status["loops"][0]["status"], &status["incomplete"]["story"]), (&json!("active"), &json!("F1")));
}

#[test]
fn an_agent_that_starts_a_loop_arms_its_own_session_and_its_tasks_are_held_too() {
    let start = format!("'{}' loop start 'Write the part'", verdone());
    let end = format!("'{}' loop stop", verdone());
    let task = json!({ "subject": "Write it", "description": "The part", "activeForm": "Writing" });
    let complete = || Turn::call("TaskUpdate", json!({ "taskId": "1", "status": "completed" }));
    let script = Script::new()
        .then(Turn::bash(&start))
        .then(Turn::call("TaskCreate", task))
        .then(Turn::write("parts/a.rs", "// TODO: all of it\n"))
        .then(complete())
        .then(Turn::bash(&end))
        .then(Turn::say("Done."))
        .then(Turn::write("parts/a.rs", "fn a() {}\n"))
        .then(complete())
        .then(Turn::say("Now it is done."));
    let Some(mut world) = world(script) else { return };
    // The client's newest models have no task list.
    world.sandbox.set("ANTHROPIC_MODEL", "claude-sonnet-4-5");
    session(&world, "Write the part in a loop");
    world.assert_scripted();
    let turns = world.model.turns();
    let results: Vec<String> =
        turns.iter().flat_map(verdone_testkit::model_server::Request::tool_results).map(|result| result.text).collect();
    let has = |part: &str| assert!(results.iter().any(|text| text.contains(part)), "no {part:?} in {results:#?}");
    has("A loop holds the session");
    has("parts/a.rs:1 note to self");
    has("verdone-itself");
    assert!(turns[6].prompt().contains("- Write it"), "{}", turns[6].prompt());
    assert_eq!(decisions(&world).last().unwrap().1, "complete", "{:?}", decisions(&world));
}
