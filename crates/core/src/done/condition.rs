//! The built-in conditions, the phases of the work that end with them, and who can prove a condition.

use std::fmt;

use serde::{Serialize, Serializer};

/// The nine built-in conditions, in the usual order of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// Lessons and past evidence were consulted.
    MemorySearch,
    /// The task has a complexity.
    TaskClassified,
    /// The task has no open questions.
    MustHaveAnswered,
    /// The user approved the plan in its current form.
    PlanApproved,
    /// Files were changed, within scope.
    ImplementationComplete,
    CorrectnessPassed,
    QualityPassed,
    /// If the task is complex, someone tried to refute the work.
    AdversarialPassed,
    /// A lesson was recorded.
    RetrospectiveDone,
}

impl Condition {
    pub const ALL: [Self; 9] = [
        Self::MemorySearch,
        Self::TaskClassified,
        Self::MustHaveAnswered,
        Self::PlanApproved,
        Self::ImplementationComplete,
        Self::CorrectnessPassed,
        Self::QualityPassed,
        Self::AdversarialPassed,
        Self::RetrospectiveDone,
    ];

    /// The name in config, JSON and state files.
    pub fn name(self) -> &'static str {
        match self {
            Self::MemorySearch => "memory_search",
            Self::TaskClassified => "task_classified",
            Self::MustHaveAnswered => "must_have_answered",
            Self::PlanApproved => "plan_approved",
            Self::ImplementationComplete => "implementation_complete",
            Self::CorrectnessPassed => "correctness_passed",
            Self::QualityPassed => "quality_passed",
            Self::AdversarialPassed => "adversarial_passed",
            Self::RetrospectiveDone => "retrospective_done",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|condition| condition.name() == name)
    }

    /// Whether a claim by the agent counts for it.
    pub fn can_be_claimed(self) -> bool {
        match self {
            Self::TaskClassified | Self::RetrospectiveDone => true,
            Self::MemorySearch
            | Self::MustHaveAnswered
            | Self::PlanApproved
            | Self::ImplementationComplete
            | Self::CorrectnessPassed
            | Self::QualityPassed
            | Self::AdversarialPassed => false,
        }
    }

    /// The phase of the work that ends with it.
    pub(super) fn phase(self) -> Phase {
        match self {
            Self::MemorySearch => Phase::Memory,
            Self::TaskClassified | Self::MustHaveAnswered | Self::PlanApproved => Phase::Planning,
            Self::ImplementationComplete => Phase::Implementation,
            Self::CorrectnessPassed | Self::QualityPassed | Self::AdversarialPassed => Phase::Quality,
            Self::RetrospectiveDone => Phase::Learning,
        }
    }

    /// The default prover.
    pub(super) fn prover(self) -> Prover {
        match self {
            Self::MemorySearch => Prover::Record,
            Self::TaskClassified | Self::MustHaveAnswered | Self::PlanApproved => Prover::Plan,
            Self::ImplementationComplete => Prover::Git,
            Self::CorrectnessPassed => Prover::Gate("correctness".to_owned()),
            Self::QualityPassed => Prover::Gate("quality".to_owned()),
            Self::AdversarialPassed => Prover::Gate("adversarial".to_owned()),
            Self::RetrospectiveDone => Prover::Lessons,
        }
    }
}

/// How far the work is, for state files of other tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Memory,
    Planning,
    Implementation,
    Quality,
    Learning,
    Complete,
}

impl Phase {
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Planning => "planning",
            Self::Implementation => "implementation",
            Self::Quality => "quality",
            Self::Learning => "learning",
            Self::Complete => "complete",
        }
    }
}

/// Who proves a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prover {
    /// The checks of a stage, run by Verdone.
    Gate(String),
    Git,
    Plan,
    /// The agent's claim, with a note: the weakest prover.
    Claim,
    /// A command that reports CI's result for a commit.
    Ci,
    /// A second agent that was asked to refute the work.
    Judge,
    /// What hooks recorded about the session.
    Record,
    /// The project's lessons.
    Lessons,
    /// Files of another tool.
    State,
}

impl Prover {
    /// The names that a config can use; `gate:` is followed by a stage.
    pub const NAMES: [&'static str; 6] = ["gate:<stage>", "git", "plan", "claim", "ci", "judge"];

    /// Parses the spelling used in the config; `None` if unknown.
    pub fn read(text: &str) -> Option<Self> {
        match text.trim() {
            "git" => Some(Self::Git),
            "plan" => Some(Self::Plan),
            "claim" => Some(Self::Claim),
            "ci" => Some(Self::Ci),
            "judge" => Some(Self::Judge),
            other => {
                let stage = other.strip_prefix("gate:")?.trim();
                (!stage.is_empty()).then(|| Self::Gate(stage.to_owned()))
            }
        }
    }
}

impl fmt::Display for Prover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gate(stage) => write!(f, "gate:{stage}"),
            Self::Git => f.write_str("git"),
            Self::Plan => f.write_str("plan"),
            Self::Claim => f.write_str("claim"),
            Self::Ci => f.write_str("ci"),
            Self::Judge => f.write_str("judge"),
            Self::Record => f.write_str("record"),
            Self::Lessons => f.write_str("lessons"),
            Self::State => f.write_str("state"),
        }
    }
}

impl Serialize for Prover {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
