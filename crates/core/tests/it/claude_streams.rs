//! Replays real streams of the real client, also cut, mixed up or with invalid text.
//!
//! `expected.txt` has the result of each stream: one line per turn, and the state at the end. Run with `VERDONE_BLESS=1` to rewrite it, and
//! compare the difference with the streams.

#![expect(clippy::disallowed_methods, reason = "fixtures are files")]
#![expect(clippy::unwrap_used, reason = "a fixture that cannot be read is a failed test")]

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use jiff::Timestamp;
use proptest::prelude::*;
use verdone_core::agent::TurnOutcome;
use verdone_core::agent::claude::{ClientLine, Liveness, Nonce, Session, TurnEnd, Uuid, parse};
use verdone_core::hook::{HookEvent, HookInput};

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/claude")
}

fn stream(name: &str) -> Vec<u8> {
    fs::read(directory().join(format!("{name}.jsonl"))).unwrap()
}

fn streams() -> Vec<(String, Vec<u8>)> {
    let names = fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter_map(|name| name.strip_suffix(".jsonl").map(str::to_owned)).collect();
    names.sort();
    assert!(names.len() > 25, "the streams are not there");
    names.into_iter().map(|name| (name.clone(), stream(&name))).collect()
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

fn now() -> Timestamp {
    "2026-11-15T00:35:41Z".parse().unwrap()
}

fn uuid(n: u8) -> Uuid {
    Uuid::from_random([n; 16])
}

/// Feeds a stream; like a driver, it sends a prompt at the start and after each turn.
fn replay(bytes: &[u8]) -> (Session, Vec<TurnEnd>) {
    let mut session = Session::fresh(&uuid(0));
    session.sent(&uuid(1));
    let mut ends = Vec::new();
    for line in lines(bytes) {
        let line = parse(line).unwrap();
        if let ClientLine::HookCallback(callback) = &line
            && let Ok(HookInput { event: HookEvent::PreToolUse(call), .. }) = HookInput::parse(callback.input.get().as_bytes())
        {
            session.judged(call.id.as_deref().unwrap_or_default());
        }
        if let Some(end) = session.feed(&line, now()) {
            ends.push(end);
            session.sent(&uuid(2));
        }
    }
    (session, ends)
}

fn told(name: &str, bytes: &[u8]) -> String {
    let (session, ends) = replay(bytes);
    let mut out = format!("{name}\n");
    for end in &ends {
        let _ = write!(out, "  turn {} (results {}, ", end.outcome.describe(), end.results);
        let _ = write!(out, "calls {}+{}, ", end.executed, end.refused);
        let _ = write!(out, "cost {:.4}, tokens {}", end.usage.cost_usd, end.usage.tokens.all());
        if let Some(context) = end.context {
            let _ = write!(out, ", context {} of {}", context.tokens, context.window.unwrap_or(0));
        }
        for (count, what) in [(end.compactions, "compactions"), (end.api_retries, "retries"), (end.garbage, "garbage")] {
            if count > 0 {
                let _ = write!(out, ", {what} {count}");
            }
        }
        for task in &end.background {
            let _ = write!(out, ", in the background {:?}", task.description);
        }
        if end.spent {
            let _ = write!(out, ", spent");
        }
        if let Some(reason) = end.terminal_reason.as_deref().filter(|reason| *reason != "completed") {
            let _ = write!(out, ", {reason}");
        }
        if !end.unknown.is_empty() {
            let _ = write!(out, ", unknown {}", end.unknown.join(" "));
        }
        let said = end.said.lines().next().unwrap_or_default();
        let _ = writeln!(out, ") {:?}", said.chars().take(50).collect::<String>());
    }
    let _ = writeln!(out, "  end {}, model {}", session.id(), session.model().unwrap_or("unknown"));
    out
}

#[test]
fn every_real_stream_comes_to_what_is_expected() {
    let seen: String = streams().iter().map(|(name, bytes)| told(name, bytes)).collect();
    let path = directory().join("expected.txt");
    if std::env::var_os("VERDONE_BLESS").is_some() {
        fs::write(&path, &seen).unwrap();
    }
    assert_eq!(fs::read_to_string(path).unwrap(), seen);
}

#[test]
fn no_real_line_is_garbage() {
    for (name, bytes) in streams() {
        for line in lines(&bytes) {
            assert!(!matches!(parse(line), Some(ClientLine::Garbage { .. }) | None), "{name}");
        }
    }
}

#[test]
fn prompts_are_matched_with_results_by_their_ids() {
    let ids =
        ["d384df3a-47c9-489d-bbd3-c95d36c58257", "224afaba-ec86-48be-b16e-c21f37f502d8", "0f410fd4-f2f0-472f-bf95-5b3189511fd9"];
    let mut session = Session::fresh(&uuid(0));
    for id in ids {
        session.sent(&Uuid::parse(id).unwrap());
    }
    let stream = stream("queued_messages_coalesced");
    let ends: Vec<TurnEnd> = lines(&stream).filter_map(|line| session.feed(&parse(line).unwrap(), now())).collect();
    assert_eq!(ends.len(), 1, "two results are one turn when one of the prompts waits for the second");
    assert_eq!((ends[0].results, ends[0].said.as_str(), &ends[0].outcome), (2, "a2", &TurnOutcome::Ended));

    let mut session = Session::fresh(&uuid(0));
    session.sent(&Uuid::parse(ids[0]).unwrap());
    let first = lines(&stream).find_map(|line| session.feed(&parse(line).unwrap(), now())).unwrap();
    assert_eq!((first.results, first.said.as_str()), (1, "a1"));

    let mut session = Session::fresh(&uuid(0));
    session.sent(&uuid(9));
    assert!(
        lines(&stream).all(|line| session.feed(&parse(line).unwrap(), now()).is_none()),
        "results of other prompts are not ours"
    );
}

#[test]
fn a_turn_with_a_subagent_is_over_when_the_subagent_is() {
    let mut session = Session::fresh(&uuid(0));
    session.sent(&uuid(1));
    let stream = stream("background_subagent");
    let ends: Vec<TurnEnd> = lines(&stream).filter_map(|line| session.feed(&parse(line).unwrap(), now())).collect();
    assert_eq!(ends.len(), 1);
    assert_eq!((ends[0].results, ends[0].said.as_str(), ends[0].background.len()), (3, "main woke", 0));
    assert!((ends[0].usage.cost_usd - 0.004).abs() < 1e-9, "{:?}", ends[0].usage);
}

#[test]
fn the_guard_is_alive_where_every_executed_call_was_judged() {
    let (session, _) = replay(&stream("hook_callbacks.out"));
    assert_eq!(session.liveness(Nonce::Seen), Liveness::Alive);
    let (session, ends) = replay(&stream("permission_denied"));
    assert_eq!((ends[0].executed, ends[0].refused), (0, 1));
    assert_eq!(session.liveness(Nonce::Seen), Liveness::Alive, "what the client refused needs no judge");
    let (session, _) = replay(&stream("basic_with_hook_events"));
    assert!(matches!(session.liveness(Nonce::Seen), Liveness::Dead { .. }), "nobody judged these");
}

#[test]
fn a_process_that_dies_in_a_turn_ends_it() {
    let whole = stream("max_turns");
    let cut: Vec<&[u8]> = lines(&whole).take(5).collect();
    let (mut session, ends) = replay(&cut.join(&b'\n'));
    assert!(ends.is_empty());
    let exit = verdone_core::agent::claude::ClientExit { how: "signal 9".to_owned(), last_words: "x\n  boom \n\n".to_owned() };
    let end = session.exited(&exit).unwrap();
    assert_eq!(end.outcome, TurnOutcome::Crashed { reason: "signal 9: boom".to_owned() });
    assert_eq!(session.exited(&exit), None);
}

#[test]
fn lines_cut_at_any_byte_are_never_an_error() {
    let mut seen = std::collections::BTreeSet::new();
    for (name, bytes) in streams() {
        let mut session = Session::resumed(&uuid(0));
        session.sent(&uuid(1));
        for line in lines(&bytes) {
            let kind = line.iter().take(60).copied().collect::<Vec<u8>>();
            if !seen.insert(kind) {
                continue;
            }
            // Every byte of a short line; for a long one, positions that together cover every kind of byte.
            let step = if line.len() <= 700 { 1 } else { line.len() / 97 };
            for end in (0..line.len()).step_by(step) {
                match parse(&line[..end]) {
                    None => assert_eq!(end, 0, "{name}"),
                    Some(ClientLine::Garbage { text }) => assert!(!text.is_empty()),
                    Some(other) => panic!("{name}: {other:?} of {:?}", String::from_utf8_lossy(&line[..end])),
                }
            }
            let line = parse(line).unwrap();
            let _ = line.said();
            let _ = session.feed(&line, now());
        }
    }
    assert!(seen.len() > 60, "{}", seen.len());
}

#[test]
fn what_is_no_line_of_the_client_is_kept_and_shown() {
    for (bytes, shown) in [
        (&b"Error: something on stdout"[..], "Error: something on stdout"),
        (b"\xff\xfe{}", "\u{fffd}\u{fffd}{}"),
        (b"{\"type\":\"result\",\"result\":\"\xc3\"}", "{\"type\":\"result\",\"result\":\"\u{fffd}\"}"),
        (b"[1,2]", "[1,2]"),
        (b"{}", "{}"),
        (b"{\"type\":7}", "{\"type\":7}"),
        (b"{\"type\":\"assistant\"} trailing", "{\"type\":\"assistant\"} trailing"),
        (b"{\"type\":\"control_request\",\"request\":{}}", "{\"type\":\"control_request\",\"request\":{}}"),
    ] {
        let line = parse(bytes).unwrap();
        assert!(matches!(&line, ClientLine::Garbage { text } if text == shown), "{line:?}");
        assert_eq!(line.said().as_deref(), Some(shown));
    }
    assert!(parse(b"").is_none() && parse(b" \r\n").is_none());
    for (text, expected) in [
        ("{\"type\":\"brand_new\",\"x\":[{}]}", "brand_new"),
        ("{\"type\":\"system\",\"subtype\":\"brand_new\"}", "system/brand_new"),
        ("{\"a\":1,\"subtype\":\"late\",\"type\":\"system\"}", "system/late"),
        ("{\"type\":\"system\"}", "system"),
        ("{\"type\":\"od\\u0064\"}", "odd"),
    ] {
        let line = parse(text.as_bytes()).unwrap();
        assert!(matches!(&line, ClientLine::Unknown { kind } if kind == expected), "{line:?}");
    }
}

#[test]
fn fields_of_another_type_do_not_cost_the_line() {
    let odd = [
        r#"{"type":"result","subtype":7,"is_error":"yes","usage":[],"modelUsage":"none","permission_denials":{"a":1},"errors":[1,"e",{}],"origin":"x","total_cost_usd":"0.1","user_message_uuids":[null,"u"]}"#,
        r#"{"type":"assistant","message":"text","error":{"a":[1]},"parent_tool_use_id":false}"#,
        r#"{"type":"assistant","message":{"content":"text","usage":{"input_tokens":-1,"output_tokens":1.5e300}}}"#,
        r#"{"type":"user","message":{"content":[1,"x",null,{"tool_use_id":7},{"tool_use_id":"t","is_error":3}]},"tool_result_meta":[1]}"#,
        r#"{"type":"system","subtype":"init","session_id":1,"mcp_servers":{"a":"b"},"model":null}"#,
        r#"{"type":"system","subtype":"session_state_changed","state":["idle"]}"#,
        r#"{"type":"rate_limit_event","rate_limit_info":{"resetsAt":"soon","unifiedWindows":{"x":1,"y":{"utilization":"z"}}}}"#,
        r#"{"type":"control_response","response":[]}"#,
        r#"{"type":"control_request","request_id":"r","request":"none"}"#,
    ];
    let mut session = Session::fresh(&uuid(0));
    session.sent(&uuid(1));
    for text in odd {
        let line = parse(text.as_bytes()).unwrap();
        assert!(!matches!(line, ClientLine::Garbage { .. } | ClientLine::Unknown { .. }), "{line:?}");
        let _ = line.said();
        let _ = session.feed(&line, now());
    }
    let ClientLine::User(user) = parse(odd[3].as_bytes()).unwrap() else { panic!() };
    assert_eq!(user.tool_results.iter().map(|result| result.id.as_ref()).collect::<Vec<_>>(), ["t"]);
}

proptest! {
    #[test]
    fn any_bytes_are_a_line(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Some(line) = parse(&bytes) {
            let _ = line.said();
        }
    }

    #[test]
    fn lines_in_any_order_break_nothing(order in proptest::collection::vec((0_usize..28, 0_usize..60, 0_u8..8), 0..60)) {
        thread_local!(static ALL: Vec<Vec<Vec<u8>>> =
            streams().iter().map(|(_, bytes)| lines(bytes).map(<[u8]>::to_vec).collect()).collect());
        ALL.with(|all| {
            let mut session = Session::fresh(&uuid(0));
            let mut spent = 0.0;
            for (file, line, act) in order {
                match act {
                    0 => session.sent(&uuid(3)),
                    1 => session.interrupt(),
                    2 => session.judged("toolu_x"),
                    _ => {}
                }
                let file = &all[file % all.len()];
                let line = parse(&file[line % file.len()]).unwrap();
                if let Some(end) = session.feed(&line, now()) {
                    assert!(end.usage.cost_usd >= 0.0 && end.results > 0);
                    spent += end.usage.cost_usd;
                }
            }
            assert!(spent <= session.total().cost_usd + 1e-9);
            let _ = session.liveness(Nonce::Seen);
        });
    }
}
