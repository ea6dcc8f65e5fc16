//! `verdone plan new` with the real client: it may read but not write, and whatever stops it is reported.

use serde_json::json;
use verdone_testkit::Claude;
use verdone_testkit::model_server::{ApiError, Script, Times, Turn, When};

use crate::claude::world::{ONE, PATIENCE, World};

/// The client gives up immediately.
const IMPATIENT: &str = "[agent.claude.env]\nCLAUDE_CODE_MAX_RETRIES = \"0\"\n";
/// How the planning prompt begins.
const ASKED: &str = "turning a request into a plan";

fn world(settings: &str, script: Script) -> Option<World> {
    let config = format!("[agent]\nname = \"claude\"\n{settings}");
    World::with(&[(".verdone/config.toml", &config), ("notes.txt", "look at me\n")], script)
}

fn answer() -> Turn {
    Turn::say(&format!("Here it is.\n\n<plan>\n{ONE}</plan>\n\nTell me what you think."))
}

#[test]
fn the_client_looks_around_and_its_answer_becomes_a_plan_that_waits_for_approval() {
    let look = Turn::bash("cat notes.txt && git log --oneline");
    let Some(world) = world("", Script::new().on(ASKED, [look, answer()])) else { return };
    let output = world.verdone(&["plan", "new", "make an a"]);
    output.assert_code(0);
    world.assert_scripted();
    assert_eq!(world.sandbox.read("PLAN.md"), ONE);
    assert!(output.stdout.contains("Wrote PLAN.md: 1 story, 0."), "{}", output.transcript());
    let looked = &world.model.turns()[1].tool_results()[0];
    assert!(!looked.is_error && looked.text.contains("look at me"), "{}", looked.text);
    assert!(world.model.turns()[0].prompt().contains("make an a"));
    world.sandbox.assert_no_survivors(PATIENCE);

    let refused = world.verdone(&["run"]);
    refused.assert_code(2);
    assert!(refused.stderr.contains("verdone plan approve"), "{}", refused.transcript());
}

#[test]
fn whatever_would_change_something_is_denied_while_planning_by_callbacks_and_by_processes() {
    for hooks in ["", "[agent.claude]\nhooks = \"exec\"\n"] {
        let touch = Turn::write("x", "mine\n")
            .and_call("Bash", json!({ "command": "echo mine > y", "description": "Writes" }))
            .and_call("Bash", json!({ "command": "sh -c 'touch z'", "description": "Writes" }))
            .and_call("Write", json!({ "file_path": ".claude/settings.json", "content": "{}" }));
        let Some(world) = world(hooks, Script::new().on(ASKED, [touch, answer()])) else { return };
        world.verdone(&["plan", "new", "make an a"]).assert_code(0);
        world.assert_scripted();
        let results = world.model.turns()[1].tool_results();
        assert!(results.len() == 4 && results.iter().all(|result| result.is_error), "{results:?}");
        assert!(results.iter().take(3).all(|result| result.text.contains("planning-looks-only")), "{results:?}");
        assert!(["x", "y", "z", ".claude/settings.json"].iter().all(|file| !world.has(file)));
        assert_eq!(world.sandbox.git(["status", "--porcelain", "--", ":!.verdone"]), "?? PLAN.md");
    }
}

#[test]
fn what_is_changed_beside_the_guard_while_planning_never_reaches_the_checkout() {
    let Some(mut world) = world("", Script::new().on(ASKED, [answer()])) else { return };
    // A client that ignores the rules.
    let client = world.sandbox.root().join("bin/claude");
    world.sandbox.set("REAL", std::fs::canonicalize(&client).unwrap());
    std::fs::remove_file(&client).unwrap();
    world.sandbox.add_script(
        "claude",
        "#!/bin/sh\ncase $1 in --version) ;; *) echo mine > x; echo mine > notes.txt; cat x notes.txt > ../tmp/seen ;; esac\nexec \"$REAL\" \"$@\"\n",
    );
    let output = world.verdone(&["plan", "new", "make an a"]);
    output.assert_code(0);
    let seen = std::fs::read_to_string(world.shared("seen")).unwrap();
    assert_eq!(seen, "mine\nmine\n", "it could write: {}", output.transcript());
    assert!(!world.has("x") && world.has("PLAN.md"));
    assert_eq!(world.sandbox.read("notes.txt"), "look at me\n");
}

#[test]
fn a_service_that_fails_while_planning_is_told_with_what_to_do_and_leaves_nothing() {
    let usage_limit = (ApiError::usage_limit(3600), 3, "reached a usage limit until", "after the reset");
    let overload = (ApiError::status(529), 1, "failed at the model's API", "try again later");
    let refused = (ApiError::status(401).message("invalid x-api-key"), 2, "could not log in", "/login");
    for (subscriber, (error, code, what, hint)) in [(true, usage_limit), (false, overload), (false, refused)] {
        let script = Script::new().rule(When::default(), Times::Always, error);
        let Some(mut world) = world(IMPATIENT, script) else { return };
        if subscriber {
            Claude::subscribe(&mut world.sandbox);
        }
        let output = world.verdone(&["plan", "new", "make an a"]);
        output.assert_code(code);
        assert!(output.stderr.contains(what) && output.stderr.contains(hint), "{}", output.transcript());
        assert!(!world.has("PLAN.md"));
        assert_eq!(world.sandbox.git(["status", "--porcelain"]), "");
        world.sandbox.assert_no_survivors(PATIENCE);
    }
}

#[test]
fn an_answer_of_the_client_that_is_no_plan_is_kept_and_needs_a_human() {
    let Some(world) = world("", Script::new().on(ASKED, [Turn::say("I would rather not.")])) else { return };
    let output = world.verdone(&["plan", "new", "make an a"]);
    output.assert_code(4);
    assert!(output.stderr.contains("plan-answer.md") && !world.has("PLAN.md"), "{}", output.transcript());
}
