//! Agents as data: how to start one and how a turn of it can end. Supervision is the runtime's, and the same for all.

pub mod claude;
mod settings;

pub use settings::{AGENTS, Agents, CommandAgent, ScriptedAgent};

use jiff::Timestamp;
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
    /// The model's API failed, and went on failing when the agent asked it again.
    ApiError {
        reason: String,
        /// Of HTTP; absent where no answer came.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        /// Whether the same request may succeed later.
        retryable: bool,
    },
    /// The user's allowance is used up until a time that the agent may have told.
    UsageLimit {
        reason: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<String>")]
        resets_at: Option<Timestamp>,
    },
    /// The agent is not logged in, or its key was refused.
    Auth { reason: String },
    /// The agent's own limit of model calls in one turn was reached.
    MaxTurns { reason: String },
    /// The agent's own limit of cost was reached.
    Budget { reason: String },
    /// The model refused to answer.
    Refused { reason: String },
    /// Tool calls ran that no guard of ours saw.
    GuardDead { reason: String },
}

impl TurnOutcome {
    /// The same with another reason, where there is one.
    #[must_use]
    pub fn with_reason(self, change: impl FnOnce(&str) -> String) -> Self {
        match self {
            Self::Ended | Self::TimedOut { .. } | Self::Idle { .. } | Self::Interrupted => self,
            Self::Crashed { reason } => Self::Crashed { reason: change(&reason) },
            Self::NotRunnable { reason } => Self::NotRunnable { reason: change(&reason) },
            Self::ApiError { reason, status, retryable } => Self::ApiError { reason: change(&reason), status, retryable },
            Self::UsageLimit { reason, resets_at } => Self::UsageLimit { reason: change(&reason), resets_at },
            Self::Auth { reason } => Self::Auth { reason: change(&reason) },
            Self::MaxTurns { reason } => Self::MaxTurns { reason: change(&reason) },
            Self::Budget { reason } => Self::Budget { reason: change(&reason) },
            Self::Refused { reason } => Self::Refused { reason: change(&reason) },
            Self::GuardDead { reason } => Self::GuardDead { reason: change(&reason) },
        }
    }

    pub fn words(&self) -> String {
        use crate::base::span::Span;
        match self {
            Self::Ended => "ended".to_owned(),
            Self::Crashed { reason } => format!("crashed: {reason}"),
            Self::TimedOut { after_ms } => format!("was ended after {}", Span::from_millis(*after_ms)),
            Self::Idle { after_ms } => format!("was silent for {} and ended", Span::from_millis(*after_ms)),
            Self::Interrupted => "was interrupted".to_owned(),
            Self::NotRunnable { reason } => format!("could not be started: {reason}"),
            Self::ApiError { reason, .. } => format!("failed at the model's API: {reason}"),
            Self::UsageLimit { reason, resets_at: None } => format!("reached a usage limit: {reason}"),
            Self::UsageLimit { reason, resets_at: Some(at) } => format!("reached a usage limit until {at}: {reason}"),
            Self::Auth { reason } => format!("could not log in: {reason}"),
            Self::MaxTurns { reason } => format!("used up its model calls: {reason}"),
            Self::Budget { reason } => format!("used up its budget: {reason}"),
            Self::Refused { reason } => format!("was refused by the model: {reason}"),
            Self::GuardDead { reason } => format!("worked without a guard: {reason}"),
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

impl Usage {
    /// Both together; what only one of them says is all that is known.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let cost_usd = self.cost_usd.into_iter().chain(other.cost_usd).reduce(|one, more| one + more);
        let tokens = self.tokens.into_iter().chain(other.tokens).reduce(u64::saturating_add);
        Self { cost_usd, tokens }
    }
}

/// Which session a turn went into, for agents that have them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionUse {
    pub id: String,
    /// Why a fresh one was begun, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh: Option<String>,
    /// Tokens of its context after the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The model's window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// How often the client replaced the conversation by a summary during the turn.
    #[serde(default)]
    pub compactions: u32,
}

/// How much of the user's allowance is used up, as the agent said last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AllowanceUse {
    /// The fullest window, as the agent names it: `five_hour`, `seven_day`, ...
    pub window: String,
    /// Whole percents.
    pub percent: u32,
    #[schemars(with = "String")]
    pub resets_at: Timestamp,
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
