//! Settings of the `claude` agent.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Claude Code. Its own settings, MCP servers and CLAUDE.md apply as usual; Verdone does not change them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ClaudeAgent {
    /// The program: a name to look for in PATH, or a path.
    pub binary: String,
    /// The model. If not set, the client's own default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The effort level, such as "low", "medium" or "high". If not set, the client's own default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// The model for the last attempt at a story, after the others failed (`limits.attempts`). If not set, the same model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub escalate: Option<String>,
    /// The effort level for that attempt. If not set, the same level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub escalate_effort: Option<String>,
    /// Who decides what the agent may do.
    pub permission: ClaudePermission,
    /// Additional arguments for the client.
    pub args: Vec<String>,
    /// Variables to set for the client.
    pub env: BTreeMap<String, String>,
    /// A cap on `context_share` in tokens, for models with very large windows: every call pays for the whole context. Raise it if your
    /// model's window has more than a million tokens; 0 means no cap.
    pub context_limit: u64,
    /// The percentage of the model's context window above which the next turn starts a fresh session. Half a window leaves room for a
    /// long turn before the client compacts the conversation by itself. A lower share makes calls cheaper, but fresh sessions read the
    /// project again. If the client does not name its window, 200,000 tokens are assumed.
    pub context_share: u32,
    /// The percentage of your usage allowance at which no further turn starts until the allowance resets; 0 means to wait only when the
    /// limit itself is reached.
    pub pause_at: u32,
    /// When a turn continues in the same session.
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
            escalate: None,
            escalate_effort: None,
            permission: ClaudePermission::default(),
            args: Vec::new(),
            env: BTreeMap::new(),
            context_limit: 500_000,
            context_share: 50,
            // Reaching the limit loses no work, because the turn is repeated. Pausing earlier would leave paid allowance unused.
            pause_at: 0,
            sessions: SessionMode::default(),
            hooks: HookWay::default(),
        }
    }
}

impl ClaudeAgent {
    /// The settings for an attempt at a story, counted from 1, of at most `attempts`; 0 means no limit, so that none is the last. An
    /// attempt that is both the first and the last is none that others failed before.
    #[must_use]
    pub fn for_attempt(&self, attempt: u32, attempts: u32) -> Self {
        let mut settings = self.clone();
        if attempts > 1 && attempt >= attempts {
            settings.model = self.escalate.clone().or(settings.model);
            settings.effort = self.escalate_effort.clone().or(settings.effort);
        }
        settings
    }

    /// The model and the effort, which a process keeps until it ends.
    pub fn strength(&self) -> Strength {
        Strength { model: self.model.clone(), effort: self.effort.clone() }
    }
}

/// Which model works, and how hard.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Strength {
    pub model: Option<String>,
    pub effort: Option<String>,
}

impl Strength {
    /// `opus, effort high`.
    pub fn describe(&self) -> String {
        let model = self.model.as_deref().unwrap_or("the client's default model");
        self.effort.as_ref().map_or_else(|| model.to_owned(), |effort| format!("{model}, effort {effort}"))
    }
}

/// Who decides what the agent may do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClaudePermission {
    /// Verdone's policy alone. It denies what it cannot judge.
    #[default]
    Policy,
    /// The policy. If it has no opinion on an edit inside the project, the client accepts the edit.
    AcceptEdits,
    /// The client asks for nothing; only the policy's denials apply. For sandboxes.
    Bypass,
}

/// When a turn continues in the same session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SessionMode {
    /// While the context is below its limit. Above it, a fresh session starts with a hand-over.
    #[default]
    Hybrid,
    /// Like hybrid, but every attempt starts a fresh session.
    Fresh,
    /// Always, however full the context is. Only an attempt that was not committed makes the next one start a fresh session.
    Single,
}

/// How the client asks Verdone about tool calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HookWay {
    /// Over the pipe if the client supports it, otherwise by starting `verdone hook`.
    #[default]
    Auto,
    /// Over the pipe, or not at all.
    Callbacks,
    /// By starting `verdone hook` for every event.
    Exec,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_of_several_attempts_is_escalated() {
        let name = |text: &str| Some(text.to_owned());
        let config = ClaudeAgent { model: name("sonnet"), escalate: name("opus"), ..ClaudeAgent::default() };
        for (attempt, attempts, model) in
            [(1, 3, "sonnet"), (2, 3, "sonnet"), (3, 3, "opus"), (4, 3, "opus"), (1, 1, "sonnet"), (9, 0, "sonnet")]
        {
            assert_eq!(config.for_attempt(attempt, attempts).strength().describe(), model, "{attempt} of {attempts}");
        }
        let harder = ClaudeAgent { escalate_effort: name("high"), ..config.clone() };
        assert_eq!(harder.for_attempt(2, 2).strength().describe(), "opus, effort high");
        let plain = ClaudeAgent::default();
        assert_eq!(plain.for_attempt(2, 2), plain);
    }
}
