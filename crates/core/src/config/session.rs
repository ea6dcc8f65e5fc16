//! `[stop]` of the config.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use verdone_text::pattern::name_matches;

use crate::base::span::Span;

/// The Stop gate of sessions that Verdone did not start: what happens when an agent wants to end its turn. It only holds sessions for
/// which `verdone loop start` started a loop, and those that another tool's state files report as unfinished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StopSettings {
    /// How long to hold a session. A session held only by another tool's state files, without a loop, is held at most once per prompt.
    pub mode: StopMode,
    /// Maximum number of blocks in one loop; 0 means no limit. `--max-iterations` of `verdone loop start` takes precedence.
    pub max_blocks: u32,
    /// Whether to commit a story once it is verified.
    pub commit: bool,
    /// What to do when the context is full.
    pub on_context: OnContext,
    /// Percentage of the model's context window at which the context counts as full.
    pub context_percent: u32,
    /// Number of tokens at which the context counts as full, whatever the window; 0 means no such limit.
    pub context_tokens: u64,
    /// How long one verification may take in total. The final verification of all stories may take this long for each of them. It continues
    /// while the agent is told to wait.
    pub verify_deadline: Span,
    /// How long one Stop waits for the verification. The client waits at most 120 seconds for Verdone's hooks.
    pub wait: Span,
    /// How long one turn of a loop may take; 0 means no limit. After that, tool calls are denied, so that the agent stops and its work is
    /// verified.
    pub turn_time: Span,
    /// Let the session go after the same tree with the same reasons this often in a row; 0 means never.
    pub same_limit: u32,
    /// Types of subagents that are held as well. `*` matches any part of a name.
    pub subagents: Vec<String>,
    /// In which sessions the ends of tasks, teammates and subagents are checked.
    pub team_gates: TeamGates,
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
            turn_time: Span::from_secs(0),
            same_limit: 3,
            subagents: vec!["ralph-*".to_owned()],
            team_gates: TeamGates::default(),
        }
    }
}

/// How long to hold a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StopMode {
    /// Until everything is verified, or a limit is reached.
    #[default]
    UntilDone,
    /// Once per prompt.
    Once,
    /// Never.
    Off,
}

/// In which sessions the ends of tasks, teammates and subagents are checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TeamGates {
    /// Sessions with a loop, and those for which `orchestrator.json` exists under `~/.ralph/state/`.
    #[default]
    Auto,
    /// Every session with Verdone's hooks.
    Always,
    /// Only sessions with a loop.
    Loop,
}

/// What to do when the context of a held session is full.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnContext {
    /// Let the session go, and name the command that continues the work.
    #[default]
    Yield,
    /// Start `verdone run` in the background, if there are no uncommitted changes.
    Spawn,
}

impl StopSettings {
    /// Whether to hold subagents of this type. The end of a compaction has no type.
    pub fn holds_subagent(&self, kind: &str) -> bool {
        !kind.is_empty() && self.subagents.iter().any(|pattern| name_matches(pattern, kind))
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
