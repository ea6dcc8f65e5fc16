//! What Verdone gets from each agent, as facts. Nothing is listed that the client does not give.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::AgentKind;
use super::acp::profile_of;

/// Which of its tool calls an agent's client lets Verdone judge before they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GuardLevel {
    /// None: only the seal and the checks protect the project.
    None,
    /// Every command and every edit that can change something, but not every read.
    Writes,
    EveryCall,
}

/// How a number about the agent is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ContextLevel {
    Unknown,
    /// The client's own estimate.
    Estimated,
    /// Reported by the model's API.
    Measured,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CostLevel {
    Unknown,
    /// From reported tokens and a table of prices.
    Computed,
    /// Reported by the client.
    Measured,
}

/// What one agent gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Level {
    pub guard: GuardLevel,
    pub context: ContextLevel,
    pub cost: CostLevel,
    /// Whether a session can be continued in another process.
    pub resume: bool,
    /// Whether the client asks before a turn ends.
    pub stop_hook: bool,
}

impl Level {
    /// An agent that reports nothing and asks for nothing.
    pub const BLIND: Self = Self {
        guard: GuardLevel::None,
        context: ContextLevel::Unknown,
        cost: CostLevel::Unknown,
        resume: false,
        stop_hook: false,
    };
}

impl AgentKind {
    /// The level of this kind of agent.
    pub fn level(self) -> Level {
        match self {
            Self::Claude => CLAUDE,
            Self::Codex => CODEX,
            Self::Gemini | Self::Opencode | Self::Copilot | Self::Qwen | Self::Acp => {
                profile_of(self).map_or(Level::BLIND, |profile| profile.level)
            }
            Self::Aider | Self::Goose | Self::Cursor | Self::Command | Self::Scripted => Level::BLIND,
        }
    }
}

const CLAUDE: Level = Level {
    guard: GuardLevel::EveryCall,
    context: ContextLevel::Measured,
    cost: CostLevel::Measured,
    resume: true,
    stop_hook: true,
};

/// Observed with 0.166: every command, edit and MCP call is asked for, but not `view_image`, which only reads.
const CODEX: Level = Level {
    guard: GuardLevel::Writes,
    context: ContextLevel::Measured,
    cost: CostLevel::Unknown,
    resume: true,
    stop_hook: false,
};

impl fmt::Display for GuardLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::None => "none",
            Self::Writes => "writes",
            Self::EveryCall => "every call",
        })
    }
}

impl fmt::Display for ContextLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Unknown => "unknown",
            Self::Estimated => "estimated",
            Self::Measured => "measured",
        })
    }
}

impl fmt::Display for CostLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Unknown => "unknown",
            Self::Computed => "computed",
            Self::Measured => "measured",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_ordered_from_nothing_to_everything() {
        assert!(GuardLevel::None < GuardLevel::Writes && GuardLevel::Writes < GuardLevel::EveryCall);
        assert!(ContextLevel::Unknown < ContextLevel::Estimated && CostLevel::Computed < CostLevel::Measured);
    }

    #[test]
    fn an_agent_that_is_any_command_promises_nothing() {
        for kind in [AgentKind::Command, AgentKind::Scripted, AgentKind::Acp] {
            assert_eq!(kind.level(), Level::BLIND, "{kind:?}");
        }
        assert_eq!(AgentKind::Codex.level().guard, GuardLevel::Writes);
    }
}
