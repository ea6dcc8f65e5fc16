use serde_json::json;

use super::*;
use crate::agent::protocol::{CallFailure, FinishedCall};

/// A real session: what was sent to Codex 0.166 and what it said.
macro_rules! session {
    ($name:literal) => {
        include_str!(concat!("../../../../tests/fixtures/codex/", $name, ".jsonl"))
    };
}

fn now() -> Timestamp {
    "2026-11-15T12:00:00Z".parse().unwrap()
}

/// Plays the client's side of a session. Questions are answered with this verdict.
fn replay(session: &str, verdict: &Verdict) -> Vec<Step> {
    let mut codex = Codex::new(&CodexAgent::default(), "/repo");
    let mut all = Vec::new();
    for line in session.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let message = &line["msg"];
        let steps = match (line["dir"].as_str().unwrap(), message["method"].as_str().unwrap_or_default()) {
            ("from", _) => codex.line(message.to_string().as_bytes(), now()),
            ("to", "initialize") => codex.open(&opening(session)),
            ("to", "turn/start") => codex.prompt(message["params"]["input"][0]["text"].as_str().unwrap()),
            ("to", "turn/interrupt") => codex.interrupt(),
            _ => Vec::new(),
        };
        for step in steps {
            let answers = match &step {
                Step::Ask(question) if question.refused.is_none() => codex.answer(&question.request, verdict),
                Step::Ask(question) => {
                    codex.answer(&question.request, &Verdict::Deny { reason: question.refused.clone().unwrap() })
                }
                _ => Vec::new(),
            };
            all.push(step);
            all.extend(answers);
        }
    }
    all
}

fn opening(session: &str) -> Opening {
    let resumed = session.lines().find_map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        let resumes = line["dir"] == "to" && line["msg"]["method"] == "thread/resume" && line["msg"]["id"] == 2;
        resumes.then(|| line["msg"]["params"]["threadId"].as_str().unwrap().to_owned())
    });
    resumed.map_or(Opening::Fresh, |session| Opening::Resume { session })
}

fn denied() -> Verdict {
    Verdict::Deny { reason: "no, because".to_owned() }
}

fn sent(steps: &[Step]) -> Vec<Value> {
    let line = |step: &Step| match step {
        Step::Send(line) => Some(serde_json::from_str(line).unwrap()),
        _ => None,
    };
    steps.iter().filter_map(line).collect()
}

fn ends(steps: &[Step]) -> Vec<&TurnEnd> {
    steps.iter().filter_map(|step| if let Step::TurnOver(end) = step { Some(&**end) } else { None }).collect()
}

fn questions(steps: &[Step]) -> Vec<&PermissionRequest> {
    steps.iter().filter_map(|step| if let Step::Ask(question) = step { Some(question) } else { None }).collect()
}

#[test]
fn two_turns_of_one_thread_have_their_own_usage() {
    let steps = replay(session!("two_turns"), &Verdict::Allow);
    let ends = ends(&steps);
    let seen: Vec<_> = ends.iter().map(|end| (end.said.as_str(), end.usage.tokens, &end.outcome)).collect();
    assert_eq!(seen, [("turn one done", Some(1_650), &TurnOutcome::Ended), ("turn two done", Some(1_710), &TurnOutcome::Ended)]);
    assert!(steps.contains(&Step::Opened { session: "01a1e0ca-8e85-7702-869a-886103185cb7".to_owned() }));
    assert!(steps.contains(&Step::Context(ContextUse { tokens: 1_530, window: Some(258_400) })));
    let call = GuardedCall::command("call_8b410149f984", "touch made.txt && echo hi", Some("/repo"));
    assert_eq!(questions(&steps)[0].calls, std::slice::from_ref(&call));
    assert!(steps.contains(&Step::Finished(FinishedCall { call, result: Ok("hi\n".to_owned()), duration_ms: 0 })));
    assert!(!steps.iter().any(|step| matches!(step, Step::Unasked(_))), "it was asked for");
    let sent = sent(&steps);
    assert_eq!(sent[2]["params"]["approvalPolicy"], "untrusted");
    assert!(sent.contains(&json!({ "id": 0, "result": { "decision": "accept" } })));
}

#[test]
fn an_edit_is_judged_by_the_files_that_it_changes() {
    let steps = replay(session!("patch"), &Verdict::Allow);
    let calls: Vec<_> = questions(&steps)[0].calls.iter().map(|call| (call.tool.as_str(), &call.input["file_path"])).collect();
    assert_eq!(calls, [("Edit", &json!("/repo/a.txt")), ("Write", &json!("/repo/new.txt"))]);
    let mut codex = Codex::new(&CodexAgent::default(), "/repo");
    let alone = json!({ "method": "item/fileChange/requestApproval", "id": 0, "params": { "itemId": "x" } });
    let steps = codex.line(alone.to_string().as_bytes(), now());
    assert!(questions(&steps)[0].refused.is_some(), "an edit that nobody saw");
}

#[test]
fn a_deleted_and_a_moved_file_are_seen() {
    let item = json!({ "type": "fileChange", "id": "i", "changes": [
        { "path": "/r/it's", "kind": { "type": "delete" }, "diff": "" },
        { "path": "/r/a", "kind": { "type": "update", "move_path": "/r/b" }, "diff": "" },
    ] });
    let calls: Vec<_> = calls_of(&item).iter().map(|call| format!("{} {}", call.tool, call.input)).collect();
    assert_eq!(calls.len(), 3);
    assert!(calls[0].contains(r"rm -- '/r/it'\\''s'"), "{calls:?}");
    assert!(calls[1].starts_with("Edit") && calls[2].starts_with("Write") && calls[2].contains("/r/b"), "{calls:?}");
}

#[test]
fn a_denial_reaches_the_agent_with_its_reason_and_the_turn_continues() {
    let steps = replay(session!("decline"), &denied());
    let sent = sent(&steps);
    assert!(sent.contains(&json!({ "id": 0, "result": { "decision": "decline" } })));
    let steered = sent.iter().find(|line| line["method"] == "turn/steer").unwrap();
    assert_eq!(steered["params"]["input"][0]["text"], "no, because");
    assert!(steered["params"]["expectedTurnId"].is_string());
    assert_eq!(ends(&steps)[0].outcome, TurnOutcome::Ended);
    assert!(!steps.iter().any(|step| matches!(step, Step::Finished(_) | Step::Unasked(_))), "it did not run");
}

#[test]
fn a_reason_that_comes_too_late_waits_for_the_next_prompt() {
    let mut codex = Codex::new(&CodexAgent::default(), "/repo");
    codex.prompt("go");
    codex.line(br#"{"id":1,"result":{"turn":{"id":"t"}}}"#, now());
    codex.line(br#"{"method":"item/commandExecution/requestApproval","id":0,"params":{"itemId":"i","command":"ls"}}"#, now());
    let steps = codex.answer("0", &denied());
    assert_eq!(sent(&steps)[0]["id"], 2);
    assert_eq!(codex.line(br#"{"id":2,"error":{"message":"no active turn"}}"#, now()), [Step::Keep("no, because".to_owned())]);
}

#[test]
fn a_shell_that_waits_for_commands_is_refused_and_typed_text_is_judged() {
    let steps = replay(session!("typed_input"), &Verdict::Allow);
    assert!(questions(&steps)[0].refused.as_deref().unwrap().contains("bash"), "{steps:?}");
    let typed = steps.iter().find_map(|step| match step {
        Step::Unasked(call) => Some(call),
        _ => None,
    });
    assert_eq!(typed.unwrap().input, json!({ "command": "touch sneaky\n" }));
}

#[test]
fn errors_of_the_service_have_their_outcomes() {
    let outcome = |session| ends(&replay(session, &Verdict::Allow))[0].outcome.clone();
    let resets_at = Timestamp::from_second(1_794_780_000).unwrap();
    assert!(matches!(outcome(session!("usage_limit")), TurnOutcome::UsageLimit { resets_at: at, .. } if at == Some(resets_at)));
    assert!(matches!(outcome(session!("error_401")), TurnOutcome::Auth { .. }));
    assert!(matches!(outcome(session!("error_404")), TurnOutcome::ApiError { retryable: false, .. }));
    for session in [session!("error_429"), session!("error_500")] {
        assert!(matches!(outcome(session), TurnOutcome::ApiError { retryable: true, .. }));
    }
    let steps = replay(session!("usage_limit"), &Verdict::Allow);
    let allowance = AllowanceUse { window: "5-hour".to_owned(), percent: 100, resets_at };
    assert!(steps.contains(&Step::Allowance(allowance)));
}

#[test]
fn an_interrupt_also_ends_the_running_command() {
    let steps = replay(session!("interrupt"), &Verdict::Allow);
    let methods: Vec<_> = sent(&steps).iter().filter_map(|line| line["method"].as_str().map(str::to_owned)).collect();
    assert!(methods.ends_with(&["turn/interrupt".to_owned(), "thread/backgroundTerminals/clean".to_owned()]), "{methods:?}");
    assert_eq!(ends(&steps)[0].outcome, TurnOutcome::Interrupted);
}

#[test]
fn an_interrupt_before_the_turn_is_known_is_sent_later() {
    let mut codex = Codex::new(&CodexAgent::default(), "/repo");
    codex.prompt("go");
    assert_eq!(codex.interrupt(), []);
    let steps = codex.line(br#"{"id":1,"result":{"turn":{"id":"t"}}}"#, now());
    assert_eq!(sent(&steps)[0]["params"]["turnId"], "t");
}

#[test]
fn calls_of_servers_are_judged_by_server_and_tool() {
    let steps = replay(session!("mcp"), &denied());
    let call = &questions(&steps)[0].calls[0];
    assert_eq!((call.tool.as_str(), &call.input), ("mcp__probe__add", &json!({ "a": 1 })));
    assert!(sent(&steps).contains(&json!({ "id": 0, "result": { "action": "decline", "content": null } })));
    assert!(!steps.iter().any(|step| matches!(step, Step::Finished(_) | Step::Unasked(_))));
}

#[test]
fn a_resumed_thread_counts_only_its_new_tokens() {
    let steps = replay(session!("resume"), &Verdict::Allow);
    assert_eq!(sent(&steps)[2]["method"], "thread/resume");
    assert_eq!(ends(&steps)[0].usage.tokens, Some(120));
    let mut codex = Codex::new(&CodexAgent::default(), "/repo");
    codex.open(&Opening::Resume { session: "x".to_owned() });
    codex.line(br#"{"id":1,"result":{}}"#, now());
    let steps = codex.line(br#"{"id":2,"error":{"code":-32600,"message":"no rollout found for thread id x"}}"#, now());
    assert_eq!(steps, [Step::NotOpened(TurnOutcome::Crashed { reason: "no rollout found for thread id x".to_owned() })]);
}

#[test]
fn a_summary_of_the_conversation_is_counted() {
    assert!(replay(session!("compact"), &Verdict::Allow).contains(&Step::Compacted));
}

#[test]
fn a_client_that_would_not_ask_is_not_used() {
    let steps = replay(session!("on_request"), &Verdict::Allow);
    assert!(!steps.iter().any(|step| matches!(step, Step::Opened { .. })));
    let refused = |steps: &[Step]| {
        steps.iter().any(|step| {
            matches!(step, Step::NotOpened(TurnOutcome::NotRunnable { reason }) if reason.contains("could not judge its commands"))
        })
    };
    assert!(refused(&steps), "{steps:?}");
    let mut codex = Codex::new(&CodexAgent::default(), "/repo");
    codex.open(&Opening::Fresh);
    codex.line(br#"{"id":1,"result":{}}"#, now());
    let error = r#"{"id":2,"error":{"message":"unknown variant `untrusted`, expected one of `on-request`, `never`"}}"#;
    assert!(refused(&codex.line(error.as_bytes(), now())));
}

#[test]
fn a_command_that_ran_without_a_question_is_reported() {
    let mut codex = Codex::new(&CodexAgent::default(), "/repo");
    codex.prompt("go");
    let item = json!({ "type": "commandExecution", "id": "i", "command": "/bin/bash -lc 'cargo test'", "cwd": "/repo",
        "processId": "1", "status": "failed", "aggregatedOutput": "bad", "exitCode": 101, "durationMs": 5 });
    let line = json!({ "method": "item/completed", "params": { "item": item } });
    let call = GuardedCall::command("i", "cargo test", Some("/repo"));
    let result = Err(CallFailure { exit_code: Some(101), output: "bad".to_owned(), interrupted: false });
    let expected = [Step::Unasked(call.clone()), Step::Finished(FinishedCall { call, result, duration_ms: 5 })];
    assert_eq!(codex.line(line.to_string().as_bytes(), now()), expected);
}

#[test]
fn nothing_that_the_client_says_is_an_error() {
    let mut codex = Codex::new(&CodexAgent::default(), "/repo");
    for line in ["", "x", "[]", "{}", "null", r#"{"id":1}"#, r#"{"id":"a","result":1}"#, r#"{"method":7}"#, "\u{0}"] {
        assert_eq!(codex.line(line.as_bytes(), now()), [], "{line}");
    }
    let asked = codex.line(br#"{"method":"item/tool/requestUserInput","id":"q","params":{}}"#, now());
    assert_eq!(sent(&asked)[0]["error"]["message"], "not supported by Verdone");
    assert_eq!(sent(&asked)[0]["id"], "q");
    // Real lines, cut at every place.
    for line in session!("two_turns").lines().take(20) {
        for end in 0..line.len() {
            if line.is_char_boundary(end) {
                codex.line(&line.as_bytes()[..end], now());
            }
        }
    }
}
