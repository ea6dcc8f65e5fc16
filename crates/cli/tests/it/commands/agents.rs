//! `verdone agents`.

use serde_json::{Value, json};
use verdone_testkit::Sandbox;

use crate::run_loop::world::VERDONE;

#[test]
fn agents_are_listed_with_their_level_and_whether_they_can_be_started() {
    let sandbox = Sandbox::new();
    sandbox.write(".verdone/config.toml", "[agent]\nname = \"codex\"\n");
    sandbox.repo();
    let output = sandbox.verdone(VERDONE, ["agents"]);
    output.assert_code(0);
    let line = |name: &str| output.stdout.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert!(line("claude").contains("every call"), "{}", output.transcript());
    let codex = line("codex (chosen)");
    assert!(codex.contains("writes") && codex.contains("unknown") && codex.contains("no such program"), "{codex}");
    assert!(line("command").contains("none"), "{}", output.transcript());

    let output = sandbox.verdone(VERDONE, ["agents", "--json"]);
    output.assert_code(0);
    let agents: Vec<Value> = serde_json::from_str(&output.stdout).unwrap();
    let codex = agents.iter().find(|agent| agent["name"] == "codex").unwrap();
    let level = json!({ "guard": "writes", "context": "measured", "cost": "unknown", "resume": true, "stop_hook": false });
    assert_eq!((&codex["level"], &codex["usable"], &codex["chosen"]), (&level, &json!(false), &json!(true)));
}

#[test]
fn an_agent_that_is_not_installed_is_refused_with_how_to_install_it() {
    let sandbox = Sandbox::new();
    sandbox.write("PLAN.md", crate::run_loop::world::ONE);
    sandbox.repo();
    let output = sandbox.verdone(VERDONE, ["run", "--agent", "codex"]);
    output.assert_code(2);
    assert!(output.stderr.contains("npm install -g @openai/codex@"), "{}", output.transcript());
}
