//! Replays recorded conversations with the real clients: what we send must be what was sent then, and what comes back must be understood.

use serde_json::Value;

use super::*;
use crate::agent::acp::profile_of;
use crate::agent::protocol::{GuardedCall, PermissionRequest, TurnEnd};
use crate::agent::{AgentKind, Usage};

macro_rules! recorded {
    ($name:literal) => {
        include_str!(concat!("../../../../tests/fixtures/acp/", $name, ".jsonl"))
    };
}

#[derive(Default)]
struct Replay {
    /// Methods or answers, as sent.
    sent: Vec<String>,
    /// The same from the recording.
    expected: Vec<String>,
    asked: Vec<PermissionRequest>,
    unasked: Vec<GuardedCall>,
    said: Vec<String>,
    kept: Vec<String>,
    opened: Vec<String>,
    not_opened: Vec<TurnOutcome>,
    finished: Vec<String>,
    ends: Vec<TurnEnd>,
}

impl Replay {
    fn perform(&mut self, acp: &mut Acp, steps: Vec<Step>, verdict: &Verdict) {
        for step in steps {
            match step {
                Step::Send(line) => self.sent.push(summary(&serde_json::from_str(&line).unwrap())),
                Step::Opened { session } => self.opened.push(session),
                Step::NotOpened(outcome) => self.not_opened.push(outcome),
                Step::Said(text) => self.said.push(text),
                Step::Ask(request) => {
                    let answer = match &request.refused {
                        Some(reason) => Verdict::Deny { reason: reason.clone() },
                        None => verdict.clone(),
                    };
                    let steps = acp.answer(&request.request, &answer);
                    self.asked.push(request);
                    self.perform(acp, steps, verdict);
                }
                Step::Unasked(call) => self.unasked.push(call),
                Step::Finished(call) => self.finished.push(format!("{} {}", call.call.tool, call.result.is_ok())),
                Step::Keep(text) => self.kept.push(text),
                Step::Context(_) | Step::Allowance(_) | Step::Compacted => {}
                Step::TurnOver(end) => self.ends.push(*end),
            }
        }
    }

    fn calls(&self) -> Vec<String> {
        let calls = self.asked.iter().flat_map(|request| &request.calls);
        calls.map(show).collect()
    }
}

fn show(call: &GuardedCall) -> String {
    let about = ["command", "file_path", "prompt", "subagent_type"].iter().find_map(|name| call.input[*name].as_str());
    format!("{} {}", call.tool, about.unwrap_or("-"))
}

/// What matters of a message to the client.
fn summary(message: &Value) -> String {
    let id = &message["id"];
    match message["method"].as_str() {
        Some(method) => format!("{id} {method} {} {}", message["params"]["sessionId"], message["params"]["modeId"]),
        None if message["error"].is_object() => format!("{id} error {}", message["error"]["code"]),
        None => format!("{id} {}", message["result"]["outcome"]),
    }
}

/// Replays a recording. Prompts and interrupts come when they came then.
fn replay(kind: AgentKind, recording: &str, verdict: &Verdict) -> Replay {
    let mut acp = Acp::new(profile_of(kind).unwrap(), "/repo");
    let mut replay = Replay::default();
    let lines: Vec<Value> = recording.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let loaded = lines.iter().find(|line| line["msg"]["method"] == "session/load");
    let opening = match loaded {
        Some(load) => Opening::Resume { session: load["msg"]["params"]["sessionId"].as_str().unwrap().to_owned() },
        None => Opening::Fresh,
    };
    for line in &lines {
        let message = &line["msg"];
        let steps = match (line["dir"].as_str().unwrap_or_default(), message["method"].as_str()) {
            ("from", _) => acp.line(message.to_string().as_bytes(), Timestamp::UNIX_EPOCH),
            (_, Some("initialize")) => acp.open(&opening),
            (_, Some("session/prompt")) => acp.prompt(message["params"]["prompt"][0]["text"].as_str().unwrap()),
            (_, Some("session/cancel")) => acp.interrupt(),
            (_, _) => Vec::new(),
        };
        if line["dir"] == "to" {
            replay.expected.push(summary(message));
        }
        replay.perform(&mut acp, steps, verdict);
    }
    replay
}

fn deny() -> Verdict {
    Verdict::Deny { reason: "no by rule".to_owned() }
}

#[test]
fn two_turns_with_each_client() {
    for (kind, recording, tokens, cost) in [
        (AgentKind::Gemini, recorded!("gemini-two-turns"), [Some(1650), Some(120)], None),
        (AgentKind::Opencode, recorded!("opencode-two-turns"), [None, None], Some([0.0017, 0.00014])),
        (AgentKind::Copilot, recorded!("copilot-two-turns"), [Some(1650), Some(120)], None),
    ] {
        let replay = replay(kind, recording, &Verdict::Allow);
        assert_eq!(replay.sent, replay.expected, "{kind:?}");
        assert_eq!(replay.opened.len(), 1, "{kind:?}");
        assert_eq!(replay.calls().first().map(String::as_str), Some("Bash touch made.txt && echo hi"), "{kind:?}");
        assert!(replay.unasked.is_empty(), "{kind:?}");
        assert_eq!(replay.finished, ["Bash true"], "{kind:?}");
        let ended: Vec<(&TurnOutcome, &str)> = replay.ends.iter().map(|end| (&end.outcome, end.said.as_str())).collect();
        assert_eq!(ended, [(&TurnOutcome::Ended, "turn one"), (&TurnOutcome::Ended, "turn two")], "{kind:?}");
        for (at, end) in replay.ends.iter().enumerate() {
            let Usage { cost_usd, tokens: used, .. } = end.usage;
            assert_eq!(used, tokens[at], "{kind:?}");
            let expected: Option<f64> = cost.map(|cost| cost[at]);
            assert_eq!(cost_usd.map(|cost| (cost * 1e6).round()), expected.map(|cost| (cost * 1e6).round()), "{kind:?}");
        }
    }
}

#[test]
fn qwen_is_put_into_the_mode_in_which_it_asks() {
    let replay = replay(AgentKind::Qwen, recorded!("qwen-reject"), &deny());
    assert_eq!(replay.sent, replay.expected);
    assert!(replay.sent[2].contains("session/set_mode") && replay.sent[2].ends_with("\"default\""), "{:?}", replay.sent);
    assert_eq!(replay.ends[0].usage.tokens, Some(120));
}

#[test]
fn a_denial_is_answered_by_kind_and_its_reason_is_kept() {
    for (kind, recording, ends_turn) in [
        (AgentKind::Gemini, recorded!("gemini-reject"), false),
        (AgentKind::Opencode, recorded!("opencode-reject"), true),
        (AgentKind::Copilot, recorded!("copilot-reject"), true),
        (AgentKind::Qwen, recorded!("qwen-reject"), true),
    ] {
        let replay = replay(kind, recording, &deny());
        assert_eq!(replay.sent, replay.expected, "{kind:?}");
        assert_eq!(replay.calls(), ["Bash touch bad"], "{kind:?}");
        assert_eq!(replay.kept, ["no by rule"], "{kind:?}");
        assert!(replay.finished.is_empty() && replay.unasked.is_empty(), "{kind:?}");
        assert_eq!(replay.ends.len(), 1, "{kind:?}");
        assert_eq!((&replay.ends[0].outcome, replay.ends[0].by_denial), (&TurnOutcome::Ended, ends_turn), "{kind:?}");
    }
}

#[test]
fn a_failed_api_is_no_finished_turn_even_if_the_client_says_so() {
    for (kind, recording) in [
        (AgentKind::Gemini, recorded!("gemini-e401")),
        (AgentKind::Opencode, recorded!("opencode-e401")),
        (AgentKind::Copilot, recorded!("copilot-e401")),
    ] {
        let replay = replay(kind, recording, &Verdict::Allow);
        assert!(matches!(replay.ends[0].outcome, TurnOutcome::Auth { .. }), "{kind:?}: {:?}", replay.ends);
    }
    let replay = replay(AgentKind::Copilot, recorded!("copilot-e500"), &Verdict::Allow);
    let TurnOutcome::ApiError { status, retryable, reason } = &replay.ends[0].outcome else { panic!("{:?}", replay.ends) };
    assert_eq!((*status, *retryable), (Some(500), true), "{reason}");
}

#[test]
fn an_interrupt_ends_the_turn_and_the_next_prompt_works() {
    let replay = replay(AgentKind::Gemini, recorded!("gemini-cancel"), &Verdict::Allow);
    assert_eq!(replay.sent, replay.expected);
    let outcomes: Vec<&TurnOutcome> = replay.ends.iter().map(|end| &end.outcome).collect();
    assert_eq!(outcomes, [&TurnOutcome::Interrupted, &TurnOutcome::Ended]);
}

#[test]
fn calls_that_gemini_runs_unasked_are_reported_for_judgement() {
    let replay = replay(AgentKind::Gemini, recorded!("gemini-coverage"), &Verdict::Allow);
    assert_eq!(
        replay.calls(),
        [
            "Write /repo/w.txt",
            "Write /repo/a.txt",
            "Bash touch s.txt",
            "Bash touch /opt/x",
            "WebFetch Processing URLs and instructions from prompt: \"get http://127.0.0.1:PORT/x\""
        ]
    );
    let unasked: Vec<String> = replay.unasked.iter().map(show).collect();
    assert_eq!(unasked, ["Read /repo/a.txt", "Bash ls"]);
}

#[test]
fn opencode_asks_about_every_call() {
    let replay = replay(AgentKind::Opencode, recorded!("opencode-permission-all-ask"), &Verdict::Allow);
    assert_eq!(replay.calls(), ["Read /repo/a.txt", "Write /repo/w.txt", "Bash ls", "TodoWrite -", "Agent general"]);
    assert!(replay.unasked.is_empty());
    assert_eq!(replay.sent, replay.expected, "its own file requests are refused");
}

#[test]
fn copilots_calls_are_judged_by_their_input_not_by_the_models_words() {
    let replay = replay(AgentKind::Copilot, recorded!("copilot-coverage"), &Verdict::Allow);
    assert_eq!(
        replay.calls(),
        ["Read /etc/hostname", "Edit /repo/w.txt", "Edit /opt/x", "Bash ls", "Bash touch s.txt", "Bash touch /opt/x"]
    );
}

#[test]
fn a_loaded_session_repeats_its_history_silently() {
    let replay = replay(AgentKind::Opencode, recorded!("opencode-load"), &Verdict::Allow);
    assert_eq!(replay.opened.len(), 1);
    assert_eq!(replay.ends.len(), 1);
    assert_eq!(replay.said, [replay.ends[0].said.clone()]);
}

#[test]
fn a_session_that_cannot_be_loaded_is_not_opened() {
    let replay = replay(AgentKind::Gemini, recorded!("gemini-load"), &Verdict::Allow);
    let TurnOutcome::Crashed { reason } = &replay.not_opened[0] else { panic!("{:?}", replay.not_opened) };
    assert!(reason.contains("No previous sessions"), "{reason}");
}

/// A session with an open turn.
fn in_turn(kind: AgentKind) -> Acp {
    let mut acp = Acp::new(profile_of(kind).unwrap(), "/repo");
    acp.open(&Opening::Fresh);
    feed(&mut acp, r#"{"id":1,"result":{"protocolVersion":1}}"#);
    feed(&mut acp, r#"{"id":2,"result":{"sessionId":"s","modes":{"currentModeId":"default"}}}"#);
    acp.prompt("do it");
    acp
}

fn feed(acp: &mut Acp, line: &str) -> Vec<Step> {
    acp.line(line.as_bytes(), Timestamp::UNIX_EPOCH)
}

fn asked(steps: &[Step]) -> &PermissionRequest {
    steps.iter().find_map(|step| if let Step::Ask(request) = step { Some(request) } else { None }).expect("no question")
}

#[test]
fn a_question_that_cannot_be_judged_is_refused() {
    let once = r#"[{"optionId":"a","kind":"allow_once"},{"optionId":"r","kind":"reject_once"}]"#;
    for (call, options, why) in [
        (r#"{"toolCallId":"1","kind":"execute","title":"echo harmless","rawInput":{}}"#, once, "which command"),
        (r#"{"toolCallId":"1","kind":"edit","title":"Edit a.txt"}"#, once, "which file"),
        (r#"{"toolCallId":"1","kind":"switch_mode","title":"yolo"}"#, once, "permission mode"),
        (
            r#"{"toolCallId":"1","kind":"execute","rawInput":{"command":"ls"}}"#,
            r#"[{"optionId":"a","kind":"allow_always"}]"#,
            "allow it once",
        ),
    ] {
        let mut acp = in_turn(AgentKind::Copilot);
        let line =
            format!(r#"{{"id":"q","method":"session/request_permission","params":{{"toolCall":{call},"options":{options}}}}}"#);
        let steps = feed(&mut acp, &line);
        let request = asked(&steps);
        assert!(request.refused.as_ref().is_some_and(|refused| refused.contains(why)), "{call}: {request:?}");
    }
}

#[test]
fn a_command_in_another_folder_is_judged_there() {
    let options = r#"[{"optionId":"a","kind":"allow_once"}]"#;
    let call = r#"{"toolCallId":"1","kind":"execute","title":"rm -rf x","content":[{"type":"content","content":{"type":"text","text":"[in ../other] (d)"}}]}"#;
    let mut acp = in_turn(AgentKind::Gemini);
    let line = format!(r#"{{"id":0,"method":"session/request_permission","params":{{"toolCall":{call},"options":{options}}}}}"#);
    let steps = feed(&mut acp, &line);
    assert_eq!(asked(&steps).calls[0].cwd.as_deref(), Some("/repo/../other"));
}

#[test]
fn text_that_is_typed_into_a_program_is_judged_as_a_command() {
    let mut acp = in_turn(AgentKind::Copilot);
    feed(
        &mut acp,
        r#"{"method":"session/update","params":{"update":{"sessionUpdate":"tool_call","toolCallId":"1","title":"d","kind":"execute","rawInput":{"shellId":"7","input":"git push"}}}}"#,
    );
    let steps = feed(
        &mut acp,
        r#"{"method":"session/update","params":{"update":{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed"}}}"#,
    );
    assert!(steps.iter().any(|step| matches!(step, Step::Unasked(call) if show(call) == "Bash git push")), "{steps:?}");
}

#[test]
fn an_agent_that_leaves_its_mode_is_not_guarded_any_more() {
    let mut acp = in_turn(AgentKind::Gemini);
    let steps = feed(
        &mut acp,
        r#"{"method":"session/update","params":{"update":{"sessionUpdate":"current_mode_update","currentModeId":"yolo"}}}"#,
    );
    let Some(Step::TurnOver(end)) = steps.last() else { panic!("{steps:?}") };
    assert!(matches!(end.outcome, TurnOutcome::GuardDead { .. }), "{end:?}");
}

#[test]
fn an_empty_turn_without_token_counts_is_a_failure() {
    let mut acp = in_turn(AgentKind::Acp);
    let steps = feed(&mut acp, r#"{"id":3,"result":{"stopReason":"end_turn"}}"#);
    let Some(Step::TurnOver(end)) = steps.last() else { panic!("{steps:?}") };
    assert!(matches!(end.outcome, TurnOutcome::ApiError { retryable: true, .. }), "{end:?}");
}

#[test]
fn another_version_of_the_protocol_is_not_spoken() {
    let mut acp = Acp::new(profile_of(AgentKind::Acp).unwrap(), "/repo");
    acp.open(&Opening::Fresh);
    let steps = feed(&mut acp, r#"{"id":1,"result":{"protocolVersion":2}}"#);
    assert!(
        matches!(&steps[..], [Step::NotOpened(TurnOutcome::NotRunnable { reason })] if reason.contains("version 2")),
        "{steps:?}"
    );
}

#[test]
fn an_interrupt_answers_questions_that_wait() {
    let mut acp = in_turn(AgentKind::Opencode);
    feed(
        &mut acp,
        r#"{"id":5,"method":"session/request_permission","params":{"toolCall":{"toolCallId":"1","kind":"execute","rawInput":{"command":"ls"}},"options":[{"optionId":"once","kind":"allow_once"}]}}"#,
    );
    let sent: Vec<String> = acp
        .interrupt()
        .iter()
        .map(|step| match step {
            Step::Send(line) => summary(&serde_json::from_str(line).unwrap()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(sent, [r#"5 {"outcome":"cancelled"}"#, r#"null session/cancel "s" null"#]);
    assert!(acp.answer("5", &Verdict::Allow).is_empty(), "a late verdict has no effect");
}
