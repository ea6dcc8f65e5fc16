//! The server outside of runs, as the client of the official SDK sees it.

use serde_json::Value;
use verdone_testkit::{McpSdk, PATIENCE, Sandbox};

const VERDONE: &str = env!("CARGO_BIN_EXE_verdone");

/// How many calls the server has to survive without growing.
const CALLS: u32 = 10_000;
/// How much the server may grow over all of them: fragments of the heap, less than one answer for every five calls.
const GROWTH_KB: u64 = 2_000;

const PLAN: &str = "# Plan\n\n- [x] US-1: first\n- [ ] US-2: second\n  - Verification: `test -f second`\n";
const CONFIG: &str = "[[gate]]\nname = \"units\"\ncommand = \"echo public output; test -f good\"\n\n\
    [[gate]]\nname = \"secret\"\ncommand = \"echo HIDDEN OUTPUT; exit 1\"\nhidden = \"hidden\"\n";

struct Scene {
    sandbox: Sandbox,
    sdk: McpSdk,
}

impl Scene {
    fn new(config: &str) -> Option<Self> {
        let sdk = McpSdk::or_skip()?;
        let sandbox = Sandbox::new();
        sandbox.add_tool("node");
        std::fs::create_dir_all(sandbox.root().join("hidden")).unwrap();
        sandbox.write(
            ".verdone/config.toml",
            config.replace("hidden = \"hidden\"", &format!("hidden = \"{}\"", sandbox.root().join("hidden").display())),
        );
        sandbox.write(".verdone/guardrails.md", "- Use tabs\n- The database needs port 5433\n");
        sandbox.write("PLAN.md", PLAN);
        sandbox.repo();
        Some(Self { sandbox, sdk })
    }

    #[track_caller]
    fn run(&self, scenario: &str) -> Value {
        let client = self.sdk.client();
        let arguments = [client.to_str().unwrap(), self.sdk.folder().to_str().unwrap(), VERDONE, scenario];
        let output = self.sandbox.run("node", arguments);
        output.assert_code(0);
        serde_json::from_str(output.stdout.trim()).unwrap_or_else(|_| panic!("{}", output.transcript()))
    }
}

fn body(answer: &Value) -> &Value {
    let text: Value = serde_json::from_str(answer["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, answer["structuredContent"], "the text is the same JSON");
    &answer["structuredContent"]
}

#[test]
fn the_official_client_lists_and_calls_the_tools_of_a_project() {
    let Some(scene) = Scene::new(CONFIG) else { return };
    let seen = scene.run("look");
    assert_eq!(seen["server"]["name"], "verdone");
    let names: Vec<&str> = seen["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["next_story", "get_story", "verify", "recall", "status"], "only what works outside of a run");
    for tool in seen["tools"].as_array().unwrap() {
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{tool}");
    }
    assert_eq!(seen["resources"].as_array().unwrap().len(), 4);
    let status = body(&seen["status"]);
    assert_eq!((&status["in_run"], &status["open"], &status["stories"]), (&false.into(), &1.into(), &2.into()));
    assert_eq!(body(&seen["next"])["story"]["id"], "US-2");
    assert_eq!(body(&seen["story"])["checks"][0], "test -f second");
    assert_eq!(seen["unknownStory"]["isError"], true);
    assert_eq!(body(&seen["unknownStory"])["known"][1]["id"], "US-2");
    assert_eq!(body(&seen["recall"])["found"][0]["text"], "The database needs port 5433");
    assert!(seen["plan"].as_str().unwrap().contains("US-2: second"));
    assert!(seen["guardrails"].as_str().unwrap().contains("Use tabs"));
    let verified = body(&seen["verify"]);
    assert_eq!(verified["outcome"], "failed");
    let failing = verified["failing"].as_array().unwrap();
    assert_eq!(failing.iter().map(|check| check["name"].as_str().unwrap()).collect::<Vec<_>>(), ["units", "secret"]);
    assert!(failing[0]["output"].as_str().unwrap().contains("public output"));
    assert!(!seen.to_string().contains("HIDDEN OUTPUT") && !seen.to_string().contains("exit 1"), "{verified}");
    assert!(body(&seen["noStage"])["error"].as_str().unwrap().contains("no gate has the stage"));
}

#[test]
fn errors_say_what_to_do_and_nothing_can_be_changed_outside_of_a_run() {
    let Some(scene) = Scene::new(CONFIG) else { return };
    let before = scene.sandbox.git(["status", "--porcelain", "--ignored"]);
    let seen = scene.run("errors");
    for (name, expected) in [
        ("unknownTool", "unknown variant `push`"),
        ("unknownField", "unknown field `verbose`"),
        ("missing", "missing field `story`"),
        ("wrongType", "invalid type: integer `7`, expected a string"),
    ] {
        assert_eq!(seen[name]["isError"], true, "{name}");
        let answer = body(&seen[name]);
        assert!(answer["error"].as_str().unwrap().contains(expected), "{name}: {answer}");
        assert!(answer["what_to_do"].as_str().is_some_and(|todo| !todo.is_empty()), "{name}: {answer}");
    }
    assert!(seen["resource"].as_str().unwrap().contains("verdone://plan"), "{}", seen["resource"]);
    let mutating = seen["mutating"].as_object().unwrap();
    assert_eq!(mutating.len(), 5);
    for (tool, answer) in mutating {
        assert_eq!(answer["isError"], true, "{tool}");
        assert!(body(answer)["what_to_do"].as_str().unwrap().contains("verdone run"), "{answer}");
    }
    assert_eq!(scene.sandbox.git(["status", "--porcelain", "--ignored"]), before);
}

#[test]
fn a_cancelled_verification_ends_its_checks() {
    let config = "[[gate]]\nname = \"slow\"\ncommand = \"touch $STARTED; sleep 300\"\n";
    let Some(mut scene) = Scene::new("") else { return };
    let started = scene.sandbox.root().join("tmp/started");
    std::fs::create_dir_all(started.parent().unwrap()).unwrap();
    let folder = started.parent().unwrap().display().to_string();
    scene.sandbox.write(".verdone/config.toml", format!("{config}[workspace]\nwritable = [{folder:?}]\n"));
    scene.sandbox.set("STARTED", &started);
    let seen = scene.run("cancel");
    assert!(seen["cancelled"].as_str().unwrap().contains("not needed any more"), "{seen}");
    assert_eq!(body(&seen["after"])["in_run"], false, "the server still answers");
    scene.sandbox.assert_no_survivors(PATIENCE);
}

#[test]
fn ten_thousand_calls_do_not_make_the_server_grow() {
    let Some(mut scene) = Scene::new("") else { return };
    scene.sandbox.set("CALLS", CALLS.to_string());
    let seen = scene.run("many");
    assert_eq!((&seen["calls"], &seen["wrong"]), (&CALLS.into(), &0.into()));
    let (before, after) = (seen["before"].as_u64().unwrap(), seen["after"].as_u64().unwrap());
    assert!(after <= before + GROWTH_KB, "{before} kB before {CALLS} calls, {after} kB after");
}
