//! `verdone audit` as people and programs see it.

use serde_json::Value;

use crate::commands::schema;
use crate::commands::stage::{project_with, transcript, verdone};

const PLAN: &str = "\
# Plan

- [ ] US-001: Write a greeting
  - Acceptance: it says hello
  - Verification: `grep hello src/greeting.txt`
- [ ] US-002: Count to three
  - Verification: `grep three src/numbers.txt`
- [ ] US-003: Square the circle
  - Verification: `grep squared src/circle.txt`
";

const SCRIPT: &str = r#"
[[turn]]
story = "US-001"
steps = [{ create = "src/greeting.txt", text = "hello\n" }, { claim = "Done." }]

[[turn]]
story = "US-002"
steps = [{ create = "src/numbers.txt", text = "three\n" }, { claim = "Counted." }]

[[turn]]
story = "US-003"
steps = [{ create = "src/circle.txt", text = "round\n" }, { claim = "Done: squared." }]
"#;

#[test]
fn an_audit_reads_well_on_a_terminal_in_markdown_and_as_json() {
    let sandbox = project_with(PLAN, SCRIPT);
    verdone(&sandbox, &["run"]).assert_code(4);
    verdone(&sandbox, &["land"]).assert_code(0);
    transcript("audit", &sandbox, &[&["audit"], &["audit", "--markdown"]]);
    let found: Value = serde_json::from_str(&verdone(&sandbox, &["audit", "--json"]).stdout).unwrap();
    schema::assert_valid(&verdone_report::audit_schema(), &found);
    sandbox.git(["notes", "--ref=verdone", "remove", "HEAD"]);
    let outputs =
        transcript("audit-broken", &sandbox, &[&["audit"], &["audit", "--markdown", "HEAD"], &["audit", "no-such-branch"]]);
    assert_eq!(outputs.iter().map(|output| output.code).collect::<Vec<_>>(), [1, 1, 2]);
    let found: Value = serde_json::from_str(&verdone(&sandbox, &["audit", "--json", "--rerun"]).stdout).unwrap();
    schema::assert_valid(&verdone_report::audit_schema(), &found);
    sandbox.git(["reset", "--quiet", "--hard", "HEAD~1"]);
    sandbox.git(["commit", "--quiet", "--amend", "-m", "my own words"]);
    let squashed = transcript("audit-squashed", &sandbox, &[&["audit"], &["audit", "--markdown"]]);
    let found: Value = serde_json::from_str(&verdone(&sandbox, &["audit", "--json"]).stdout).unwrap();
    schema::assert_valid(&verdone_report::audit_schema(), &found);
    assert!(squashed[0].stdout.contains("Squashed into"), "{}", squashed[0].stdout);
    sandbox.write("src/greeting.txt", "hello again\n");
    sandbox.git(["commit", "--quiet", "--all", "--amend", "-m", "my own words"]);
    transcript("audit-missing", &sandbox, &[&["audit"], &["audit", "--markdown"]]);
    let found: Value = serde_json::from_str(&verdone(&sandbox, &["audit", "--json"]).stdout).unwrap();
    schema::assert_valid(&verdone_report::audit_schema(), &found);
}

#[test]
fn a_hostile_title_stays_text_in_every_form() {
    let title = "Evil | `cell` <b>bold</b> [x](javascript:alert) \u{202e}txt \u{1b}[2J";
    let plan = format!("- [ ] US-001: {title}\n  - Verification: `grep hello src/greeting.txt`\n");
    let script =
        "[[turn]]\nsteps = [{ create = \"src/greeting.txt\", text = \"hello\\n\" }, { claim = \"\\u001b[2J | <i>done</i>\" }]\n";
    let sandbox = project_with(&plan, script);
    verdone(&sandbox, &["run"]).assert_code(0);
    verdone(&sandbox, &["land"]).assert_code(0);
    for form in [&["audit"][..], &["audit", "--markdown"], &["audit", "--json"]] {
        let output = verdone(&sandbox, form);
        output.assert_code(0);
        crate::commands::stage::assert_harmless(&output);
    }
    let markdown = verdone(&sandbox, &["audit", "--markdown"]).stdout;
    let row = markdown.lines().find(|line| line.contains("US-001")).unwrap();
    assert!(row.contains("Evil \\| \\`cell\\` \\<b\\>"), "{row}");
    assert_eq!(row.replace("\\|", "").matches('|').count(), 7, "{row}");
}
