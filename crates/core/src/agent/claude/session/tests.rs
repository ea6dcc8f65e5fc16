use super::*;
use crate::agent::claude::parse;

fn now() -> Timestamp {
    "2026-11-15T00:35:41Z".parse().unwrap()
}

fn begun() -> (Session, Uuid) {
    let (mut session, uuid) = (Session::fresh(&Uuid::from_random([0; 16])), Uuid::from_random([1; 16]));
    session.sent(&uuid);
    (session, uuid)
}

fn feed(session: &mut Session, text: &str) -> Option<TurnEnd> {
    session.feed(&parse(text.as_bytes()).unwrap(), now())
}

const RUNNING: &str = r#"{"type":"system","subtype":"session_state_changed","state":"running"}"#;
const IDLE: &str = r#"{"type":"system","subtype":"session_state_changed","state":"idle"}"#;

fn result(uuid: &Uuid, rest: &str) -> String {
    format!(r#"{{"type":"result","subtype":"success","is_error":false,"user_message_uuids":["{uuid}"]{rest}}}"#)
}

#[test]
fn a_turn_is_over_at_idle_after_its_result_and_not_before() {
    let (mut session, uuid) = begun();
    assert_eq!(feed(&mut session, IDLE), None, "idle before anything ran");
    assert_eq!(feed(&mut session, RUNNING), None);
    assert_eq!(feed(&mut session, &result(&uuid, "")), None);
    assert!(session.is_answered());
    let end = feed(&mut session, IDLE).unwrap();
    assert_eq!((end.outcome, end.results), (TurnOutcome::Ended, 1));
    assert!(!session.in_turn());
}

#[test]
fn a_result_for_a_task_in_the_background_does_not_answer_a_prompt() {
    let (mut session, uuid) = begun();
    feed(&mut session, RUNNING);
    feed(&mut session, r#"{"type":"result","subtype":"success","origin":{"kind":"task-notification"},"total_cost_usd":0.5}"#);
    assert_eq!(feed(&mut session, IDLE), None);
    feed(&mut session, RUNNING);
    feed(&mut session, &result(&uuid, r#","total_cost_usd":0.7"#));
    let end = feed(&mut session, IDLE).unwrap();
    assert_eq!(end.results, 2);
    assert!((end.usage.cost_usd - 0.7).abs() < 1e-9);
}

#[test]
fn trouble_in_one_result_is_the_outcome_of_the_turn() {
    let (mut session, uuid) = begun();
    feed(&mut session, RUNNING);
    feed(
        &mut session,
        r#"{"type":"assistant","error":"overloaded","message":{"model":"<synthetic>","usage":{"input_tokens":0}}}"#,
    );
    feed(&mut session, &result(&uuid, "").replace("false", r#"true,"terminal_reason":"api_error","api_error_status":529"#));
    feed(&mut session, r#"{"type":"result","subtype":"success","origin":{"kind":"task-notification"},"result":"woke"}"#);
    let end = feed(&mut session, IDLE).unwrap();
    assert!(matches!(end.outcome, TurnOutcome::ApiError { status: Some(529), retryable: true, .. }), "{:?}", end.outcome);
    assert_eq!(end.said, "woke");
}

#[test]
fn what_unasked_turns_cost_is_in_the_next_turn() {
    let (mut session, uuid) = begun();
    feed(&mut session, RUNNING);
    feed(&mut session, &result(&uuid, r#","total_cost_usd":1.0"#));
    feed(&mut session, IDLE).unwrap();
    feed(&mut session, RUNNING);
    feed(&mut session, r#"{"type":"result","subtype":"success","origin":{"kind":"task-notification"},"total_cost_usd":1.5}"#);
    assert_eq!(feed(&mut session, IDLE), None);
    let next = Uuid::from_random([2; 16]);
    session.sent(&next);
    feed(&mut session, RUNNING);
    feed(&mut session, &result(&next, r#","total_cost_usd":1.6"#));
    let end = feed(&mut session, IDLE).unwrap();
    assert!((end.usage.cost_usd - 0.6).abs() < 1e-9 && (session.total().cost_usd - 1.6).abs() < 1e-9);
}

#[test]
fn a_prompt_that_was_cancelled_is_not_waited_for() {
    let (mut session, uuid) = begun();
    let queued = Uuid::from_random([2; 16]);
    session.sent(&queued);
    feed(&mut session, RUNNING);
    session.interrupt();
    feed(&mut session, &format!(r#"{{"type":"command_lifecycle","command_uuid":"{queued}","state":"cancelled"}}"#));
    feed(&mut session, &result(&uuid, r#","terminal_reason":"aborted_tools""#));
    assert_eq!(feed(&mut session, IDLE).unwrap().outcome, TurnOutcome::Interrupted);
}

#[test]
fn the_context_is_that_of_the_main_chain() {
    let (mut session, _) = begun();
    let says = |parent: &str, model: &str, tokens: u64| {
        format!(
            r#"{{"type":"assistant","parent_tool_use_id":{parent},"message":{{"model":"{model}","usage":{{"input_tokens":5,"cache_read_input_tokens":{tokens},"output_tokens":1}}}}}}"#
        )
    };
    assert_eq!(session.context(), None, "unknown is not empty");
    feed(&mut session, &says("null", "m", 1000));
    feed(&mut session, &says("\"toolu_1\"", "m", 9000));
    feed(&mut session, &says("null", "<synthetic>", 7000));
    assert_eq!(session.context(), Some(ContextUse { tokens: 1005, window: None }));
    feed(
        &mut session,
        r#"{"type":"system","subtype":"compact_boundary","compact_metadata":{"trigger":"auto","pre_tokens":1005,"post_tokens":40}}"#,
    );
    assert_eq!(session.context().unwrap().tokens, 40);
    let answer = r#"{"type":"control_response","response":{"subtype":"success","request_id":"c","response":{"totalTokens":31605,"maxTokens":1000000,"rawMaxTokens":1000000}}}"#;
    let Some(ClientLine::ControlAnswer(answer)) = parse(answer.as_bytes()) else { panic!() };
    session.measured(&answer.context());
    assert_eq!(session.context(), Some(ContextUse { tokens: 31_605, window: Some(1_000_000) }));
    session.measured(&ContextAnswer::default());
    assert_eq!(session.context().unwrap().tokens, 31_605, "no answer is no measurement");
}

#[test]
fn a_used_up_allowance_is_known_until_it_resets() {
    let (mut session, _) = begun();
    feed(
        &mut session,
        r#"{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","resetsAt":1794706541,"rateLimitType":"five_hour","unifiedWindows":{"five_hour":{"utilization":0.97},"seven_day":{"utilization":0.5}}}}"#,
    );
    let allowance = session.allowance().unwrap();
    assert_eq!((allowance.rejected, allowance.kind.as_str(), allowance.utilization), (false, "five_hour", Some(0.97)));
    assert_eq!(allowance.resets_at.unwrap().to_string(), "2026-11-15T01:35:41Z");
    assert_eq!(allowance.usage().unwrap().percent, 97);
}

#[test]
fn of_several_allowances_the_fullest_counts_with_its_own_reset() {
    let (mut session, _) = begun();
    let mut told = |windows: &str| {
        let info =
            format!(r#"{{"status":"allowed","resetsAt":1794706541,"rateLimitType":"five_hour","unifiedWindows":{windows}}}"#);
        feed(&mut session, &format!(r#"{{"type":"rate_limit_event","rate_limit_info":{info}}}"#));
        session.allowance().unwrap().usage().map(|used| (used.window, used.percent, used.resets_at.to_string()))
    };
    let known = |window: &str, percent, resets: &str| Some((window.to_owned(), percent, resets.to_owned()));
    assert_eq!(
        told(r#"{"five_hour":{"utilization":0.5,"resetsAt":1794706541},"seven_day":{"utilization":0.29,"resetsAt":1794799999}}"#),
        known("five_hour", 50, "2026-11-15T01:35:41Z")
    );
    assert_eq!(
        told(r#"{"five_hour":{"utilization":0.28},"seven_day":{"utilization":0.29,"resetsAt":1794799999}}"#),
        known("seven_day", 29, "2026-11-16T03:33:19Z")
    );
    assert_eq!(told(r#"{"seven_day":{"utilization":0.99}}"#), None, "nobody knows until when");
    assert_eq!(told("{}"), None, "nobody knows how much");
}

#[test]
fn many_unknown_lines_do_not_fill_the_memory() {
    let (mut session, _) = begun();
    for n in 0..1_000 {
        feed(&mut session, &format!(r#"{{"type":"new_{n}"}}"#));
    }
    assert_eq!(session.turn.unwrap().unknown.len(), UNKNOWN_KINDS);
}

/// A message of the model with one tool call.
fn calls(parent: &str, tool: &str, command: &str) -> String {
    let block = format!(r#"{{"type":"tool_use","id":"t","name":"{tool}","input":{{"command":"{command}"}}}}"#);
    format!(r#"{{"type":"assistant","parent_tool_use_id":{parent},"message":{{"content":[{block}]}}}}"#)
}

#[test]
fn the_same_call_in_a_row_is_counted_in_its_turn() {
    let (mut session, uuid) = begun();
    let times = |session: &Session| session.repeated_call().map(|repeated| (repeated.call.clone(), repeated.times));
    feed(&mut session, &calls("null", "Bash", "make"));
    assert_eq!(times(&session), None);
    feed(&mut session, &calls("\"toolu_1\"", "Bash", "ls"));
    feed(&mut session, &calls("null", "Bash", "make"));
    feed(&mut session, &calls("null", "Bash", "make"));
    assert_eq!(times(&session), Some(("Bash: make".to_owned(), 3)), "a subagent's call in between changes nothing");
    feed(&mut session, &result(&uuid, ""));
    session.sent(&Uuid::from_random([2; 16]));
    feed(&mut session, &calls("null", "TaskOutput", "b1"));
    feed(&mut session, &calls("null", "TaskOutput", "b1"));
    assert_eq!(times(&session), None, "a new turn, and waiting is no loop");
}

#[test]
fn a_hook_of_the_user_that_does_not_let_the_agent_stop_is_counted() {
    let (mut session, uuid) = begun();
    let stop = |active: bool| {
        let input = format!(r#"{{"hook_event_name":"Stop","stop_hook_active":{active}}}"#);
        format!(
            r#"{{"type":"control_request","request_id":"r","request":{{"subtype":"hook_callback","callback_id":"Stop","input":{input}}}}}"#
        )
    };
    for active in [false, true, true] {
        feed(&mut session, &stop(active));
    }
    let end = feed(&mut session, &result(&uuid, "")).unwrap();
    assert_eq!(end.held_stops, 2);
}
