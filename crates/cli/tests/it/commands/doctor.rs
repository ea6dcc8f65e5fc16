//! `verdone doctor`: every finding, even if one problem hides others.

use serde_json::Value;
use verdone_testkit::Sandbox;

use crate::commands::stage::{project, repository, transcript, verdone};

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
    assert_eq!(checkout["message"], "1 untracked file is not part of the run: notes.txt");
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
    crate::commands::stage::compare("doctor-faults", &sandbox, &outputs);
}

#[test]
fn a_repository_without_a_commit_is_bad_and_the_hint_makes_one() {
    let sandbox = Sandbox::new();
    sandbox.write("PLAN.md", "- [ ] US-001: One\n  - Verification: `test -f a`\n");
    sandbox.git(["init", "--quiet"]);
    let output = verdone(&sandbox, &["doctor"]);
    output.assert_code(2);
    let told = "bad      checkout   the repository has no commit yet\n                    hint: git add -A && git commit -m \"first commit\"\n";
    assert!(output.stdout.contains(told), "{}", output.stdout);
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
