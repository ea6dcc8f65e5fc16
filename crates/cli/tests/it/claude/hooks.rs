//! `verdone hook` as the permission system of the real client.

use std::path::Path;

use serde_json::{Value, json};
use verdone_testkit::model_server::{Kind, Script, Times, Turn, Usage, When};

use crate::claude::world::{EVENTS, World};

fn write_a(then: &str) -> Script {
    Script::new().on("Write a", [Turn::write("a.txt", "one\n"), Turn::say(then)])
}

#[test]
fn a_file_is_written_in_the_normal_permission_mode_because_our_hook_allows_it() {
    let usage = Usage { input: 100, cache_read: 2000, cache_creation: 300, output: 40 };
    let script =
        Script::new().on("Write a", [Turn::write("a.txt", "one\n").usage(usage), Turn::say("It is there.").usage(usage)]);
    let Some(world) = World::new(script) else { return };
    let told = world.prompt(&World::hooks(), "Write a, please");
    told.output.assert_code(0);
    world.assert_scripted();
    told.assert_hooks_were_understood();
    assert_eq!(world.sandbox.read("a.txt"), "one\n");
    let result = told.result();
    assert_eq!((&result["result"], &result["permission_denials"]), (&json!("It is there."), &json!([])));
    assert_eq!(result["usage"]["cache_read_input_tokens"], 4000, "the script's numbers reach the client's accounts");
    let given = &world.model.turns()[1].tool_results()[0];
    assert!(!given.is_error, "{given:?}");
}

#[test]
fn nothing_is_written_when_the_hooks_program_is_missing() {
    let Some(world) = World::new(write_a("I could not.")) else { return };
    let gone = world.sandbox.root().join("gone/verdone");
    let told = world.prompt(&World::hooks_of(&["PreToolUse"], &gone), "Write a, please");
    world.assert_scripted();
    assert!(!world.has("a.txt"), "{}", told.output.transcript());
    let given = &world.model.turns()[1].tool_results()[0];
    assert!(given.is_error, "{given:?}");

    // If the prompt's hook is missing, too, the model is not even asked.
    world.prompt(&World::hooks_of(EVENTS, &gone), "Write a, please");
    assert_eq!(world.model.turns().len(), 2, "{}", world.model.overview());
}

#[test]
fn nothing_is_written_when_there_is_no_hook_at_all() {
    let Some(world) = World::new(write_a("I could not.")) else { return };
    let told = world.prompt("{}", "Write a, please");
    assert!(!world.has("a.txt"));
    assert_eq!(told.result()["permission_denials"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_push_is_denied_and_the_model_is_told_why() {
    let pushes =
        Turn::bash("git push origin main").and_call("Bash", json!({ "command": "cd . && sh -c 'git push origin HEAD:x'" }));
    let script = Script::new().on("Publish", [pushes, Turn::say("I was not allowed to.")]);
    let Some(world) = World::new(script) else { return };
    let remote = world.sandbox.root().join("remote.git");
    world.sandbox.git([Path::new("init"), "--quiet".as_ref(), "--bare".as_ref(), &remote]);
    world.sandbox.git([Path::new("remote"), "add".as_ref(), "origin".as_ref(), &remote]);
    let told = world.prompt(&World::hooks(), "Publish it");
    told.output.assert_code(0);
    world.assert_scripted();
    told.assert_hooks_were_understood();
    let given = world.model.turns()[1].tool_results();
    assert_eq!(given.len(), 2);
    for result in given {
        assert!(result.is_error && result.text.contains("git-push"), "{result:?}");
    }
    assert_eq!(world.sandbox.git(["ls-remote", "origin"]), "");
    assert_eq!(told.result()["permission_denials"].as_array().map(Vec::len), Some(2));
}

#[test]
fn the_client_understands_the_answer_of_every_hook_from_start_to_end() {
    let script = Script::new().on(
        "Look",
        [
            Turn::bash("cat README.md").and_call("Bash", json!({ "command": "false", "description": "Fails" })),
            Turn::say("I looked."),
        ],
    );
    let Some(world) = World::new(script) else { return };
    let told = world.prompt(&World::hooks(), "Look around");
    told.output.assert_code(0);
    world.assert_scripted();
    told.assert_hooks_were_understood();
    let answered: Vec<Value> =
        told.events_of("system", "hook_response").into_iter().map(|event| event["hook_event"].clone()).collect();
    for event in ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch", "Stop"]
    {
        assert!(answered.contains(&event.into()), "no {event} among {answered:?}");
    }
    // The stream ends before SessionEnd, but the hook has recorded it.
    let recorded: Vec<Value> = world.hook_records().into_iter().map(|record| record["event"].clone()).collect();
    assert_eq!((recorded.first(), recorded.last()), (Some(&json!("SessionStart")), Some(&json!("SessionEnd"))), "{recorded:?}");
}

/// Shows that the test above can fail.
#[test]
fn an_answer_that_the_client_cannot_use_is_noticed() {
    let script = Script::new().on("Look", [Turn::bash("cat README.md"), Turn::say("I looked.")]);
    let Some(world) = World::new(script) else { return };
    let wrong = world.sandbox.add_script("wrong", "#!/bin/sh\necho '{\"decision\":\"allow\"}'\n");
    let told = world.prompt(&World::hooks_of(&["PreToolUse"], &wrong), "Look around");
    let noticed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| told.assert_hooks_were_understood()));
    assert!(noticed.is_err(), "{}", told.output.transcript());
}

#[test]
fn a_subagent_is_held_to_the_same_rules_and_told_apart_by_the_model_server() {
    let agent = json!({ "description": "Helps", "prompt": "Do the part", "subagent_type": "general-purpose", "run_in_background": false });
    let script = Script::new()
        .on("Delegate", [Turn::call("Agent", agent), Turn::say("It is done.")])
        .rule(
            When::kind(Kind::Subagent),
            Times::Once,
            Turn::write("part.txt", "p\n").and_call("Bash", json!({ "command": "git push" })),
        )
        .rule(When::kind(Kind::Subagent), Times::Once, Turn::say("The part is done."));
    let Some(world) = World::new(script) else { return };
    let told = world.prompt(&World::hooks(), "Delegate it");
    told.output.assert_code(0);
    world.assert_scripted();
    told.assert_hooks_were_understood();
    assert_eq!(world.sandbox.read("part.txt"), "p\n");
    let inner = world.model.requests_of(Kind::Subagent);
    assert_eq!((inner.len(), world.model.turns().len()), (2, 2), "{}", world.model.overview());
    assert!(inner[0].prompt().contains("Do the part"));
    let errors: Vec<bool> = inner[1].tool_results().iter().map(|result| result.is_error).collect();
    assert_eq!(errors, [false, true]);
}
