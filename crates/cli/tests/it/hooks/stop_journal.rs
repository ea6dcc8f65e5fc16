//! The journal of a loop: commands about past runs find it like a run's, and no run mistakes it for a dead one.

use serde_json::Value;

use crate::hooks::stop_gate::{arm, name_the_author, stop, verdone, world};

const ONE: &str = "- [ ] US-001: One\n  - Verification: `test -f one`\n";

#[test]
fn a_loop_is_in_status_log_show_report_and_audit_like_a_run() {
    let mut world = world("[stop]\ncommit = true\n", &[("PLAN.md", ONE)]);
    name_the_author(&mut world);
    arm(&world, &["--plan", "PLAN.md"]);
    let said = |arguments: &[&str]| {
        let output = verdone(&world, arguments);
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    let status = said(&["status"]);
    assert!(status.contains("US-001 One") && !status.contains("died"), "{status}");
    world.write("one", "1\n");
    stop(&world).let_go("COMPLETE");
    let kinds: Vec<Value> = said(&["log", "--json"]).lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect();
    let names: Vec<&str> = kinds.iter().map(|event| event["event"].as_str().unwrap()).collect();
    let expected = [
        "run_started",
        "baseline_checked",
        "story_selected",
        "attempt_started",
        "red_checked",
        "turn_started",
        "turn_ended",
        "verified",
        "commit_started",
        "committed",
        "regression_started",
        "regression_checked",
        "run_stopping",
        "run_stopped",
    ];
    assert_eq!(names, expected);
    assert_eq!((kinds[0]["session"].as_str(), kinds[0]["mode"].as_str()), (Some("s1"), Some("session")));
    assert_eq!(kinds[0]["seal"]["level"], "unsealed");
    assert!(said(&["status"]).contains("complete"));
    assert!(said(&["show", "US-001"]).contains("verified"));
    assert!(said(&["report"]).contains("US-001"));
    let audit: Value = serde_json::from_slice(&verdone(&world, &["audit", "--json"]).stdout).unwrap();
    assert_eq!(audit["holds"], true, "{audit}");
}

#[test]
fn a_run_leaves_a_loop_that_holds_alone() {
    let config = "[limits]\nmax_iterations = 1\n[agent.command]\nrun = \"true\"\n";
    let mut world = world(config, &[("PLAN.md", ONE), ("OTHER.md", "- [ ] X-1: Other\n  - Verification: `test -f two`\n")]);
    name_the_author(&mut world);
    arm(&world, &["--plan", "PLAN.md"]);
    stop(&world).blocked("test -f one");
    let output = world.command(&["-C", &world.path("."), "run", "OTHER.md"]).output().unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(!said.contains("did not end properly"), "{said}");
    world.write("one", "1\n");
    stop(&world).let_go("COMPLETE: the one story of the loop is done (verified)");
}
