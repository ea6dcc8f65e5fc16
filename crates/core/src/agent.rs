//! Agents as data: how to start one and how a turn of it can end. Supervision is the runtime's, and the same for all.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a turn ended. Never a statement about the story: only checks make those.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnOutcome {
    /// The agent stopped by itself.
    Ended,
    /// Non-zero exit or a signal that we did not send.
    Crashed { reason: String },
    /// `limits.turn_time` was reached.
    TimedOut { after_ms: u64 },
    /// No output for `limits.idle_time`.
    Idle { after_ms: u64 },
    /// The run was being stopped.
    Interrupted,
    /// The agent could not be started at all (exit 126 or 127, not found).
    NotRunnable { reason: String },
}

impl TurnOutcome {
    pub fn words(&self) -> String {
        use crate::span::Span;
        match self {
            Self::Ended => "ended".to_owned(),
            Self::Crashed { reason } => format!("crashed: {reason}"),
            Self::TimedOut { after_ms } => format!("was ended after {}", Span::from_millis(*after_ms)),
            Self::Idle { after_ms } => format!("was silent for {} and ended", Span::from_millis(*after_ms)),
            Self::Interrupted => "was interrupted".to_owned(),
            Self::NotRunnable { reason } => format!("could not be started: {reason}"),
        }
    }
}

/// What a turn used, where the agent says so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

/// How the `command` agent gets its prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PromptVia {
    /// On standard input.
    #[default]
    Stdin,
    /// As the last argument (for `sh -c` commands: `$1`). Prompts over 128 KB go through a file instead.
    Argument,
    /// As the path of a file, as the last argument and in `VERDONE_PROMPT_FILE`.
    File,
}
