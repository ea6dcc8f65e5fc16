//! The commands that look at past runs, and `verdone undo`.

use serde_json::Value;

use crate::commands::schema;
use crate::commands::stage::{project, run_branch, run_subjects, transcript, verdone};

#[test]
fn a_run_can_be_looked_at_from_every_side() {
    let sandbox = project();
    verdone(&sandbox, &["run", "--quiet"]).assert_code(4);
    transcript("status", &sandbox, &[&["status"]]);
    transcript("status-json", &sandbox, &[&["status", "--json"]]);
    transcript("log", &sandbox, &[&["log"]]);
    transcript("show", &sandbox, &[&["show", "US-002"], &["show", "US-003"], &["show", "US-004"]]);
    transcript("show-json", &sandbox, &[&["show", "US-001", "--json"]]);
    transcript("show-unknown", &sandbox, &[&["show", "US-999"], &["show", "US-999", "--json"]]);
    transcript("report", &sandbox, &[&["report"]]);
    transcript("guardrails", &sandbox, &[&["guardrails"], &["guardrails", "--json"]]);

    let status: Value = serde_json::from_str(&verdone(&sandbox, &["status", "--json"]).stdout).unwrap();
    schema::assert_valid(&schema::read("docs/status.schema.json"), &status);
    for line in verdone(&sandbox, &["log", "--json"]).stdout.lines() {
        schema::assert_valid(&schema::read("docs/events.schema.json"), &serde_json::from_str(line).unwrap());
    }

    let note = sandbox.git(["notes", "--ref=verdone", "show", &run_branch(&sandbox)]);
    assert!(note.contains("US-003"), "{note}");
}

#[test]
fn each_undo_takes_one_more_story_off_the_runs_branch() {
    let sandbox = project();
    verdone(&sandbox, &["run", "--quiet"]).assert_code(4);
    let commands: [&[&str]; 6] = [&["undo"], &["undo"], &["status"], &["undo"], &["undo"], &["log"]];
    let outputs = transcript("undo", &sandbox, &commands);
    assert_eq!(outputs.iter().map(|output| output.code).collect::<Vec<_>>(), [0, 0, 0, 0, 2, 0]);
    assert_eq!(run_subjects(&sandbox), "initial");
    assert_eq!(sandbox.git(["status", "--porcelain"]), "");
}

#[test]
fn undo_of_a_landed_story_is_a_commit_that_reverts_it() {
    let sandbox = project();
    verdone(&sandbox, &["run", "--quiet", "--story", "US-001"]).assert_code(0);
    verdone(&sandbox, &["land"]).assert_code(0);
    transcript("undo-landed", &sandbox, &[&["undo"], &["status"], &["plan", "show"]]);
    assert_eq!(sandbox.git(["log", "--format=%s"]), "revert: US-001\nfeat(US-001): Write a greeting\ninitial");
    assert!(!sandbox.path("greeting.txt").exists());
    assert!(sandbox.read("PLAN.md").contains("- [ ] US-001"));
}

#[test]
fn undo_takes_nothing_away_that_was_built_on_later() {
    let sandbox = project();
    verdone(&sandbox, &["run", "--quiet", "--story", "US-001"]).assert_code(0);
    let branch = run_branch(&sandbox);
    sandbox.git(["switch", "--quiet", &branch]);
    sandbox.git(["commit", "--quiet", "--allow-empty", "--message", "mine"]);
    sandbox.git(["commit", "--quiet", "--allow-empty", "--message", "mine too"]);
    sandbox.git(["switch", "--quiet", "work"]);
    let mut outputs = vec![verdone(&sandbox, &["undo"])];
    sandbox.git(["merge", "--quiet", &branch]);
    sandbox.write("greeting.txt", "hello, world\n");
    sandbox.git(["commit", "--quiet", "--all", "--message", "more"]);
    outputs.push(verdone(&sandbox, &["undo"]));
    crate::commands::stage::compare("undo-moved-on", &sandbox, &outputs);
    assert_eq!(outputs.iter().map(|output| output.code).collect::<Vec<_>>(), [4, 4]);
    assert_eq!(sandbox.git(["log", "-1", "--format=%s"]), "more");
}
