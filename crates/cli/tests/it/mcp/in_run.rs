//! The tools in a run with an agent that is only a script: with views, and where the kernel has none.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::run_loop::world::{ONE, Settings, VERDONE, World, always};

/// Speaks MCP by hand: says hello, makes one call and waits for its answer.
fn call(shared: &Path, tool: &str, arguments: &Value) -> String {
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "script", "version": "1" } } });
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": tool, "arguments": arguments } });
    format!(
        "#!/bin/sh\nout={}/answer-$1\n: > $out\n{{\n  cat <<'END'\n{hello}\n{ready}\n{call}\nEND\n  \
         until grep -q '\"id\":2' $out; do sleep 0.05; done\n}} | {VERDONE} mcp > $out\n",
        shared.display()
    )
}

fn answer(world: &World, name: &str) -> Value {
    let text = fs::read_to_string(world.sandbox.root().join("tmp").join(format!("answer-{name}"))).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.into_iter().find(|line| line["id"] == 2).unwrap()["result"]["structuredContent"].clone()
}

#[test]
fn a_scripted_agent_reaches_the_run_with_views_and_without() {
    for without_views in [false, true] {
        let mut world = World::new(ONE, "");
        // Without views, the shared folder is not next to the workspace.
        let shared = world.sandbox.root().join("tmp");
        let claim = |name: &str| format!("{{ run = \"sh {}/claim.sh {name}\" }}", shared.display());
        let steps = format!("{}, {{ create = \"a\" }}, {}", claim("early"), claim("late"));
        world.sandbox.write(".verdone/script.toml", always(&steps));
        world.sandbox.git(["commit", "-qam", "the agent's script"]);
        if without_views {
            world.sandbox.set("VERDONE_LAUNCH_FAIL", "unshare");
        }
        let claim = json!({ "story": "us-1", "summary": "wrote a", "status": "success", "tests_passed": true });
        fs::create_dir_all(&shared).unwrap();
        fs::write(shared.join("claim.sh"), call(&shared, "complete_story", &claim)).unwrap();
        world.run(0);
        let early = answer(&world, "early");
        assert_eq!((&early["outcome"], &early["should_continue"]), (&json!("failed"), &json!(true)), "{early}");
        let late = answer(&world, "late");
        assert_eq!((&late["outcome"], &late["proof"]), (&json!("done"), &json!("verified")), "{late}");
        assert_eq!((world.all("asked").len(), world.all("committed").len()), (2, 1));
        assert!(!world.run_dir().join("tools/socket").exists(), "the socket is gone with the run");
    }
}

/// A world whose agent runs this script in the folder of the run's socket, and after it does the story.
fn world_with_noise(script: &str, limits: &str) -> World {
    let steps = always("{ run = \"python3 ../tmp/noise.py\" }");
    let world = World::with(ONE, &steps, &Settings { limits, ..Settings::default() });
    world.sandbox.add_tool("python3");
    let script = format!(
        "import os, socket, time\n\
         tree = os.getcwd()\n\
         os.chdir(os.path.dirname(os.environ['VERDONE_TOOLS']))\n\
         kept = []\n\
         def say(text):\n\
         \x20   one = socket.socket(socket.AF_UNIX); one.connect('socket'); kept.append(one); one.sendall(text)\n\
         {script}\
         open(tree + '/a', 'w').write('x')\n"
    );
    fs::create_dir_all(world.sandbox.root().join("tmp")).unwrap();
    fs::write(world.sandbox.root().join("tmp/noise.py"), script).unwrap();
    world
}

#[test]
fn whatever_connects_to_the_socket_the_run_goes_on() {
    // Rubbish, unfinished lines and silence, each from a connection that stays open, and after them a call that is answered.
    let script = "for text in [b'{', b'\\xff\\xfe\\n', b'{\"call\":{\"tool\":\"push\"}}\\n', b'[' * 1000, b'']: say(text)\n\
        say(b'{\"read\":\"plan\"}\\n')\n\
        assert b'US-001' in kept[-1].recv(100000)\n";
    let world = world_with_noise(script, "");
    world.run(0);
    assert_eq!((world.all("asked").len(), world.all("committed").len()), (0, 1));
}

#[test]
fn an_agent_that_floods_the_socket_gets_no_more_time() {
    // Ends by itself, so that a turn that is not cut is seen as one.
    let script = "end = time.time() + 30\n\
        while time.time() < end:\n\
        \x20   say(b'')\n\
        \x20   if len(kept) > 20: kept.pop(0).close()\n";
    let world = world_with_noise(script, "turn_time = \"2s\"\nattempts = 1\nturns = 1\n");
    world.run(4);
    let outcomes: Vec<String> = world.all("turn_ended").iter().map(|turn| turn["outcome"].to_string()).collect();
    assert!(outcomes.len() == 1 && outcomes[0].contains("timed_out"), "{outcomes:?}");
}
