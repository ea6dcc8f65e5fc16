//! The report: each condition with its outcome, and the remaining work in words for an agent.

use serde::Serialize;

use super::Prover;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DoneReport {
    pub conditions: Vec<Judged>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Judged {
    pub name: String,
    /// Whether the work needs it to be done.
    pub required: bool,
    #[serde(flatten)]
    pub outcome: Outcome,
    pub prover: Prover,
}

/// The outcome of a condition. Ordered from best to worst; the order matters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
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
pub enum Standing {
    Done,
    Unknown,
    Open,
}

impl Outcome {
    pub fn words(&self) -> &'static str {
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

    pub(super) fn standing(&self) -> Standing {
        match self {
            Self::Held { .. } | Self::NotNeeded { .. } => Standing::Done,
            Self::Unknown { .. } => Standing::Unknown,
            Self::Missing { .. } => Standing::Open,
        }
    }
}

impl DoneReport {
    pub fn standing(&self) -> Standing {
        self.required().map(|judged| judged.outcome.standing()).max().unwrap_or(Standing::Unknown)
    }

    /// What is left to do, one line each, for an agent: why, and what to do.
    pub fn open(&self) -> Vec<String> {
        let line = |judged: &Judged| match &judged.outcome {
            Outcome::Missing { why, todo } => Some(format!("{}: {why}. {todo}.", judged.name)),
            Outcome::Unknown { why } => Some(format!("{}: nobody can tell: {why}.", judged.name)),
            Outcome::Held { .. } | Outcome::NotNeeded { .. } => None,
        };
        self.required().filter_map(line).collect()
    }

    /// Required conditions that could not be determined, one line each.
    pub fn unknown(&self) -> Vec<String> {
        let line = |judged: &Judged| match &judged.outcome {
            Outcome::Unknown { why } => Some(format!("{}: {why}", judged.name)),
            Outcome::Held { .. } | Outcome::NotNeeded { .. } | Outcome::Missing { .. } => None,
        };
        self.required().filter_map(line).collect()
    }

    pub fn get(&self, name: &str) -> Option<&Judged> {
        self.conditions.iter().find(|judged| judged.name == name)
    }

    fn required(&self) -> impl Iterator<Item = &Judged> {
        self.conditions.iter().filter(|judged| judged.required)
    }
}
