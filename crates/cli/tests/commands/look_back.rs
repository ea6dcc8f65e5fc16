//! The commands that look back at a run, and the step back.

use serde_json::Value;

use crate::schema;
use crate::stage::{project, transcript, verdone};

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
    transcript("checkpoints", &sandbox, &[&["checkpoints"]]);
    transcript("report", &sandbox, &[&["report"]]);

    let status: Value = serde_json::from_str(&verdone(&sandbox, &["status", "--json"]).stdout).unwrap();
    schema::assert_valid(&schema::read("docs/status.schema.json"), &status);
    for line in verdone(&sandbox, &["log", "--json"]).stdout.lines() {
        schema::assert_valid(&schema::read("docs/events.schema.json"), &serde_json::from_str(line).unwrap());
    }

    let note = sandbox.git(["notes", "--ref=verdone", "show", "HEAD"]);
    assert!(note.contains("US-003"), "{note}");
}

#[test]
fn undo_takes_back_the_rollback_and_itself() {
    let sandbox = project();
    verdone(&sandbox, &["run", "--quiet"]).assert_code(4);
    transcript("undo", &sandbox, &[&["undo"], &["undo"], &["undo"], &["log"]]);
    assert_eq!(sandbox.read("circle.txt"), "round\n", "the third undo brought the rejected attempt back again");
    sandbox.git(["add", "circle.txt"]);
    sandbox.git(["commit", "--quiet", "--message", "mine"]);
    transcript("undo-moved-on", &sandbox, &[&["undo"]])[0].assert_code(4);
    assert_eq!(sandbox.git(["log", "-1", "--format=%s"]), "mine");
}

#[test]
fn undo_takes_back_a_commit_and_opens_the_story_again() {
    let sandbox = project();
    verdone(&sandbox, &["run", "--quiet", "--story", "US-001"]).assert_code(0);
    transcript("undo-commit", &sandbox, &[&["undo"], &["status"], &["plan", "show"]]);
    assert_eq!(sandbox.git(["log", "--format=%s"]), "initial");
    assert!(!sandbox.path("greeting.txt").exists());
}
