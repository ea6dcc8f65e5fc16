//! The report: each condition with its outcome, and the remaining work in words for an agent.

use serde::Serialize;

use super::{Condition, Phase, Prover};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DoneReport {
    pub conditions: Vec<JudgedCondition>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct JudgedCondition {
    pub name: String,
    /// Whether the work needs it to be done.
    pub required: bool,
    #[serde(flatten)]
    pub outcome: ConditionOutcome,
    pub prover: Prover,
}

/// The outcome of a condition. Ordered from best to worst; the order matters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum ConditionOutcome {
    Held {
        by: String,
    },
    NotNeeded {
        why: String,
    },
    /// Could not be determined. Never counts as met.
    Unknown {
        why: String,
    },
    Missing {
        why: String,
        todo: String,
    },
}

/// The worst of the required outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DoneState {
    Done,
    Unknown,
    Open,
}

impl ConditionOutcome {
    pub fn describe(&self) -> &'static str {
        match self {
            Self::Held { .. } => "held",
            Self::NotNeeded { .. } => "not needed",
            Self::Unknown { .. } => "unknown",
            Self::Missing { .. } => "missing",
        }
    }

    /// The value for state files of other tools: `None` if unknown.
    pub fn as_flag(&self) -> Option<bool> {
        match self {
            Self::Held { .. } | Self::NotNeeded { .. } => Some(true),
            Self::Unknown { .. } => None,
            Self::Missing { .. } => Some(false),
        }
    }

    pub(super) fn standing(&self) -> DoneState {
        match self {
            Self::Held { .. } | Self::NotNeeded { .. } => DoneState::Done,
            Self::Unknown { .. } => DoneState::Unknown,
            Self::Missing { .. } => DoneState::Open,
        }
    }
}

impl DoneReport {
    pub fn standing(&self) -> DoneState {
        self.required().map(|judged| judged.outcome.standing()).max().unwrap_or(DoneState::Unknown)
    }

    /// What is left to do, one line each, for an agent: why, and what to do.
    pub fn open(&self) -> Vec<String> {
        let line = |judged: &JudgedCondition| match &judged.outcome {
            ConditionOutcome::Missing { why, todo } => Some(format!("{}: {why}. {todo}.", judged.name)),
            ConditionOutcome::Unknown { why } => Some(format!("{}: unknown: {why}.", judged.name)),
            ConditionOutcome::Held { .. } | ConditionOutcome::NotNeeded { .. } => None,
        };
        self.required().filter_map(line).collect()
    }

    /// Required conditions that could not be determined, one line each.
    pub fn unknown(&self) -> Vec<String> {
        let line = |judged: &JudgedCondition| match &judged.outcome {
            ConditionOutcome::Unknown { why } => Some(format!("{}: {why}", judged.name)),
            ConditionOutcome::Held { .. } | ConditionOutcome::NotNeeded { .. } | ConditionOutcome::Missing { .. } => None,
        };
        self.required().filter_map(line).collect()
    }

    /// The phase of the first required condition that is not met. Conditions of the user's belong to the implementation.
    pub fn phase(&self) -> Phase {
        if self.standing() == DoneState::Done {
            return Phase::Complete;
        }
        let is_open = |condition: &Condition| {
            self.required().any(|judged| judged.name == condition.name() && judged.outcome.standing() != DoneState::Done)
        };
        Condition::ALL.into_iter().find(is_open).map_or(Phase::Implementation, Condition::phase)
    }

    pub fn get(&self, name: &str) -> Option<&JudgedCondition> {
        self.conditions.iter().find(|judged| judged.name == name)
    }

    fn required(&self) -> impl Iterator<Item = &JudgedCondition> {
        self.conditions.iter().filter(|judged| judged.required)
    }
}
