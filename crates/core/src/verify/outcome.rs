//! The outcome of a story.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::proof::Proof;

/// The outcome of a story. Ordered from worst to best; the order matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// A check does not pass, or the agent gets a turn of feedback first.
    Failed,
    /// All checks pass, but a person has to review it. The attempt is kept, and no further attempt is made.
    NeedsReview,
    /// A person reviewed and accepted it.
    Accepted,
    Done,
}

impl Outcome {
    /// The name in JSON and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::NeedsReview => "needs-review",
            Self::Accepted => "accepted",
            Self::Done => "done",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The outcome of a story and its proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoryResult {
    pub outcome: Outcome,
    /// Absent if nothing was proven.
    pub proof: Option<Proof>,
}

impl StoryResult {
    /// One per name, best first. Used to list and count stories.
    pub const KINDS: [Self; 7] = [
        Self::done(Proof::Verified),
        Self::done(Proof::AgentTested),
        Self::done(Proof::Untested),
        Self::done(Proof::Unchecked),
        Self { outcome: Outcome::Accepted, proof: None },
        Self { outcome: Outcome::NeedsReview, proof: None },
        Self::FAILED,
    ];

    pub const FAILED: Self = Self { outcome: Outcome::Failed, proof: None };

    pub const fn done(proof: Proof) -> Self {
        Self { outcome: Outcome::Done, proof: Some(proof) }
    }

    /// Whether the story's work is accepted: because of its proof, or by a person.
    pub fn is_taken(self) -> bool {
        match self.outcome {
            Outcome::Done | Outcome::Accepted => true,
            Outcome::Failed | Outcome::NeedsReview => false,
        }
    }

    /// Whether checks support it.
    pub fn is_checked(self) -> bool {
        self.is_taken() && self.proof.is_some_and(|proof| proof > Proof::Unchecked)
    }

    /// The name of the result. For work that is done, that is its proof.
    pub fn name(self) -> &'static str {
        match (self.outcome, self.proof) {
            (Outcome::Done, Some(proof)) => proof.name(),
            (outcome, _) => outcome.name(),
        }
    }
}
