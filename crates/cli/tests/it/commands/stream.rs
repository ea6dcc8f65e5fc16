//! `verdone run --json`: one event per line, valid under the published schema.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;
use verdone_report::StreamLine;

use crate::commands::schema;
use crate::commands::stage::{compare, project, verdone};

#[test]
fn every_line_of_the_stream_keeps_to_the_published_schema() {
    let sandbox = project();
    let output = verdone(&sandbox, &["run", "--json"]);
    output.assert_code(4);
    compare("run-json", &sandbox, std::slice::from_ref(&output));

    let published = schema::read("docs/events.schema.json");
    let mut seen = BTreeSet::new();
    let mut recorded = Vec::new();
    for line in output.stdout.lines() {
        let value: Value = serde_json::from_str(line).unwrap();
        schema::assert_valid(&published, &value);
        assert_eq!(value["v"], 1, "{line}");
        seen.insert(value["event"].as_str().unwrap().to_owned());
        let typed: StreamLine = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_value(&typed).unwrap(), value, "nothing is lost between the type and the line");
        if value.get("seq").is_some() {
            recorded.push(line.to_owned());
        }
    }
    let expected = [
        "attempt_kept",
        "attempt_rejected",
        "attempt_started",
        "baseline_checked",
        "commit_started",
        "committed",
        "output",
        "red_checked",
        "run_started",
        "run_stopped",
        "run_stopping",
        "story_failed",
        "story_selected",
        "turn_ended",
        "turn_started",
        "verified",
    ];
    assert_eq!(seen.iter().map(String::as_str).collect::<Vec<_>>(), expected);

    let run = fs::read_dir(sandbox.path(".verdone/runs")).unwrap().flatten().find(|entry| entry.path().is_dir()).unwrap();
    let journal = fs::read_to_string(run.path().join("journal.jsonl")).unwrap();
    assert_eq!(journal.lines().collect::<Vec<_>>(), recorded, "the stream is the journal, and what is shown once");
    assert_eq!(verdone(&sandbox, &["log", "--json"]).stdout, journal);
}
