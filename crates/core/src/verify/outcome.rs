//! What became of a story.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Ordered from worst to best: the order is the meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// A check does not pass, or the agent gets a turn of feedback first.
    Failed,
    /// All checks pass, but a person has to look at it. The attempt is kept, and no further attempt is spent.
    NeedsReview,
    /// A person looked at it and took it.
    Accepted,
    Done,
}

impl Outcome {
    /// The word in JSON and messages.
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
