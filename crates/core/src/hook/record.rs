//! What a session's own files keep of a hook call, one object a line.

use serde::{Deserialize, Serialize};

use super::StopRecord;
use super::tally::Spent;
use crate::base::id::Oid;
use crate::base::verdict::PolicyVerdict;
use crate::policy::{Decision, Source};
use crate::test_outcome::TestOutcome;

/// Longer texts are cut: a record is for people and for counting, not a copy of the call.
const LONGEST: usize = 1_000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// The guard is live.
    Started {
        source: String,
    },
    /// A prompt; which rule refused it, if one did.
    Prompt {
        refused_by: Option<String>,
    },
    /// What was decided about a call.
    Decided {
        tool: String,
        id: Option<String>,
        verdict: PolicyVerdict,
        /// Name of the rule, and where it was written.
        rule: Option<String>,
        place: Option<String>,
        /// The command or path that the rule is about.
        about: Option<String>,
        reason: String,
        /// Denied only because nobody is there to be asked.
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
    /// What a command that runs tests showed.
    Tests {
        outcome: TestOutcome,
    },
    /// The hook ended the turn: the driver of the run rolls the attempt back.
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
        /// The first of them.
        files: Vec<String>,
        count: usize,
        /// Whether the command counts as failed for it.
        blocked: bool,
    },
    /// A command left git where it should not be.
    GitState {
        what: String,
        blocked: bool,
    },
    /// Settings changed under the session.
    Settings {
        source: String,
        file: Option<String>,
        refused: bool,
    },
    /// The turn ended by an error of the API.
    TurnFailed {
        error: String,
    },
    /// What the session has cost in all, where the client says so.
    Spent(Spent),
    Ended {
        reason: String,
    },
    /// Where HEAD was when a session began: what was committed since is the session's.
    Began {
        head: Oid,
    },
    /// The project's lessons when a session began: what a later look is compared with.
    Lessons {
        /// Lines that say something.
        lines: u32,
        digest: String,
        /// Whether the agent was given them.
        told: bool,
    },
    /// Lessons or past evidence were looked at.
    Recalled {
        by: String,
    },
    /// A task of the client's own list was made, or is worked on again.
    TaskOpened {
        task: String,
        /// Empty where it was named before.
        subject: String,
    },
    /// It was finished or deleted.
    TaskClosed {
        task: String,
    },
    /// Whether a turn, a subagent or a task could end.
    Stop(StopRecord),
    /// The session ended with a loop's work open.
    Incomplete {
        story: Option<String>,
        reason: String,
    },
    /// Anything else; the event's name is beside it.
    Seen,
    /// Verdone itself could not judge.
    Failed(Failed),
}

/// A fault of ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    pub cause: String,
    /// Whether something was denied because of it.
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
