//! Outcomes are ordered values, never booleans.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The result of the story's own checks before the agent started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Red {
    /// At least one failed, as expected: passing later proves something.
    Red,
    /// All passed: the story is already done, or its checks prove nothing.
    Green,
    /// No result (command not found or not executable).
    Unknown,
    /// The story has no checks of its own.
    Absent,
}

/// How to handle a story whose checks pass before any work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RedPolicy {
    /// Work on it. Without other tests it is *untested* at best.
    #[default]
    Flag,
    /// Accept it as already done, without a turn: *untested*.
    Accept,
    /// Do not work on it: a person has to look at it.
    Refuse,
}

/// The policy's answer to a tool call, from mildest to most severe. The most severe of several counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PolicyVerdict {
    Allow,
    /// A person has to approve it.
    Ask,
    Deny,
}

impl PolicyVerdict {
    pub fn describe(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}
