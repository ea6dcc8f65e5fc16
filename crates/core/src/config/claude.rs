//! The settings of the `claude` agent and their validation.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::diagnose::{Finding, Step};

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
    /// Who decides what the agent may do.
    pub permission: ClaudePermission,
    /// Additional arguments for the client.
    pub args: Vec<String>,
    /// Variables to set for the client.
    pub env: BTreeMap<String, String>,
    /// The context size in tokens above which the next turn starts a fresh session; 0 means no limit.
    pub context_limit: u64,
    /// The same limit in percent of the model's context window. The smaller of the two applies.
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
            permission: ClaudePermission::default(),
            args: Vec::new(),
            env: BTreeMap::new(),
            context_limit: 160_000,
            context_share: 80,
            // Reaching the limit loses no work, because the turn is repeated. Pausing earlier would leave paid allowance unused.
            pause_at: 0,
            sessions: SessionMode::default(),
            hooks: HookWay::default(),
        }
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
    /// Always, however full the context is. Only a rejected attempt starts a fresh session.
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

/// Arguments that Verdone sets itself, or that would disable its guard, and what to do instead.
const OURS: [(&str, &str); 24] = [
    ("-p", "Verdone gives it itself"),
    ("--print", "Verdone gives it itself"),
    ("--input-format", "Verdone gives it itself"),
    ("--output-format", "Verdone gives it itself"),
    ("--verbose", "Verdone gives it itself"),
    ("--settings", "Verdone gives it itself; put yours into the settings file of the client"),
    ("--session-id", "Verdone gives it itself"),
    ("--resume", "Verdone resumes sessions by itself"),
    ("-r", "Verdone resumes sessions by itself"),
    ("--continue", "Verdone resumes sessions by itself"),
    ("-c", "Verdone resumes sessions by itself"),
    ("--fork-session", "Verdone resumes sessions by itself"),
    ("--max-budget-usd", "Verdone passes on what is left of its own limit"),
    ("--model", "set agent.claude.model"),
    ("--effort", "set agent.claude.effort"),
    ("--permission-mode", "set agent.claude.permission"),
    ("--dangerously-skip-permissions", "set agent.claude.permission = \"bypass\" if you have to"),
    ("--allow-dangerously-skip-permissions", "set agent.claude.permission = \"bypass\" if you have to"),
    ("--permission-prompt-tool", "Verdone's policy answers"),
    ("--bare", "it switches every guard off"),
    ("--safe-mode", "it switches guards off"),
    ("--worktree", "use verdone run --worktree"),
    ("-w", "use verdone run --worktree"),
    ("--", "Verdone gives the prompt itself"),
];

/// Variables that would disable the guard.
const UNSAFE_VARIABLES: [&str; 2] = ["CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SAFE_MODE"];

/// The first fault in settings of the right types.
pub(super) fn unusable(config: &ClaudeAgent) -> Option<Finding> {
    let fault = |mut way: Vec<Step>, message: String, hint: Option<String>| {
        let mut path = vec![Step::Key("agent".to_owned()), Step::Key("claude".to_owned())];
        path.append(&mut way);
        Some(Finding { path, on_key: false, message, hint })
    };
    let key = |text: &str| Step::Key(text.to_owned());
    if config.binary.trim().is_empty() || config.binary.contains('\0') {
        return fault(vec![key("binary")], "the client's program has no name".to_owned(), None);
    }
    for (name, value) in [("model", &config.model), ("effort", &config.effort)] {
        // The client would treat a leading dash as an option.
        if value.as_deref().is_some_and(|value| value.trim().is_empty() || value.starts_with('-') || value.contains('\0')) {
            return fault(vec![key(name)], format!("`agent.claude.{name}` has to be a name"), None);
        }
    }
    if !(1..=100).contains(&config.context_share) {
        let message = "`agent.claude.context_share` has to be a percentage from 1 to 100".to_owned();
        return fault(vec![key("context_share")], message, None);
    }
    if config.pause_at > 100 {
        let message = "`agent.claude.pause_at` has to be a percentage from 0 to 100".to_owned();
        return fault(vec![key("pause_at")], message, Some("0 switches the pause off".to_owned()));
    }
    for (n, argument) in config.args.iter().enumerate() {
        let name = argument.split_once('=').map_or(argument.as_str(), |(name, _)| name);
        if let Some((_, instead)) = OURS.iter().find(|(ours, _)| *ours == name) {
            let message = format!("{name} cannot be an argument of yours");
            return fault(vec![key("args"), Step::Index(n)], message, Some((*instead).to_owned()));
        }
        if argument.contains('\0') {
            return fault(vec![key("args"), Step::Index(n)], "an argument cannot hold a NUL".to_owned(), None);
        }
    }
    for (name, value) in &config.env {
        let way = || vec![key("env"), key(name)];
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return fault(way(), format!("{name:?} cannot be a variable"), None);
        }
        if UNSAFE_VARIABLES.contains(&name.as_str()) {
            return fault(way(), format!("{name} switches Verdone's guards off"), None);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Layer, resolve};

    #[test]
    fn every_setting_of_the_client_is_read() {
        let text = "[agent]\nname = \"claude\"\n[agent.claude]\nbinary = \"/opt/claude\"\nmodel = \"opus\"\neffort = \"high\"\n\
                    permission = \"accept-edits\"\nargs = [\"--add-dir\", \"../lib\"]\ncontext_limit = 0\ncontext_share = 50\n\
                    pause_at = 95\n\
                    sessions = \"single\"\nhooks = \"exec\"\n[agent.claude.env]\nX = \"y\"\n";
        let config = resolve(&[Layer::from_toml("c.toml", text).unwrap()]).unwrap().config;
        let expected = ClaudeAgent {
            binary: "/opt/claude".to_owned(),
            model: Some("opus".to_owned()),
            effort: Some("high".to_owned()),
            permission: ClaudePermission::AcceptEdits,
            args: vec!["--add-dir".to_owned(), "../lib".to_owned()],
            env: BTreeMap::from([("X".to_owned(), "y".to_owned())]),
            context_limit: 0,
            context_share: 50,
            pause_at: 95,
            sessions: SessionMode::Single,
            hooks: HookWay::Exec,
        };
        assert_eq!((config.agent.name.as_str(), config.agent.claude), ("claude", expected));
    }

    #[test]
    fn settings_that_would_break_the_guard_or_the_pipe_are_refused_with_their_line() {
        for (text, said, hint) in [
            ("args = [\"--bare\"]", "c.toml:2:9: --bare cannot be an argument of yours", "it switches every guard off"),
            ("args = [\"--x\", \"--settings={}\"]", "c.toml:2:16: --settings cannot be", "Verdone gives it itself"),
            ("args = [\"--dangerously-skip-permissions\"]", "c.toml:2:9: --dangerously", "permission = \"bypass\""),
            ("args = [\"--model\", \"x\"]", "c.toml:2:9: --model cannot be", "set agent.claude.model"),
            ("model = \"--bare\"", "c.toml:2:9: `agent.claude.model` has to be a name", ""),
            ("model = \"\"", "c.toml:2:9: `agent.claude.model` has to be a name", ""),
            ("binary = \" \"", "c.toml:2:10: the client's program has no name", ""),
            ("context_share = 0", "c.toml:2:17: `agent.claude.context_share` has to be a percentage", ""),
            ("context_share = 101", "c.toml:2:17: `agent.claude.context_share` has to be a percentage", ""),
            ("pause_at = 101", "c.toml:2:12: `agent.claude.pause_at` has to be a percentage", "0 switches"),
            ("env = { CLAUDE_CODE_SIMPLE = \"1\" }", "c.toml:2:30: CLAUDE_CODE_SIMPLE switches", ""),
            ("env = { \"A=B\" = \"1\" }", "c.toml:2:17: \"A=B\" cannot be a variable", ""),
            ("permission = \"bypas\"", "c.toml:2:14: `agent.claude.permission` cannot be \"bypas\"", "\"bypass\""),
            ("sesions = \"fresh\"", "c.toml:2:1: unknown key `sesions`", "`sessions`"),
        ] {
            let problem = Layer::from_toml("c.toml", &format!("[agent.claude]\n{text}\n")).unwrap_err();
            assert!(problem.to_string().starts_with(said), "{problem}\n{text}");
            assert!(problem.hint.as_deref().unwrap_or_default().contains(hint), "{:?}\n{text}", problem.hint);
        }
    }
}
