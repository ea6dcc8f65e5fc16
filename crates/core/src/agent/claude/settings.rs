//! Settings of the `claude` agent.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Claude Code. Its own settings, MCP servers and CLAUDE.md apply as usual; Verdone writes none of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ClaudeAgent {
    /// The program: a name to look for in PATH, or a path.
    pub binary: String,
    /// The model; the client's own default where it is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How hard it thinks, such as "low", "medium" or "high"; the client's own default where it is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// Who says what the agent may do.
    pub permission: ClaudePermission,
    /// Further arguments of the client.
    pub args: Vec<String>,
    /// Variables to set for the client.
    pub env: BTreeMap<String, String>,
    /// Tokens of context above which the next turn starts a fresh session; 0 means no such limit.
    pub context_limit: u64,
    /// Percent of the model's window above which it does; the smaller of the two counts.
    pub context_share: u32,
    /// Percent of your usage allowance at which no further turn begins until its reset; 0 means that only the limit itself is waited for.
    pub pause_at: u32,
    /// When a turn goes on in the same session.
    pub sessions: SessionMode,
    /// How the client asks Verdone about tool calls.
    pub hooks: HookWay,
}

impl Default for ClaudeAgent {
    fn default() -> Self {
        Self {
            binary: "claude".to_owned(),
            model: None,
            effort: None,
            permission: ClaudePermission::default(),
            args: Vec::new(),
            env: BTreeMap::new(),
            context_limit: 160_000,
            context_share: 80,
            // A limit that is reached costs no work: the turn is made again. A pause before it leaves paid allowance unused.
            pause_at: 0,
            sessions: SessionMode::default(),
            hooks: HookWay::default(),
        }
    }
}

/// Who says what the agent may do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClaudePermission {
    /// Verdone's policy alone; what it cannot judge is denied.
    #[default]
    Policy,
    /// The policy; edits inside the project that it has no opinion on are accepted by the client.
    AcceptEdits,
    /// The client asks for nothing; only denials of the policy hold. For sandboxes.
    Bypass,
}

/// When a turn goes on in the same session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SessionMode {
    /// While the context is below its limit; above it, a fresh one with a hand-over.
    #[default]
    Hybrid,
    /// As hybrid, but every attempt begins a fresh one.
    Fresh,
    /// Always, whatever the context holds; only a rejected attempt starts a fresh one.
    Single,
}

/// How the client asks Verdone about tool calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HookWay {
    /// Over the pipe where the client can, else by starting `verdone hook`.
    #[default]
    Auto,
    /// Over the pipe, or not at all.
    Callbacks,
    /// By starting `verdone hook` for every event.
    Exec,
}
