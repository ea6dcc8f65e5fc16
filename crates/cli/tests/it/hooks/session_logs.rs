//! What the hooks write down about a session, beyond the decisions on its calls.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::sync::mpsc;

use serde_json::{Value, json};
use verdone_testkit::PATIENCE;

use crate::hooks::stop_gate::{arm, stop, world};
use crate::hooks::stop_others::event;
use crate::hooks::tests_seen::{FAILED, failed};
use crate::hooks::world::{Mode, World};

const GATE: &str = "[[gate]]\nname = \"tests\"\ncommand = \"! grep -q broken done.txt\"\n";

#[test]
fn a_prompt_is_recorded_redacted_and_truncated() {
    let mut world = World::new();
    world.set("DEPLOY_TOKEN", "sesame-0123456789abcdef");
    let prompt = format!("Deploy with sesame-0123456789abcdef. {}", "x".repeat(5_000));
    world.ask(Mode::Session, &event(&world, "UserPromptSubmit", &json!({ "prompt": prompt })));
    let record = world.records("prompt").pop().unwrap();
    let text = record["text"].as_str().unwrap();
    assert!(text.starts_with("Deploy with ") && text.contains("xxx") && text.len() < 1_100, "{text}");
    assert!(!text.contains("sesame"), "{text}");
}

#[test]
fn logs_of_other_loops_are_continued_where_they_exist() {
    let world = world(GATE, &[]);
    let [failures, sessions] = [".ralph/failure-context.log", ".ralph/sessions.log"];
    let stops = world.root.join(".ralph/logs/stop-hook.log");
    let fail = || world.ask(Mode::Session, &failed(&world, "cargo test", &format!("Exit code 101\n{FAILED}")));
    arm(&world, &["Do it"]);
    fail();
    world.write("done.txt", "broken\n");
    stop(&world).blocked("The check `tests` failed");
    assert!(!world.work.join(".ralph").exists() && !stops.exists(), "none is created");
    for file in [failures, sessions] {
        world.write(file, "before\n");
    }
    fs::create_dir_all(stops.parent().unwrap()).unwrap();
    fs::write(&stops, "before\n").unwrap();
    fail();
    stop(&world).blocked("The check `tests` failed");
    world.ask(Mode::Session, &event(&world, "SessionEnd", &json!({ "reason": "other" })));
    let told = world.read(failures);
    assert!(told.starts_with("before\n=== Test Failure ") && told.contains("1 failed"), "{told}");
    assert!(world.read(sessions).starts_with("before\nincomplete:"), "{}", world.read(sessions));
    let told = fs::read_to_string(&stops).unwrap();
    assert!(told.contains("Stop hook fired: session=s1\n") && told.contains("Stop BLOCKED: CONTINUATION:"), "{told}");
    world.write("done.txt", "1\n");
    stop(&world).let_go("COMPLETE");
    assert!(fs::read_to_string(&stops).unwrap().contains("Stop APPROVED: COMPLETE"));
}

#[test]
fn decisions_of_the_stop_gate_are_followed_as_they_are_made() {
    let world = world(GATE, &[]);
    arm(&world, &["Do it"]);
    world.write("done.txt", "broken\n");
    stop(&world).blocked("The check `tests` failed");
    let at = world.path("");
    let mut child = world.command(&["-C", &at, "log", "--stops", "--follow", "--json"]).spawn().unwrap();
    let (sender, lines) = mpsc::channel();
    let out = BufReader::new(child.stdout.take().unwrap());
    std::thread::spawn(move || out.lines().map_while(Result::ok).for_each(|line| drop(sender.send(line))));
    let next = || -> Value { serde_json::from_str(&lines.recv_timeout(PATIENCE).expect("a decision")).unwrap() };
    assert_eq!(next()["stop"]["cause"], "check_failed");
    world.write("done.txt", "1\n");
    stop(&world).let_go("COMPLETE");
    assert_eq!(next()["stop"]["cause"], "complete");
    child.kill().unwrap();
    child.wait().unwrap();
}
