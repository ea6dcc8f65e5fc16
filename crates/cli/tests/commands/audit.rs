//! `verdone audit` as people and programs see it.

use serde_json::Value;

use crate::schema;
use crate::stage::{project, project_with, transcript, verdone};

#[test]
fn an_audit_reads_well_on_a_terminal_in_markdown_and_as_json() {
    let sandbox = project();
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
    transcript("audit-missing", &sandbox, &[&["audit"], &["audit", "--markdown"]]);
    let found: Value = serde_json::from_str(&verdone(&sandbox, &["audit", "--json"]).stdout).unwrap();
    schema::assert_valid(&verdone_report::audit_schema(), &found);
}

#[test]
fn a_hostile_title_stays_text_in_every_form() {
    let title = "Evil | `cell` <b>bold</b> [x](javascript:alert) \u{202e}txt \u{1b}[2J";
    let plan = format!("- [ ] US-001: {title}\n  - Verification: `grep hello greeting.txt`\n");
    let script =
        "[[turn]]\nsteps = [{ create = \"greeting.txt\", text = \"hello\\n\" }, { claim = \"\\u001b[2J | <i>done</i>\" }]\n";
    let sandbox = project_with(&plan, script);
    verdone(&sandbox, &["run"]).assert_code(0);
    verdone(&sandbox, &["land"]).assert_code(0);
    for form in [&["audit"][..], &["audit", "--markdown"], &["audit", "--json"]] {
        let output = verdone(&sandbox, form);
        output.assert_code(0);
        crate::stage::assert_harmless(&output);
    }
    let markdown = verdone(&sandbox, &["audit", "--markdown"]).stdout;
    let row = markdown.lines().find(|line| line.contains("US-001")).unwrap();
    assert!(row.contains("Evil \\| \\`cell\\` \\<b\\>"), "{row}");
    assert_eq!(row.replace("\\|", "").matches('|').count(), 7, "{row}");
}
