//! What a run is doing, in words for people.

use schemars::JsonSchema;
use serde::Serialize;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Nothing was recorded yet.
    #[default]
    Starting,
    /// The gates run on the baseline.
    Baseline,
    /// Between two stories.
    Selecting,
    Resetting,
    RedChecking,
    /// The prompt is being prepared.
    Prompting,
    /// The agent is working.
    Working,
    /// The agent's service cannot be used for a while.
    Waiting,
    Verifying,
    Committing,
    Keeping,
    Landing,
    /// Proven stories are checked again.
    Regressing,
    Stopping,
    Stopped,
}

impl Phase {
    pub fn describe(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Baseline => "baseline",
            Self::Selecting => "choosing a story",
            Self::Resetting => "preparing the workspace",
            Self::RedChecking => "red check",
            Self::Prompting => "preparing the prompt",
            Self::Working => "agent working",
            Self::Waiting => "waiting",
            Self::Verifying => "checking",
            Self::Committing => "committing",
            Self::Keeping => "keeping the attempt",
            Self::Landing => "landing",
            Self::Regressing => "checking proven stories again",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
        }
    }
}
