//! Conditions of done, beside the checks.

use super::*;

#[test]
fn conditions_of_the_settings_hold_a_loop_whose_checks_are_green_and_nobody_else() {
    let config = format!(
        "[done]\nrequire = [\"implementation_complete\", \"seen\"]\n[[done.condition]]\nname = \"seen\"\nprover = \"claim\"\n{GATE}"
    );
    let world = world(&config, &[("PLAN.md", PLAN)]);
    assert_eq!(stop(&world), Said::Nothing, "no loop holds it");
    arm(&world, &["--plan", "PLAN.md"]);
    world.write("one", "1\n");
    let reason = stop(&world).blocked("The condition seen is not met: it has not been claimed.");
    assert!(reason.contains("THE STORY (US-001)") && !reason.contains("failed"), "{reason}");
    assert!(!world.read("PLAN.md").contains("[x]"), "a story is not done before its conditions hold");
    verdone(&world, &["claim", "seen", "--note", "I looked", "--session", "s1"]);
    stop(&world).blocked("NEXT STORY (US-002)");
    world.write("two", "2\n");
    stop(&world).let_go("COMPLETE");
    assert_eq!(causes(&world), ["foreign", "condition", "next_story", "complete"]);
}

#[test]
fn a_story_is_committed_after_its_conditions_hold_and_not_before() {
    let config = "[stop]\ncommit = true\n[done]\nprofile = \"loop\"\n[[done.condition]]\nname = \"seen\"\nprover = \"claim\"\n";
    let mut world = world(config, &[("PLAN.md", PLAN)]);
    name_the_author(&mut world);
    arm(&world, &["--plan", "PLAN.md"]);
    world.write("one", "1\n");
    let head = || fs::read_to_string(world.work.join(".git/logs/HEAD")).unwrap().lines().count();
    let before = head();
    stop(&world).blocked("The condition seen is not met");
    assert_eq!(head(), before);
    verdone(&world, &["claim", "seen", "--note", "I looked", "--session", "s1"]);
    stop(&world).blocked("NEXT STORY (US-002)");
    assert_eq!(head(), before + 1);
}

#[test]
fn what_the_gate_saw_of_this_tree_is_known_to_the_conditions() {
    let world = world(GATE, &[]);
    arm(&world, &["Do it"]);
    let correctness = || {
        let output = world.command(&["-C", &world.path("."), "done", "--session", "s1", "--json"]).output().unwrap();
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        let all = json["conditions"].as_array().unwrap().clone();
        all.into_iter().find(|condition| condition["name"] == "correctness_passed").unwrap()["outcome"].clone()
    };
    assert_eq!(correctness(), "unknown");
    world.write("done.txt", "broken\n");
    stop(&world).blocked("The check `tests` failed");
    assert_eq!(correctness(), "missing");
    world.write("done.txt", "1\n");
    assert_eq!(correctness(), "unknown", "another tree");
    stop(&world).let_go("COMPLETE");
    assert_eq!(correctness(), "held");
}

#[test]
fn a_loop_that_waits_for_a_task_is_held_to_gates_and_conditions_once_more() {
    let config = format!("[done]\n[[done.condition]]\nname = \"seen\"\nprover = \"claim\"\n{GATE}");
    let world = world(&config, &[("PLAN.md", "- [ ] US-001: One\n  - Verification: `test -f one`\n")]);
    arm(&world, &["--plan", "PLAN.md"]);
    let task = |event: &str| json!({ "session_id": "s1", "cwd": world.work, "hook_event_name": event, "task_id": "1", "task_subject": "Write docs" });
    world.ask(Mode::Session, &task("TaskCreated"));
    verdone(&world, &["claim", "seen", "--note", "I looked", "--session", "s1"]);
    world.write("one", "1\n");
    stop(&world).blocked("- Write docs");
    assert!(world.read("PLAN.md").contains("[x]"));
    world.ask(Mode::Session, &task("TaskCompleted"));
    world.write("done.txt", "broken\n");
    stop(&world).blocked("The check `tests` failed");
    world.write("done.txt", "1\n");
    stop(&world).let_go("COMPLETE");
}
