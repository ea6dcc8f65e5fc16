//! Settings of the `codex` agent.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::claude::{ContextLimits, SessionMode};
use crate::agent::pipe_client::SessionRules;

/// Codex. Its own `config.toml`, MCP servers and AGENTS.md apply as usual; Verdone does not change them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CodexAgent {
    /// The program: a name to look for in PATH, or a path.
    pub command: String,
    /// The model. If not set, the client's own default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The reasoning effort, such as "low", "medium" or "high". If not set, the client's own default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// Additional arguments for the client, such as `-c key=value`. They come before `app-server`.
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

impl Default for CodexAgent {
    fn default() -> Self {
        Self {
            command: "codex".to_owned(),
            model: None,
            effort: None,
            args: Vec::new(),
            env: BTreeMap::new(),
            context_limit: 160_000,
            context_share: 80,
            sessions: SessionMode::default(),
        }
    }
}

impl CodexAgent {
    pub fn session_rules(&self) -> SessionRules {
        let limits = ContextLimits { tokens: self.context_limit, share: self.context_share };
        SessionRules { mode: self.sessions, limits }
    }
}
