//! The command line and environment of a client, from settings alone.
//!
//! Nothing is written into the user's or the project's settings: what Verdone needs goes with `--settings`, and ends with the process.

use serde_json::{Map, Value, json};

use super::settings::{ClaudeAgent, ClaudePermission, HookWay};
use super::uuid::Uuid;
use crate::hook::Role;

/// What a user has to read before a run with `permission = "bypass"`.
pub const BYPASS_WARNING: &str = "agent.claude.permission = \"bypass\": Claude Code asks for nothing. A guard that fails no longer \
     stops a tool call, and files outside the project are open to it. Use it only in a sandbox that you can lose.";

/// The oldest client that can be trusted: before it, `onFailure` is unknown, and a crashed hook plus an allow rule of the user's would
/// let a call through.
pub const OLDEST_CLIENT: Version = Version(2, 1, 295);

/// Variables that an outer session, or a setting for people at a terminal, would change the client with. Where the API is, who the
/// user is and which model they chose (`ANTHROPIC_*`, `CLAUDE_CONFIG_DIR`, `CLAUDE_CODE_USE_*`, ...) stay: they are the user's.
pub const SCRUBBED: [&str; 24] = [
    // Set by a client for its children.
    "CLAUDECODE",
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_EXECPATH",
    "CLAUDE_CODE_MESSAGING_SOCKET",
    "CLAUDE_CODE_MESSAGING_TOKEN",
    "CLAUDE_CODE_SESSION_ATTENDED",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_EFFORT",
    "CLAUDE_PID",
    "CLAUDE_PROJECT_DIR",
    "CLAUDE_ENV_FILE",
    "AI_AGENT",
    // Switch hooks off.
    "CLAUDE_CODE_SIMPLE",
    "CLAUDE_CODE_SAFE_MODE",
    // End, resume or compact when Verdone means to.
    "CLAUDE_CODE_EXIT_AFTER_STOP_DELAY",
    "CLAUDE_CODE_RESUME_INTERRUPTED_TURN",
    "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP",
    "DISABLE_AUTO_COMPACT",
    // Bring tools, plugins, settings or tasks of another session.
    "CLAUDE_CODE_REMOTE",
    "CLAUDE_CODE_SESSION_KIND",
    "CLAUDE_CODE_PLUGIN_DIRS",
    "CLAUDE_CODE_MANAGED_SETTINGS_PATH",
    "CLAUDE_CODE_TASK_LIST_ID",
];

/// A client's version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// The version in what `claude --version` prints, or in an `init` line.
pub fn version(text: &str) -> Option<Version> {
    let mut parts = text.split_whitespace().next()?.splitn(3, '.');
    let mut next = || {
        let part = parts.next()?;
        // A pre-release suffix does not matter.
        part[..part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len())].parse().ok()
    };
    Some(Version(next()?, next()?, next()?))
}

/// How hooks reach Verdone in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hooks {
    /// Over the pipe, registered by `initialize`; only the session's start and end are processes.
    Callbacks,
    /// A process for every event.
    Exec,
}

impl Hooks {
    /// What to begin with; after a client that does not take callbacks, `Auto` goes on with [`Hooks::Exec`].
    pub fn first(way: HookWay) -> Self {
        match way {
            HookWay::Auto | HookWay::Callbacks => Self::Callbacks,
            HookWay::Exec => Self::Exec,
        }
    }
}

/// Which session the process begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    Fresh { session: Uuid },
    Resume { session: Uuid },
}

/// What a command line is made of.
#[derive(Debug, Clone)]
pub struct Launch<'a> {
    pub config: &'a ClaudeAgent,
    pub hooks: Hooks,
    pub start: Start,
    /// Path of our own program, for hooks that are processes.
    pub hook_program: &'a str,
    /// What is left of the run's budget, if it has one.
    pub budget_usd: Option<f64>,
    /// What the answer has to look like, as a JSON schema.
    pub schema: Option<&'a str>,
    /// Takes nothing from the project, neither settings nor CLAUDE.md nor servers: they are among what is judged.
    pub apart: bool,
}

/// What to start, and how its environment differs from ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    pub argv: Vec<String>,
    /// To set, after `unset`; the user's own `env` comes last, so that it wins.
    pub set: Vec<(String, String)>,
    pub unset: Vec<&'static str>,
}

/// The client for this session. Its prompts come over the pipe.
pub fn command_line(launch: &Launch<'_>) -> CommandLine {
    let config = launch.config;
    let mut argv = vec![config.binary.clone()];
    let mut add = |words: &[&str]| argv.extend(words.iter().map(|word| (*word).to_owned()));
    add(&["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]);
    add(&["--permission-mode", permission_mode(config.permission)]);
    add(&["--settings", &settings(launch.hooks, launch.hook_program).to_string()]);
    match &launch.start {
        Start::Fresh { session } => add(&["--session-id", session.as_str()]),
        Start::Resume { session } => add(&["--resume", session.as_str()]),
    }
    if let Some(model) = &config.model {
        add(&["--model", model]);
    }
    if let Some(rest) = launch.budget_usd {
        add(&["--max-budget-usd", &dollars(rest)]);
    }
    argv.extend(config.args.iter().cloned());
    // The last one counts, whatever the user's own arguments say.
    let mut add = |words: &[&str]| argv.extend(words.iter().map(|word| (*word).to_owned()));
    if let Some(schema) = launch.schema {
        add(&["--json-schema", schema]);
    }
    if launch.apart {
        add(&["--setting-sources", "user", "--strict-mcp-config"]);
    }
    CommandLine { argv, set: variables(config), unset: SCRUBBED.to_vec() }
}

/// The events that can be registered as callbacks, with the seconds that an answer may take.
pub fn callback_events() -> impl Iterator<Item = (&'static str, u32)> {
    EVENTS.into_iter()
}

/// An answer takes milliseconds; this is for a machine that is very busy. A guard that takes longer denies.
const ANSWER: u32 = 30;
/// After a tool the user's own command may run, a formatter say.
const AFTER_TOOL: u32 = 60;
/// A longer one would only delay the end of the client.
const CLOSING: u32 = 2;

const EVENTS: [(&str, u32); 16] = [
    ("UserPromptSubmit", ANSWER),
    ("PreToolUse", ANSWER),
    ("PermissionRequest", ANSWER),
    ("PostToolUse", AFTER_TOOL),
    ("PostToolUseFailure", AFTER_TOOL),
    ("PostToolBatch", AFTER_TOOL),
    ("ConfigChange", ANSWER),
    ("PreCompact", ANSWER),
    ("PostCompact", ANSWER),
    ("SubagentStart", ANSWER),
    ("SubagentStop", ANSWER),
    ("TaskCreated", ANSWER),
    ("TaskCompleted", ANSWER),
    ("Notification", ANSWER),
    ("Stop", ANSWER),
    ("StopFailure", ANSWER),
];

/// The client never calls back for these two, so they are processes always.
const SESSION_EVENTS: [(&str, u32); 2] = [("SessionStart", ANSWER), ("SessionEnd", CLOSING)];

/// Whether a failing hook of this event blocks what it was asked about.
pub(super) fn blocks_on_failure(event: &str) -> bool {
    match Role::of(event) {
        Role::Guard => true,
        Role::Observer => false,
    }
}

fn permission_mode(permission: ClaudePermission) -> &'static str {
    match permission {
        ClaudePermission::Policy => "default",
        ClaudePermission::AcceptEdits => "acceptEdits",
        ClaudePermission::Bypass => "bypassPermissions",
    }
}

fn settings(hooks: Hooks, program: &str) -> Value {
    let events: Vec<(&str, u32)> = match hooks {
        Hooks::Callbacks => SESSION_EVENTS.to_vec(),
        Hooks::Exec => SESSION_EVENTS.into_iter().chain(EVENTS).collect(),
    };
    let entry = |(event, timeout): (&str, u32)| {
        let mut hook = json!({ "type": "command", "command": program, "args": ["hook", event, "--run"], "timeout": timeout });
        if blocks_on_failure(event) {
            hook["onFailure"] = "block".into();
        }
        (event.to_owned(), json!([{ "matcher": "", "hooks": [hook] }]))
    };
    let hooks: Map<String, Value> = events.into_iter().map(entry).collect();
    // Said here, it outranks a `disableAllHooks` that an agent writes into the project's settings.
    json!({ "disableAllHooks": false, "hooks": hooks })
}

fn variables(config: &ClaudeAgent) -> Vec<(String, String)> {
    let mut set = vec![
        // The only sure sign that a turn is over.
        ("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", "1"),
        // Waiting for an API is Verdone's, which shows it; the client alone would take minutes over a wrong key too.
        ("CLAUDE_CODE_MAX_RETRIES", "3"),
        // A client that replaces itself under a run is another client.
        ("DISABLE_AUTOUPDATER", "1"),
    ];
    if let Some(effort) = &config.effort {
        set.push(("CLAUDE_CODE_EFFORT_LEVEL", effort));
    }
    let own = set.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
    let users = config.env.iter().map(|(name, value)| (name.clone(), value.clone()));
    own.filter(|(name, _)| !config.env.contains_key(name)).chain(users).collect()
}

/// Rounded down: more than is left must not be passed on. Nothing left is the caller's to notice; the client takes no zero.
fn dollars(rest: f64) -> String {
    let rest = if rest.is_finite() { rest } else { 0.0 };
    format!("{:.4}", ((rest * 10_000.0).floor() / 10_000.0).max(0.0001))
}

#[cfg(test)]
mod tests;
