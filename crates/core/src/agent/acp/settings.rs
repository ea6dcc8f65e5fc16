//! Settings of agents that speak ACP.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::claude::{ContextLimits, SessionMode};
use crate::agent::pipe_client::SessionRules;
use crate::check::CommandSpec;

/// A client that speaks the Agent Client Protocol. Its own settings, MCP servers and instruction files apply as usual.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AcpAgent {
    /// The program: a name to look for in PATH, or a path. For the agent `acp`, the whole command: a string for `sh -c`, or a list of words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandSpec>,
    /// The model. If not set, the client's own default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Additional arguments for the client.
    pub args: Vec<String>,
    /// Variables to set for the client.
    pub env: BTreeMap<String, String>,
    /// The context size in tokens above which the next turn starts a fresh session; 0 means no limit.
    pub context_limit: u64,
    /// The same limit in percent of the model's context window. The smaller of the two applies.
    pub context_share: u32,
    /// When a turn continues in the same session.
    pub sessions: SessionMode,
}

impl Default for AcpAgent {
    fn default() -> Self {
        Self {
            command: None,
            model: None,
            args: Vec::new(),
            env: BTreeMap::new(),
            context_limit: 160_000,
            context_share: 80,
            sessions: SessionMode::default(),
        }
    }
}

impl AcpAgent {
    pub fn session_rules(&self) -> SessionRules {
        let limits = ContextLimits { tokens: self.context_limit, share: self.context_share };
        SessionRules { mode: self.sessions, limits }
    }
}
