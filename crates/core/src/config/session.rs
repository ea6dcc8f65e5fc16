//! `[stop]` of the config.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::pattern::name_fits;
use crate::base::span::Span;

/// The Stop gate of sessions that Verdone did not start: what happens when an agent wants to end its turn. It holds only sessions that
/// `verdone loop start` armed, and those that another tool's state files call unfinished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StopSettings {
    /// How long a session is held. One that another tool's state files hold, and no loop, is held at most once for each prompt.
    pub mode: StopMode,
    /// Blocks of one loop; 0 means no limit. `--max-iterations` of `verdone loop start` comes first.
    pub max_blocks: u32,
    /// Commit a story when it was verified.
    pub commit: bool,
    /// What happens when the context is full.
    pub on_context: OnContext,
    /// Percent of the model's window at which the context counts as full.
    pub context_percent: u32,
    /// Tokens at which it counts as full, whatever the window; 0 means no such limit.
    pub context_tokens: u64,
    /// How long one verification may take in all; the last one, of all stories, has that long for each. It goes on while the agent is told
    /// to wait.
    pub verify_deadline: Span,
    /// How long one Stop waits for it; the client's patience with our hooks is 120 seconds.
    pub wait: Span,
    /// The same tree with the same reasons this often in a row lets the session go; 0 means never.
    pub same_limit: u32,
    /// Types of subagents whose end is held, `*` for any part of a name.
    pub subagents: Vec<String>,
}

impl Default for StopSettings {
    fn default() -> Self {
        Self {
            mode: StopMode::default(),
            max_blocks: 25,
            commit: false,
            on_context: OnContext::default(),
            context_percent: 80,
            context_tokens: 160_000,
            verify_deadline: Span::from_secs(30 * 60),
            wait: Span::from_secs(60),
            same_limit: 3,
            subagents: vec!["ralph-*".to_owned()],
        }
    }
}

/// How long a session is held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StopMode {
    /// Until everything is verified, or a limit is reached.
    #[default]
    UntilDone,
    /// Once for each prompt.
    Once,
    /// Never.
    Off,
}

/// What happens when the context of a held session is full.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnContext {
    /// The session is let go, and the command that goes on is named.
    #[default]
    Yield,
    /// `verdone run` is started in the background, if nothing is uncommitted.
    Spawn,
}

impl StopSettings {
    /// Whether the end of a subagent of this type is ours to hold. The end of a compaction has no type.
    pub fn holds_subagent(&self, kind: &str) -> bool {
        !kind.is_empty() && self.subagents.iter().any(|pattern| name_fits(pattern, kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subagents_are_held_by_their_type_and_a_compaction_never_is() {
        let settings = StopSettings::default();
        for (kind, held) in
            [("ralph-coder", true), ("ralph-", true), ("general-purpose", false), ("", false), ("my-ralph-x", false)]
        {
            assert_eq!(settings.holds_subagent(kind), held, "{kind}");
        }
        let all = StopSettings { subagents: vec!["*".to_owned(), "a*c".to_owned()], ..settings };
        assert!(all.holds_subagent("anything") && !all.holds_subagent(""));
    }
}
