//! Outcomes are ordered values, never booleans.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the story's own checks said before the agent started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Red {
    /// At least one failed as it should: passing later proves something.
    Red,
    /// All passed already: the story is already true, or its checks prove nothing.
    Green,
    /// They could not tell (not found, not executable).
    Unknown,
    /// The story has no check of its own.
    Absent,
}

/// What config says about a story whose checks are green before any work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RedPolicy {
    /// Work on it; without other tests it is *untested* at best.
    #[default]
    Flag,
    /// Take it as already true: done without a turn, *untested*.
    Accept,
    /// Do not work on it: a human has to look.
    Refuse,
}

/// What the policy says about a tool call, from mildest to gravest: the gravest of several counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PolicyVerdict {
    Allow,
    /// A human has to say yes.
    Ask,
    Deny,
}

impl PolicyVerdict {
    pub fn words(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}
