//! `verdone doctor`: every finding, also where one fault hides others.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;
use verdone_testkit::Signal;

use crate::stage::{project, repository, start, transcript, verdone};

#[test]
fn a_healthy_project_is_good_throughout() {
    let sandbox = project();
    transcript("doctor", &sandbox, &[&["doctor"]])[0].assert_code(0);
    sandbox.git(["switch", "--quiet", "main"]);
    sandbox.write("notes.txt", "mine\n");
    transcript("doctor-warnings", &sandbox, &[&["doctor"]])[0].assert_code(0);
    let findings: Value = serde_json::from_str(&verdone(&sandbox, &["doctor", "--json"]).stdout).unwrap();
    let checkout = findings.as_array().unwrap().iter().find(|finding| finding["what"] == "checkout").unwrap();
    assert_eq!(checkout["health"], "warning");
    assert_eq!(checkout["message"], "1 uncommitted file is not part of the run: notes.txt");
}

#[test]
fn a_fault_that_hides_others_is_a_finding_among_what_can_be_seen() {
    let sandbox = repository();
    let mut outputs = vec![verdone(&sandbox, &["doctor"])];
    sandbox.write("PLAN.md", "- [ ] US-001: One\n  - Depends on: US-009\n- [ ] US-001: Twice\n");
    outputs.push(verdone(&sandbox, &["doctor"]));
    sandbox.write(".verdone/config.toml", "[limits]\nturn = 3\n");
    outputs.push(verdone(&sandbox, &["doctor"]));
    outputs.push(verdone(&sandbox, &["doctor", "--json"]));
    for output in &outputs {
        output.assert_code(2);
        assert_eq!(output.stderr, "");
    }
    crate::stage::compare("doctor-faults", &sandbox, &outputs);
}

#[test]
fn everything_that_is_missing_is_listed_at_once() {
    let sandbox = repository();
    sandbox.write("PLAN.md", "- [ ] US-001: One\n");
    sandbox.write(
        ".verdone/config.toml",
        "[agent.command]\nrun = \"no-such-agent\"\n[[gate]]\nname = \"t\"\ncommand = \"no-such-check\"\n",
    );
    sandbox.write("README.md", "changed\n");
    sandbox.git(["checkout", "--quiet", "--detach"]);
    transcript("doctor-bad", &sandbox, &[&["doctor"]])[0].assert_code(2);
}

#[test]
fn clean_trees_of_killed_processes_are_named_and_pruned_and_those_in_use_are_not() {
    let sandbox = project();
    let (began, go) = (sandbox.root().join("began"), sandbox.root().join("go"));
    let wait = format!("touch {}; while ! test -e {}; do sleep 0.02; done", began.display(), go.display());
    sandbox.write(".verdone/config.toml", format!("[[gate]]\nname = \"slow\"\nwhere = \"clean\"\ncommand = \"{wait}\"\n"));
    let verifying = start(&sandbox, &["verify"]);
    let since = Instant::now();
    while !began.exists() {
        assert!(since.elapsed() < Duration::from_mins(2), "the gate never began");
        std::thread::sleep(Duration::from_millis(5));
    }
    let clean = sandbox.home().join(".cache/verdone/clean");
    let trees = || fs::read_dir(&clean).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_dir()).count();
    assert!(!verdone(&sandbox, &["doctor"]).stdout.contains("killed processes"), "it is in use");
    assert!(!verdone(&sandbox, &["prune", "--keep", "5"]).stdout.contains("clean tree"), "and stays");
    assert_eq!(trees(), 1);
    verifying.signal(Signal::KILL);
    verifying.wait(Duration::from_mins(2));
    fs::write(&go, "").unwrap();
    let doctor = verdone(&sandbox, &["doctor"]).stdout;
    assert!(
        doctor.contains("killed processes left 1 clean tree in ") && doctor.contains("hint: verdone prune --keep 5"),
        "{doctor}"
    );
    let preview = verdone(&sandbox, &["prune", "--keep", "5", "--dry-run"]).stdout;
    assert!(preview.contains("Would delete 1 clean tree that killed processes left, ") && trees() == 1, "{preview}");
    let pruned = verdone(&sandbox, &["prune", "--keep", "5"]).stdout;
    assert!(pruned.contains("Deleted 1 clean tree that killed processes left, ") && trees() == 0, "{pruned}");
    assert!(!verdone(&sandbox, &["doctor"]).stdout.contains("clean tree"));
}
