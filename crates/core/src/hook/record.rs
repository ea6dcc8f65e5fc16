//! The records of hook calls in a session's files, one JSON object per line.

use serde::{Deserialize, Serialize};

use super::StopRecord;
use super::tally::Spent;
use crate::base::id::Oid;
use crate::base::verdict::PolicyVerdict;
use crate::policy::{Decision, Source};
use verdone_testlog::TestOutcome;

/// Longer texts are truncated: a record is for people and for counting, not a copy of the call.
const LONGEST: usize = 1_000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// A session started with the guard active.
    Started {
        source: String,
    },
    /// A prompt, and the rule that refused it, if any.
    Prompt {
        refused_by: Option<String>,
        /// What was typed, truncated. Empty in records of earlier versions.
        #[serde(default)]
        text: String,
    },
    /// The decision on a call.
    Decided {
        tool: String,
        id: Option<String>,
        verdict: PolicyVerdict,
        /// The rule's name and where it is defined.
        rule: Option<String>,
        place: Option<String>,
        /// The command or path that the rule matched.
        about: Option<String>,
        reason: String,
        /// Denied only because no person was available to ask.
        needs_human: bool,
    },
    /// A call that was executed.
    Ran {
        tool: String,
        id: Option<String>,
        failed: bool,
        interrupted: bool,
        duration_ms: u64,
        files: Vec<String>,
    },
    /// The outcome of a command that ran tests.
    Tests {
        outcome: TestOutcome,
    },
    /// The hook ended the turn; the driver of the run rolls the attempt back.
    EndsTurn {
        reason: String,
    },
    /// A command of `[[after_tool]]`.
    AfterTool {
        command: String,
        file: Option<String>,
        outcome: String,
        failed: bool,
        duration_ms: u64,
    },
    /// Files outside the story's scope were changed.
    Outside {
        /// The first few files.
        files: Vec<String>,
        count: usize,
        /// Whether the command therefore counts as failed.
        blocked: bool,
    },
    /// A command left git in a wrong state.
    GitState {
        what: String,
        blocked: bool,
    },
    /// Settings changed during the session.
    Settings {
        source: String,
        file: Option<String>,
        refused: bool,
    },
    /// The turn ended with an API error.
    TurnFailed {
        error: String,
    },
    /// The session's total cost, if the client reports it.
    Spent(Spent),
    Ended {
        reason: String,
    },
    /// HEAD at the start of the session: later commits belong to the session.
    Began {
        head: Oid,
    },
    /// The project's lessons at the start of the session, for later comparison.
    Lessons {
        /// The number of lines with content.
        lines: u32,
        digest: String,
        /// Whether the agent received them.
        told: bool,
    },
    /// The agent looked at lessons or past evidence.
    Recalled {
        by: String,
    },
    /// A task in the client's task list was created or reopened.
    TaskOpened {
        task: String,
        /// Empty if an earlier record has it.
        subject: String,
    },
    /// A task was finished or deleted.
    TaskClosed {
        task: String,
    },
    /// Whether a turn, a subagent or a task was allowed to end.
    Stop(StopRecord),
    /// The session ended with unfinished work of a loop.
    Incomplete {
        story: Option<String>,
        reason: String,
    },
    /// Any other event; its name is stored beside the record.
    Seen,
    /// Verdone itself failed to judge.
    Failed(Failed),
}

/// A failure of Verdone itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    pub cause: String,
    /// Whether it led to a denial.
    pub denied: bool,
}

impl Record {
    pub(super) fn decided(call: &super::ToolCall<'_>, decision: &Decision) -> Self {
        let place = decision.rule.as_ref().map(|(_, source)| match source {
            Source::BuiltIn => "built in".to_owned(),
            Source::File { path, line } => format!("{path}:{line}"),
        });
        let about = decision.command.as_ref().map(|found| &found.text).filter(|text| !text.is_empty()).or(decision.path.as_ref());
        Self::Decided {
            tool: cut(&call.tool),
            id: call.id.as_deref().map(cut),
            verdict: decision.verdict,
            rule: decision.rule.as_ref().map(|(name, _)| name.clone()),
            place,
            about: about.map(|text| cut(text)),
            reason: cut(&decision.reason),
            needs_human: decision.needs_human,
        }
    }
}

pub(super) fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(LONGEST)].to_owned()
}
