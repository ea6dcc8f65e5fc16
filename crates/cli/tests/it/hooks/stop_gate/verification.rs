//! Verifications that take long, die or are impossible.

use super::*;

#[test]
fn a_long_verification_goes_on_alone_and_is_waited_for() {
    let gate = "[stop]\nwait = \"50ms\"\n[[gate]]\nname = \"slow\"\ncommand = \"sleep 1\"\n";
    let world = world(gate, &[]);
    arm(&world, &["Wait for it"]);
    world.write("done.txt", "1\n");
    let before = fs::read(kept(&world, "finding.json")).unwrap();
    stop(&world).blocked("Verdone is still verifying your work");
    stop(&world).blocked("`slow`");
    wait_for_finding(&world, &before);
    stop(&world).let_go("COMPLETE");
    let stops = world.records("stop");
    let last = stops.last().unwrap();
    assert_eq!((&stops[0]["cause"], &last["blocks"]), (&json!("verifying"), &json!(0)), "waiting is no iteration");
}

#[test]
fn a_verdict_that_came_between_two_stops_is_told_before_it_is_run_again() {
    let gate = "[stop]\nwait = \"50ms\"\n[[gate]]\nname = \"slow\"\ncommand = \"sleep 1; false\"\n";
    let world = world(gate, &[]);
    arm(&world, &["Wait for it"]);
    world.write("done.txt", "1\n");
    let before = fs::read(kept(&world, "finding.json")).unwrap();
    stop(&world).blocked("still verifying");
    wait_for_finding(&world, &before);
    // In both cases, the client says that this is the first Stop of the turn.
    stop(&world).blocked("The check `slow` failed");
    assert_eq!(world.records("stop").last().unwrap()["verdict"], "cached");
}

#[test]
fn a_killed_verification_of_the_gate_leaves_no_check_behind() {
    let gate = "[stop]\nwait = \"50ms\"\n[limits]\ngrace = \"100ms\"\n[[gate]]\nname = \"slow\"\ncommand = \"sleep 61841; :\"\n";
    let world = world(gate, &[]);
    arm(&world, &["Wait for it"]);
    world.write("done.txt", "1\n");
    let until = std::time::Instant::now() + std::time::Duration::from_mins(1);
    while !is_running("61841") {
        stop(&world).blocked("still verifying");
        assert!(std::time::Instant::now() < until, "the gate never began");
    }
    let worker = fs::read_to_string(kept(&world, "working.lock")).unwrap();
    kill_process(Pid::from_raw(worker.trim().parse().unwrap()).unwrap(), Signal::KILL).unwrap();
    while is_running("61841") {
        assert!(std::time::Instant::now() < until, "the gate is still running");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[test]
fn a_broken_gate_holds_three_times_and_then_lets_go_and_says_so() {
    let world = loops(&features(0));
    arm(&world, &["--plan", "feature_list.json"]);
    stop(&world).blocked("Feature 1");
    let good = world.read("feature_list.json");
    world.write("feature_list.json", "{");
    for n in 1..=3 {
        stop(&world).blocked(&format!("fault {n} of at most 3"));
    }
    stop(&world).let_go("the Stop gate itself failed 3 times in a row");
    stop(&world).let_go("UNVERIFIED");
    world.write("feature_list.json", &good);
    stop(&world).blocked("Feature 1");
    let mut panics = world;
    panics.set("VERDONE_FAULT", "hook-panic");
    stop(&panics).blocked("fault 1 of at most 3");
}
