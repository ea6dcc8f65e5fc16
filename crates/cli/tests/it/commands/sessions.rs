//! Hook records as `show`, `status`, `prune` and `doctor` present them. The real hook makes the records.

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use verdone_testkit::Sandbox;

use crate::commands::schema;
use crate::commands::stage::{BINARY, compare, project, project_with, repository, transcript, verdone};

/// A session as a client reports it: a hostile id, tools that run, fail and are denied, tests, a subagent, and an end with its cost.
fn session(sandbox: &Sandbox, id: &str) {
    let work = sandbox.work();
    let transcript = sandbox.root().join("transcript.jsonl");
    let books = json!({
        "type": "cost-state", "totalCostUSD": 0.0123,
        "modelUsage": { "m": { "inputTokens": 600, "outputTokens": 120, "cacheReadInputTokens": 30_000 } },
    });
    // Longer than the part that is read.
    fs::write(&transcript, format!("{}\n{books}\n", "x".repeat(300 * 1024))).unwrap();
    let call = |event: &str, tool: &str, input: Value, more: Value| {
        let mut value = json!({ "tool_name": tool, "tool_input": input, "tool_use_id": "t1" });
        value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        (event.to_owned(), value)
    };
    let ran = |command: &str, said: &str| {
        let response = json!({ "tool_response": { "stdout": said, "stderr": "", "interrupted": false }, "duration_ms": 1500 });
        call("PostToolUse", "Bash", json!({ "command": command }), response)
    };
    let failed = "FAILED test_a.py::test_adds - assert 1 == 2\n============ 1 failed, 1 passed in 0.10s ============\n";
    let events = [
        ("SessionStart".to_owned(), json!({ "source": "startup" })),
        ("UserPromptSubmit".to_owned(), json!({ "prompt": "work" })),
        ("SubagentStart".to_owned(), json!({ "agent_id": "a1", "agent_type": "helper" })),
        call("PreToolUse", "Bash", json!({ "command": "git push origin main" }), json!({})),
        call("PreToolUse", "Bash", json!({ "command": "git -C . push" }), json!({})),
        call("PreToolUse", "Write", json!({ "file_path": work.join("README.md"), "content": "x" }), json!({})),
        ran("ls", "README.md"),
        ran("printf x > 'notes \u{1b}[31m.txt'", ""),
        call(
            "PostToolUseFailure",
            "Bash",
            json!({ "command": "pytest" }),
            json!({
                "error": format!("Exit code 1\n{failed}"), "duration_ms": 2500, "is_interrupt": false,
            }),
        ),
        ran("pytest", "============ 2 passed in 0.10s ============\n"),
        call("PostToolUse", "\u{1b}]0;evil\u{7}mcp", json!({}), json!({ "tool_response": {}, "duration_ms": 10 })),
        ("SessionEnd".to_owned(), json!({ "reason": "other", "transcript_path": transcript })),
    ];
    for (event, mut input) in events {
        input["session_id"] = id.into();
        input["cwd"] = json!(work);
        input["hook_event_name"] = event.as_str().into();
        hook(sandbox, &input.to_string());
    }
}

fn hook(sandbox: &Sandbox, input: &str) {
    let mut command = sandbox.command(BINARY);
    command.arg("hook").env("CLAUDE_PROJECT_DIR", sandbox.work()).current_dir(sandbox.work());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
}

fn json_of(sandbox: &Sandbox, arguments: &[&str]) -> Value {
    let output = verdone(sandbox, arguments);
    output.assert_code(0);
    serde_json::from_str(&output.stdout).unwrap()
}

#[test]
fn a_session_is_shown_with_its_tools_denials_files_tests_and_cost() {
    let mut sandbox = repository();
    // Wide enough for a path, however long that of the temporary folder is.
    sandbox.set("COLUMNS", "120");
    fs::create_dir(sandbox.path(".verdone")).unwrap();
    session(&sandbox, "../../s\u{1b}[31m 1");
    // An incomplete line left by a killed hook.
    let folder = sandbox.path(".verdone/sessions").join("%2E%2E%2F%2E%2E%2Fs%1B%5B31m%201");
    fs::write(folder.join("events.jsonl"), format!("{}{{\"at\":", fs::read_to_string(folder.join("events.jsonl")).unwrap()))
        .unwrap();
    hook(&sandbox, "{\"session_id\":\"s1\",\"hook_event_name\":\"PreToolUse\",");
    let commands: [&[&str]; 5] = [
        &["show", "--sessions"],
        &["show", "--session", "%2E%2E"],
        &["show", "--session", "nobody"],
        &["show"],
        &["show", "US-001", "--sessions"],
    ];
    let outputs = transcript("show-sessions", &sandbox, &commands);
    assert_eq!(outputs.iter().map(|output| output.code).collect::<Vec<_>>(), [0, 0, 2, 2, 2]);
    let listed = json_of(&sandbox, &["show", "--sessions", "--json"]);
    schema::assert_valid(&schema::read("docs/sessions.schema.json"), &listed);
    let one = json_of(&sandbox, &["show", "--session", "../../s\u{1b}[31m 1", "--json"]);
    assert_eq!(listed["sessions"], json!([one]));
    assert_eq!((&one["calls"], &one["failed"], &one["denied"], &one["unread"]), (&5.into(), &1.into(), &3.into(), &1.into()));
    assert_eq!(one["spent"], json!({ "micro_usd": 12_300, "input_tokens": 30_600, "output_tokens": 120, "at_least": false }));
    assert_eq!((&one["tests"]["failed"], &one["tests"]["passed"]), (&1.into(), &1.into()));
    assert_eq!(one["tool_ms"], 7010);
    let (denials, faults) = (one["denials"].as_object().unwrap(), &listed["faults"][0]);
    assert_eq!(denials.values().map(|rule| rule["count"].as_u64().unwrap()).sum::<u64>(), 3);
    assert_eq!((&faults["failures"], &faults["denied"], &faults["run"]), (&1.into(), &0.into(), &Value::Null));
}

#[test]
fn a_session_without_books_has_an_unknown_cost() {
    let sandbox = repository();
    fs::create_dir(sandbox.path(".verdone")).unwrap();
    for (transcript, id) in [("/nowhere", "a"), ("relative.jsonl", "b"), ("/dev/zero", "c")] {
        let input = json!({
            "session_id": id, "cwd": sandbox.work(), "hook_event_name": "SessionEnd", "reason": "other", "transcript_path": transcript,
        });
        hook(&sandbox, &input.to_string());
    }
    let listed = json_of(&sandbox, &["show", "--sessions", "--json"]);
    let spent: Vec<&Value> = listed["sessions"].as_array().unwrap().iter().map(|found| &found["spent"]).collect();
    assert_eq!(spent, [&Value::Null; 3]);
    assert!(verdone(&sandbox, &["show", "--session", "a"]).stdout.contains("cost unknown"));
}

/// The agent's hooks fail, and its session is recorded in the run's folder.
const AGENT: &str = r#"#!/bin/sh
run=".verdone/runs/$VERDONE_RUN/sessions"
now() { date -u +%Y-%m-%dT%H:%M:%S.%NZ; }
mkdir -p "$run/s1"
{
    echo "{\"at\":\"$(now)\",\"event\":\"SessionStart\",\"record\":\"started\",\"source\":\"startup\"}"
    echo "{\"at\":\"$(now)\",\"event\":\"PreToolUse\",\"record\":\"decided\",\"tool\":\"Bash\",\"id\":null,\"verdict\":\"deny\",\"rule\":\"ask-first\",\"place\":null,\"about\":\"deploy\",\"reason\":\"x\",\"needs_human\":true}"
    echo "{\"at\":\"$(now)\",\"event\":\"PostToolUse\",\"record\":\"ran\",\"tool\":\"Write\",\"id\":null,\"failed\":false,\"interrupted\":false,\"duration_ms\":20,\"files\":[\"$PWD/greeting.txt\"]}"
} >> "$run/s1/events.jsonl"
for denied in true false; do
    echo "{\"at\":\"$(now)\",\"event\":\"PreToolUse\",\"record\":\"failed\",\"cause\":\"the input is not JSON \\u001b[31m\",\"denied\":$denied}" >> "$run/faults.jsonl"
done
echo hello > greeting.txt
"#;

#[test]
fn a_guard_that_failed_in_a_run_is_told_wherever_the_run_is_shown() {
    let plan = "- [ ] US-001: Write a greeting\n  - Verification: `grep hello greeting.txt`\n";
    let sandbox = project_with(plan, "");
    sandbox.add_script("hooked-agent", AGENT);
    sandbox.write(".verdone/config.toml", "[agent.command]\nrun = \"hooked-agent\"\n");
    let commands: [&[&str]; 5] = [&["run"], &["status"], &["log"], &["show", "US-001"], &["show", "--sessions"]];
    let outputs = transcript("guard-failed", &sandbox, &commands);
    assert!(outputs.iter().all(|output| output.code == 0), "{}", outputs[0].transcript());
    let told = "The guard failed 2 times (1 denied): the input is not JSON";
    for output in [&outputs[0], &outputs[1], &outputs[3], &verdone(&sandbox, &["report"])] {
        let text = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ").replace('\\', "");
        assert!(text.contains(told) && text.contains("sessions/faults.jsonl"), "{}", output.transcript());
    }
    let status = json_of(&sandbox, &["status", "--json"]);
    schema::assert_valid(&schema::read("docs/status.schema.json"), &status);
    assert_eq!((&status["guard"]["failures"], &status["guard"]["denied"]), (&2.into(), &1.into()));
    let story = json_of(&sandbox, &["show", "US-001", "--json"]);
    assert_eq!((&story["sessions"][0]["needs_human"], &story["attempts"][0]["guard"]["failures"]), (&1.into(), &2.into()));
    let events = verdone(&sandbox, &["log", "--json"]).stdout;
    let lines: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.iter().filter(|line| line["event"] == "guard_failed").count(), 1);
    for line in &lines {
        schema::assert_valid(&schema::read("docs/events.schema.json"), line);
    }
}

#[test]
fn old_sessions_are_counted_and_pruned_and_young_ones_stay() {
    let sandbox = project();
    for id in ["s-old", "s-new", "s-newer"] {
        hook(
            &sandbox,
            &json!({ "session_id": id, "cwd": sandbox.work(), "hook_event_name": "Notification", "message": "x" }).to_string(),
        );
    }
    let age = |path: &Path| File::open(path).unwrap().set_modified(SystemTime::now() - Duration::from_hours(30)).unwrap();
    let old = sandbox.path(".verdone/sessions/s-old");
    for path in [old.join("events.jsonl"), old.clone()] {
        age(&path);
    }
    hook(&sandbox, "{");
    let mut doctor = verdone(&sandbox, &["doctor"]);
    doctor.stdout = doctor.stdout.split_inclusive('\n').filter(|line| line.contains("session")).collect();
    verdone(&sandbox, &["run", "--quiet", "--story", "US-001"]).assert_code(0);
    let mut outputs = vec![doctor];
    for arguments in [&["status"][..], &["prune", "--keep", "1", "--dry-run"], &["prune", "--keep", "1"]] {
        outputs.push(verdone(&sandbox, arguments));
    }
    compare("sessions-kept", &sandbox, &outputs);
    assert!(!old.exists());
    assert!(sandbox.path(".verdone/sessions/s-new").exists() && sandbox.path(".verdone/sessions/s-newer").exists());
}
