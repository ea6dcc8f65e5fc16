//! What went wrong, as a closed list: the words of a lesson that do not come from outside.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    CheckFailed,
    CheckUnclear,
    HiddenCheckFailed,
    ChangedTests,
    FewerTests,
    OutOfScope,
    Autorun,
    OtherStorysCheck,
    WeakProof,
    ConditionMissing,
    JudgeRefuted,
    NothingChanged,
    CommitRefused,
    TurnFailed,
    TestsFailed,
    StopCheck,
    StopCondition,
    StopOutOfScope,
    StopDoubt,
    StopDebris,
    StopUncommitted,
    StopUnchanged,
    StopTasks,
    /// The only kind that repeats an agent.
    AgentNote,
}

impl Kind {
    pub const ALL: [Self; 24] = [
        Self::CheckFailed,
        Self::CheckUnclear,
        Self::HiddenCheckFailed,
        Self::ChangedTests,
        Self::FewerTests,
        Self::OutOfScope,
        Self::Autorun,
        Self::OtherStorysCheck,
        Self::WeakProof,
        Self::ConditionMissing,
        Self::JudgeRefuted,
        Self::NothingChanged,
        Self::CommitRefused,
        Self::TurnFailed,
        Self::TestsFailed,
        Self::StopCheck,
        Self::StopCondition,
        Self::StopOutOfScope,
        Self::StopDoubt,
        Self::StopDebris,
        Self::StopUncommitted,
        Self::StopUnchanged,
        Self::StopTasks,
        Self::AgentNote,
    ];

    /// How its line begins. Lines in users' files are recognised by it, so it must not change.
    pub fn line_start(self) -> &'static str {
        match self {
            Self::CheckFailed => "A check failed",
            Self::CheckUnclear => "A check gave no result",
            Self::HiddenCheckFailed => "A hidden check failed",
            Self::ChangedTests => "Work passed only with changed tests or configuration",
            Self::FewerTests => "Fewer tests passed than before the work",
            Self::OutOfScope => "A file outside the story's scope was changed",
            Self::Autorun => "A file that runs outside the workspace was changed",
            Self::OtherStorysCheck => "A file that checks another story was changed",
            Self::WeakProof => "The proof was too weak: a test that fails without the work was missing",
            Self::ConditionMissing => "A condition of done was not met",
            Self::JudgeRefuted => "The judge refuted work that passed its checks",
            Self::NothingChanged => "An attempt changed no file",
            Self::CommitRefused => "The commit was refused",
            Self::TurnFailed => "A turn crashed or ran out of time",
            Self::TestsFailed => "The agent's own test runs kept failing",
            Self::StopCheck => "Sessions stopped before this check passed",
            Self::StopCondition => "Sessions stopped before the conditions of done were met",
            Self::StopOutOfScope => "Sessions stopped with changes outside the story's scope",
            Self::StopDoubt => "Sessions stopped with work that a person has to review",
            Self::StopDebris => "Sessions stopped with traces of debugging in the work",
            Self::StopUncommitted => "Sessions stopped with uncommitted changes",
            Self::StopUnchanged => "Sessions stopped without changing a file",
            Self::StopTasks => "Sessions stopped with unfinished tasks",
            Self::AgentNote => "An agent noted",
        }
    }

    /// Whether it comes from the Stop gate. Such a lesson concerns every session.
    pub fn is_stop(self) -> bool {
        match self {
            Self::StopCheck
            | Self::StopCondition
            | Self::StopOutOfScope
            | Self::StopDoubt
            | Self::StopDebris
            | Self::StopUncommitted
            | Self::StopUnchanged
            | Self::StopTasks => true,
            Self::CheckFailed
            | Self::CheckUnclear
            | Self::HiddenCheckFailed
            | Self::ChangedTests
            | Self::FewerTests
            | Self::OutOfScope
            | Self::Autorun
            | Self::OtherStorysCheck
            | Self::WeakProof
            | Self::ConditionMissing
            | Self::JudgeRefuted
            | Self::NothingChanged
            | Self::CommitRefused
            | Self::TurnFailed
            | Self::TestsFailed
            | Self::AgentNote => false,
        }
    }
}
