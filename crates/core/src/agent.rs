//! Agents as data: how to start one and how its turns can end. The runtime supervises all agents in the same way.

pub mod acp;
pub mod call_repeats;
mod capability;
pub mod claude;
pub mod client_files;
pub mod client_variables;
pub mod codex;
pub mod pipe_client;
pub mod preset;
pub mod protocol;
mod settings;
pub mod tool_server;

pub use capability::{ContextLevel, CostLevel, GuardLevel, Level};
pub use settings::{AgentKind, Agents, CommandAgent, Driver, ScriptedAgent};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a turn ended. This says nothing about the story: only checks do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnOutcome {
    /// The agent stopped on its own.
    Ended,
    /// A non-zero exit code, or a signal that Verdone did not send.
    Crashed { reason: String },
    /// `limits.turn_time` was reached.
    TimedOut { after_ms: u64 },
    /// No output for `limits.idle_time`.
    Idle { after_ms: u64 },
    /// The agent made the same tool call `limits.identical_calls` times in a row.
    Looping { call: String, times: u32 },
    /// The run was being stopped.
    Interrupted,
    /// The agent could not be started at all (exit 126 or 127, not found).
    NotRunnable { reason: String },
    /// The model's API failed, and retries failed too.
    ApiError {
        reason: String,
        /// The HTTP status; absent if there was no response.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        /// Whether the same request may succeed later.
        retryable: bool,
    },
    /// The user's allowance is used up. The agent may have said until when.
    UsageLimit {
        reason: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<String>")]
        resets_at: Option<Timestamp>,
    },
    /// The agent is not logged in, or its key was refused.
    Auth { reason: String },
    /// The account has no credit left, or cannot be charged.
    Billing { reason: String },
    /// The model does not exist, or the account may not use it.
    UnknownModel { reason: String },
    /// The agent's own limit on model calls per turn was reached.
    MaxTurns { reason: String },
    /// The agent's own cost limit was reached.
    Budget { reason: String },
    /// The model refused to answer.
    Refused { reason: String },
    /// Tool calls ran that Verdone's guard did not see.
    GuardDead { reason: String },
}

/// What became of the prompt of a turn, and so of the user's notes in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptUse {
    Used,
    /// The same turn continues once the service can be used again.
    Repeated,
    /// The agent never got it, or was stopped while it worked on it.
    Lost,
}

impl TurnOutcome {
    pub fn prompt_use(&self) -> PromptUse {
        match self {
            Self::Interrupted
            | Self::NotRunnable { .. }
            | Self::Auth { .. }
            | Self::Billing { .. }
            | Self::UnknownModel { .. } => PromptUse::Lost,
            Self::UsageLimit { .. } | Self::ApiError { retryable: true, .. } => PromptUse::Repeated,
            Self::ApiError { retryable: false, .. }
            | Self::Ended
            | Self::Crashed { .. }
            | Self::TimedOut { .. }
            | Self::Idle { .. }
            | Self::Looping { .. }
            | Self::MaxTurns { .. }
            | Self::Budget { .. }
            | Self::Refused { .. }
            | Self::GuardDead { .. } => PromptUse::Used,
        }
    }

    /// Whether the agent's service answered, so that earlier errors and usage limits are over.
    pub fn shows_working_service(&self) -> bool {
        match self {
            Self::Ended
            | Self::TimedOut { .. }
            | Self::Idle { .. }
            | Self::Looping { .. }
            | Self::MaxTurns { .. }
            | Self::Refused { .. } => true,
            Self::Crashed { .. }
            | Self::Interrupted
            | Self::NotRunnable { .. }
            | Self::ApiError { .. }
            | Self::UsageLimit { .. }
            | Self::Auth { .. }
            | Self::Billing { .. }
            | Self::UnknownModel { .. }
            | Self::Budget { .. }
            | Self::GuardDead { .. } => false,
        }
    }

    /// The exit code that fits, if the agent's process had none: `timeout` and shells use the same.
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::Ended => 0,
            Self::TimedOut { .. } | Self::Idle { .. } | Self::Looping { .. } => 124,
            Self::NotRunnable { .. } => 127,
            Self::Interrupted => 130,
            Self::Crashed { .. }
            | Self::ApiError { .. }
            | Self::UsageLimit { .. }
            | Self::Auth { .. }
            | Self::Billing { .. }
            | Self::UnknownModel { .. }
            | Self::MaxTurns { .. }
            | Self::Budget { .. }
            | Self::Refused { .. }
            | Self::GuardDead { .. } => 1,
        }
    }

    /// Changes the reason, if there is one.
    #[must_use]
    pub fn with_reason(self, change: impl FnOnce(&str) -> String) -> Self {
        match self {
            Self::Ended | Self::TimedOut { .. } | Self::Idle { .. } | Self::Interrupted => self,
            Self::Looping { call, times } => Self::Looping { call: change(&call), times },
            Self::Crashed { reason } => Self::Crashed { reason: change(&reason) },
            Self::NotRunnable { reason } => Self::NotRunnable { reason: change(&reason) },
            Self::ApiError { reason, status, retryable } => Self::ApiError { reason: change(&reason), status, retryable },
            Self::UsageLimit { reason, resets_at } => Self::UsageLimit { reason: change(&reason), resets_at },
            Self::Auth { reason } => Self::Auth { reason: change(&reason) },
            Self::Billing { reason } => Self::Billing { reason: change(&reason) },
            Self::UnknownModel { reason } => Self::UnknownModel { reason: change(&reason) },
            Self::MaxTurns { reason } => Self::MaxTurns { reason: change(&reason) },
            Self::Budget { reason } => Self::Budget { reason: change(&reason) },
            Self::Refused { reason } => Self::Refused { reason: change(&reason) },
            Self::GuardDead { reason } => Self::GuardDead { reason: change(&reason) },
        }
    }

    pub fn describe(&self) -> String {
        use crate::base::span::Span;
        match self {
            Self::Ended => "ended".to_owned(),
            Self::Crashed { reason } => format!("crashed: {reason}"),
            Self::TimedOut { after_ms } => format!("timed out after {}", Span::from_millis(*after_ms)),
            Self::Idle { after_ms } => format!("was silent for {} and was stopped", Span::from_millis(*after_ms)),
            Self::Looping { call, times } => format!("made the same call {times} times in a row and was stopped: {call}"),
            Self::Interrupted => "was interrupted".to_owned(),
            Self::NotRunnable { reason } => format!("could not be started: {reason}"),
            Self::ApiError { reason, .. } => format!("failed at the model's API: {reason}"),
            Self::UsageLimit { reason, resets_at: None } => format!("reached a usage limit: {reason}"),
            Self::UsageLimit { reason, resets_at: Some(at) } => format!("reached a usage limit until {at}: {reason}"),
            Self::Auth { reason } => format!("could not log in: {reason}"),
            Self::Billing { reason } => format!("has no credit: {reason}"),
            Self::UnknownModel { reason } => format!("cannot use its model: {reason}"),
            Self::MaxTurns { reason } => format!("used up its model calls: {reason}"),
            Self::Budget { reason } => format!("used up its budget: {reason}"),
            Self::Refused { reason } => format!("was refused by the model: {reason}"),
            Self::GuardDead { reason } => format!("ran without a guard: {reason}"),
        }
    }
}

/// A turn's usage, as far as the agent reports it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// All of them together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The same tokens apart, because their prices differ by a factor of up to fifty. Absent in older journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_kind: Option<TokenKinds>,
}

/// Tokens by what is paid for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TokenKinds {
    /// Read by the model, and in no cache.
    pub input: u64,
    /// Written by the model.
    pub output: u64,
    /// Read from the provider's cache.
    pub cache_read: u64,
    /// Stored in the provider's cache.
    pub cache_write: u64,
}

impl TokenKinds {
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
        }
    }
}

impl Usage {
    /// Without a cost that is no number.
    #[must_use]
    pub fn finite(self) -> Self {
        Self { cost_usd: self.cost_usd.filter(|cost| cost.is_finite()), ..self }
    }

    /// The sum of both. If only one has a value, that value is used.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let cost_usd = self.cost_usd.into_iter().chain(other.cost_usd).reduce(|one, more| one + more);
        let tokens = self.tokens.into_iter().chain(other.tokens).reduce(u64::saturating_add);
        let by_kind = self.by_kind.into_iter().chain(other.by_kind).reduce(TokenKinds::and);
        Self { cost_usd, tokens, by_kind }
    }
}

/// The session of a turn, for agents that have sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionUse {
    pub id: String,
    /// Why a fresh session was started, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh: Option<String>,
    /// The size of its context after the turn, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The size of the model's context window, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// How often the client replaced the conversation with a summary during the turn.
    #[serde(default)]
    pub compactions: u32,
    /// Number of commands that the agent had left running in the background, and that were ended with the turn. What it said about
    /// their results is no false claim.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cut_commands: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// How much of the user's allowance is used, according to the agent's last report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AllowanceUse {
    /// The fullest window, under the agent's name for it: `five_hour`, `seven_day`, ...
    pub window: String,
    /// In whole percent.
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
    /// As the last argument (`$1` for `sh -c` commands). Prompts over 128 KB go through a file instead.
    Argument,
    /// In a file, whose path is the last argument and in `VERDONE_PROMPT_FILE`.
    File,
}
