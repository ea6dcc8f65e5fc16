//! How a client that talks over a pipe is driven: a state machine from its lines to steps, which the runtime performs.
//!
//! Pure: no process, no clock. A protocol never decides what an agent may do. It translates the client's requests into tool calls that
//! policy understands, and the verdicts back into the client's answers.

use std::fmt;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::claude::ContextUse;
use super::{AllowanceUse, TurnOutcome, Usage};

/// One client's protocol. A line that it does not understand is ignored, never an error.
pub trait Protocol: fmt::Debug + Send {
    /// Opens a session. The first one also introduces us to the client; a later one replaces the session in the same process.
    fn open(&mut self, opening: &Opening) -> Vec<Step>;

    /// Starts a turn of the open session.
    fn prompt(&mut self, text: &str) -> Vec<Step>;

    /// Handles one line of the client.
    fn line(&mut self, line: &[u8], now: Timestamp) -> Vec<Step>;

    /// Answers a [`Step::Ask`]. If the client cannot pass the reason of a denial on, a step keeps it for the next prompt.
    fn answer(&mut self, request: &str, verdict: &Verdict) -> Vec<Step>;

    /// Passes a text about its last call to the agent while it works, if the client can do that. Nothing is lost otherwise: the checks
    /// after the turn find the same.
    fn inform(&mut self, _text: &str) -> Vec<Step> {
        Vec::new()
    }

    /// Asks the client to end the turn. [`Step::TurnOver`] follows if it does.
    fn interrupt(&mut self) -> Vec<Step>;

    /// What to send before the pipe is closed.
    fn close(&mut self) -> Vec<Step> {
        Vec::new()
    }
}

/// The session to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opening {
    Fresh,
    Resume { session: String },
}

/// What to do next, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// A line for the client, without its line end.
    Send(String),
    /// The session is open: a prompt can be sent.
    Opened {
        session: String,
    },
    /// The session could not be opened.
    NotOpened(TurnOutcome),
    /// The agent's text, for people. May have several lines.
    Said(String),
    /// The client waits for a verdict.
    Ask(PermissionRequest),
    /// A call runs, or has run, without a question. If policy denies it, the guard did not work.
    Unasked(GuardedCall),
    /// A call has ended.
    Finished(FinishedCall),
    /// A text for the next prompt, which the agent could not be told during the turn.
    Keep(String),
    /// The context was measured.
    Context(ContextUse),
    /// The user's allowance was reported.
    Allowance(AllowanceUse),
    /// The conversation was replaced with a summary.
    Compacted,
    TurnOver(Box<TurnEnd>),
}

/// A question of the client. All calls must be allowed, or none runs.
#[derive(Debug, Clone, PartialEq)]
pub struct PermissionRequest {
    /// The protocol's name for it.
    pub request: String,
    pub calls: Vec<GuardedCall>,
    /// The protocol itself refuses it, for this reason: policy could not judge what would follow.
    pub refused: Option<String>,
}

/// A tool call in the vocabulary of policy: `Bash` with `command`, `Write` and `Edit` with `file_path`, `Read`, `mcp__server__tool`, ...
#[derive(Debug, Clone, PartialEq)]
pub struct GuardedCall {
    pub id: String,
    pub tool: String,
    pub input: Value,
    /// Where a command runs; `None`: where the session does.
    pub cwd: Option<String>,
}

impl GuardedCall {
    pub fn command(id: &str, command: &str, cwd: Option<&str>) -> Self {
        Self { id: id.to_owned(), tool: "Bash".to_owned(), input: json!({ "command": command }), cwd: cwd.map(str::to_owned) }
    }

    pub fn on_file(id: &str, tool: &str, path: &str) -> Self {
        Self { id: id.to_owned(), tool: tool.to_owned(), input: json!({ "file_path": path }), cwd: None }
    }
}

/// A call that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedCall {
    pub call: GuardedCall,
    /// The output, or why it failed.
    pub result: Result<String, CallFailure>,
    pub duration_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallFailure {
    pub exit_code: Option<i32>,
    pub output: String,
    pub interrupted: bool,
}

/// Policy's answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Allow,
    Deny { reason: String },
}

/// A finished turn of the client.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnEnd {
    pub outcome: TurnOutcome,
    /// What this turn alone used.
    pub usage: Usage,
    /// The agent's last message. A claim.
    pub said: String,
    /// The session itself is the problem: the next turn needs a fresh one.
    pub spent: bool,
    /// The client ended the turn because a call was denied, not because the agent was finished.
    pub by_denial: bool,
}

impl TurnEnd {
    /// A turn without usage and text.
    pub fn with_outcome(outcome: TurnOutcome) -> Self {
        Self { outcome, usage: Usage::default(), said: String::new(), spent: false, by_denial: false }
    }
}

/// The prompt that continues a turn which a denial ended.
pub fn prompt_after_denial(reasons: &[String]) -> String {
    format!("{}\nContinue with the work in another way.", denied_before(reasons))
}

/// Texts that the agent could not be told during the turn, for the beginning of its next prompt.
pub fn denied_before(reasons: &[String]) -> String {
    let mut text = "From Verdone, about your last tool calls:\n".to_owned();
    for reason in reasons {
        text.push_str("- ");
        text.push_str(&reason.lines().collect::<Vec<_>>().join("\n  "));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_prompt_says_why_calls_were_denied() {
        let text = prompt_after_denial(&["one\ntwo".to_owned(), "three".to_owned()]);
        assert!(text.contains("- one\n  two\n- three\n"), "{text}");
        assert!(text.ends_with("in another way."), "{text}");
    }
}
