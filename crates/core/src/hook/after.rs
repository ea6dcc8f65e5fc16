//! After a tool call: updates the session's memory, evaluates test runs and their effect on the turn, and selects the user's commands.

use serde_json::Value;

use super::after_tool::due;
use super::record::cut;
use super::session_fold;
use super::{Answer, Record, Response, Situation, Streak, TestRuns, ToolCall};
use crate::policy::{self, Mode, ToolKind, kind_of, reads, writes};
use verdone_testlog::{TestOutcome, TestState};

/// How an executed call ended.
pub(super) struct Ended<'a> {
    pub(super) event: &'a str,
    pub(super) duration_ms: u64,
    pub(super) result: Result<Option<&'a str>, &'a str>,
    pub(super) interrupted: bool,
}

pub(super) fn after(
    call: &ToolCall<'_>,
    parsed: Option<&policy::ToolCall>,
    ended: &Ended<'_>,
    situation: &Situation<'_>,
) -> Response {
    let failed = ended.result.is_err();
    let mut known = Vec::new();
    let mut files = Vec::new();
    let mut unread = Vec::new();
    if let Some(parsed) = parsed {
        let shell = kind_of(&parsed.tool) == ToolKind::Shell;
        files = writes(parsed, situation.context);
        // A failed command has usually read the files it names; a failed file tool has done nothing.
        if !ended.interrupted && (shell || !failed) {
            known = reads(parsed, situation.context);
            known.extend(files.iter().cloned());
        } else if kind_of(&parsed.tool) == ToolKind::Read {
            unread = reads(parsed, situation.context);
        }
    }
    let mut records = vec![Record::Ran {
        tool: cut(&call.tool),
        id: call.id.as_deref().map(cut),
        failed,
        interrupted: ended.interrupted,
        duration_ms: ended.duration_ms,
        files: files.iter().take(20).map(|path| cut(path)).collect(),
    }];
    records.extend(parsed.filter(|_| !ended.interrupted).and_then(|parsed| session_fold::recalled(parsed, &known)));
    records.extend(parsed.filter(|_| !failed).and_then(session_fold::task_changed));
    let outcome = parsed.filter(|_| !ended.interrupted).and_then(|parsed| tests_of(parsed, ended));
    let mut response = Response { known, unread, ..Response::default() };
    if let Some(outcome) = outcome {
        match outcome.state {
            TestState::Failed | TestState::Broken => {
                response.answer = failing(&outcome, ended.event, situation);
                response.streak = Streak::Longer;
            }
            TestState::Passed => response.streak = Streak::Over,
            TestState::NothingRan => {}
        }
        records.push(Record::Tests { outcome });
    }
    match (&response.answer, parsed) {
        // An attempt that is about to end needs no formatter.
        (Answer::EndTurn { reason }, _) => records.push(Record::EndsTurn { reason: cut(reason) }),
        (_, Some(parsed)) if !failed => response.commands = due(situation.after_tool, parsed, situation.context),
        (_, Some(_) | None) => {}
    }
    Response { records, ..response }
}

/// The answer to a failed test run: feedback, or the end of the turn if too many failed in a row.
fn failing(outcome: &TestOutcome, event: &str, situation: &Situation<'_>) -> Answer {
    let mut text = verdone_testlog::describe_outcome(outcome);
    match (situation.context.mode, situation.tests) {
        (Mode::Run, Some(TestRuns { failing, patience: Some(patience) })) => {
            let count = failing.saturating_add(1);
            let first = text.lines().next().unwrap_or_default();
            if count >= patience {
                let reason = match count {
                    1 => format!("the agent's test run failed. {first}"),
                    _ => format!("{count} test runs of the agent failed in a row. {first}"),
                };
                return Answer::EndTurn { reason };
            }
            text.push_str(&format!("\nThis is failing test run {count} in a row; at {patience} Verdone rolls the attempt back."));
        }
        (Mode::Run, Some(TestRuns { patience: None, .. }) | None) => {
            text.push_str("\nVerdone runs the checks itself after the turn: work continues until they pass.");
        }
        (Mode::Interactive, _) => {}
    }
    Answer::Context { event: event.to_owned(), text }
}

/// The test outcome of a shell command.
fn tests_of(call: &policy::ToolCall, ended: &Ended<'_>) -> Option<TestOutcome> {
    if kind_of(&call.tool) != ToolKind::Shell {
        return None;
    }
    let line = call.text("command").or_else(|| call.text("cmd"))?;
    let (exit_code, output) = match ended.result {
        Ok(response) => (Some(0), said(response.unwrap_or("null"))),
        Err(error) => failure(error),
    };
    verdone_testlog::read_line(line, exit_code, &output)
}

/// The output in the client's response to a command that exited with 0.
fn said(response: &str) -> String {
    match serde_json::from_str(response) {
        Ok(Value::String(text)) => text,
        Ok(value) => {
            let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
            [text("stdout"), text("stderr")].join("\n")
        }
        Err(_) => String::new(),
    }
}

/// `Exit code 1`, followed by the output. Without that line the exit code is unknown.
fn failure(error: &str) -> (Option<i32>, String) {
    let (first, rest) = error.split_once('\n').unwrap_or((error, ""));
    match first.trim().strip_prefix("Exit code ").and_then(|code| code.trim().parse().ok()) {
        Some(code) => (Some(code), rest.to_owned()),
        None => (None, error.to_owned()),
    }
}
