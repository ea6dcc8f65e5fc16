//! How well a story is proven.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How well a story is proven. Ordered from weakest to strongest; the order matters. Names from older journals and notes are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Proof {
    /// No check ran.
    #[serde(alias = "unverified")]
    Unchecked,
    /// Only the general gates pass.
    #[serde(alias = "unproven")]
    Untested,
    /// Tests that the agent wrote fail without the work and pass with it.
    AgentTested,
    /// The story's own check failed before the work and passes now.
    Verified,
}

impl Proof {
    pub const ALL: [Self; 4] = [Self::Verified, Self::AgentTested, Self::Untested, Self::Unchecked];

    /// The name in config, plans, JSON and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unchecked => "unchecked",
            Self::Untested => "untested",
            Self::AgentTested => "agent-tested",
            Self::Verified => "verified",
        }
    }
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown proof {0:?}: use verified, agent-tested, untested or unchecked")]
pub struct UnknownProof(pub String);

impl FromStr for Proof {
    type Err = UnknownProof;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word.trim().to_ascii_lowercase().as_str() {
            "verified" => Ok(Self::Verified),
            "agent-tested" => Ok(Self::AgentTested),
            "untested" | "unproven" => Ok(Self::Untested),
            "unchecked" | "unverified" => Ok(Self::Unchecked),
            _ => Err(UnknownProof(word.to_owned())),
        }
    }
}
