//! Builds the command line and environment of a client from the settings.
//!
//! Writes nothing to the user's or the project's settings: Verdone passes its own with `--settings`, only for this process.

use serde_json::{Map, Value, json};

use super::settings::{ClaudeAgent, ClaudePermission, HookWay};
use super::uuid::Uuid;
use crate::agent::tool_server::{SERVER, SOCKET_VARIABLE};
use crate::hook::Role;

/// The warning shown before a run with `permission = "bypass"`.
pub const BYPASS_WARNING: &str = "agent.claude.permission = \"bypass\": Claude Code never asks for permission. A failing guard no \
    longer blocks a tool call, and files outside the project are accessible. Use it only in a disposable sandbox.";

/// The oldest supported client. Older ones do not know `onFailure`, so a crashed hook together with an allow rule of the user's would
/// let a call through.
pub const OLDEST_CLIENT: Version = Version(2, 1, 295);

/// The newest client that Verdone's own tests run with. Newer ones usually work, too.
pub const TESTED_CLIENT: Version = Version(2, 1, 325);

/// Variables from an outer session, or for interactive use, that would change the client's behaviour. The user's choice of API, account
/// and model (`ANTHROPIC_*`, `CLAUDE_CONFIG_DIR`, `CLAUDE_CODE_USE_*`, ...) stays.
pub const SCRUBBED: [&str; 24] = [
    // Set by a client for its child processes.
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
    // Disable hooks.
    "CLAUDE_CODE_SIMPLE",
    "CLAUDE_CODE_SAFE_MODE",
    // Change when the client ends, resumes or compacts, which is Verdone's decision.
    "CLAUDE_CODE_EXIT_AFTER_STOP_DELAY",
    "CLAUDE_CODE_RESUME_INTERRUPTED_TURN",
    "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP",
    "DISABLE_AUTO_COMPACT",
    // Bring in tools, plugins, settings or tasks of another session.
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

/// Parses the output of `claude --version`, or the version in an `init` line.
pub fn version(text: &str) -> Option<Version> {
    let mut parts = text.split_whitespace().next()?.splitn(3, '.');
    let mut next = || {
        let part = parts.next()?;
        // Ignore a pre-release suffix.
        part[..part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len())].parse().ok()
    };
    Some(Version(next()?, next()?, next()?))
}

/// How hooks reach Verdone in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hooks {
    /// Over the pipe, registered by `initialize`. Only the session's start and end use processes.
    Callbacks,
    /// A process for every event.
    Exec,
}

impl Hooks {
    /// The way to try first. If the client does not accept callbacks, `Auto` continues with [`Hooks::Exec`].
    pub fn first(way: HookWay) -> Self {
        match way {
            HookWay::Auto | HookWay::Callbacks => Self::Callbacks,
            HookWay::Exec => Self::Exec,
        }
    }
}

/// The session the process starts with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    Fresh { session: Uuid },
    Resume { session: Uuid },
}

/// The parameters of a command line.
#[derive(Debug, Clone)]
pub struct Launch<'a> {
    pub config: &'a ClaudeAgent,
    pub hooks: Hooks,
    pub start: Start,
    /// The path of our own program, for hook processes.
    pub hook_program: &'a str,
    /// The rest of the run's budget, if it has one.
    pub budget_usd: Option<f64>,
    /// The JSON schema for the answer.
    pub schema: Option<&'a str>,
    /// The socket on which the run answers calls of our tools, as a path inside. `None`: the client gets no tools of ours.
    pub tools: Option<&'a str>,
    /// Ignores the project's settings, CLAUDE.md and servers, because they are part of what is judged.
    pub apart: bool,
}

/// The command to start, and how its environment differs from ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    pub argv: Vec<String>,
    /// Variables to set, after `unset`. The user's own `env` comes last, so that it wins.
    pub set: Vec<(String, String)>,
    pub unset: Vec<&'static str>,
}

/// The command line of the client for this session. Prompts are sent over the pipe.
pub fn command_line(launch: &Launch<'_>) -> CommandLine {
    let config = launch.config;
    let mut argv = vec![config.binary.clone()];
    let mut add = |words: &[&str]| argv.extend(words.iter().map(|word| (*word).to_owned()));
    add(&["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]);
    // This option takes all words up to the next option.
    if let Some(socket) = launch.tools {
        add(&["--mcp-config", &tools(launch.hook_program, socket).to_string()]);
    }
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
    // The last occurrence wins, so these override the user's own arguments.
    let mut add = |words: &[&str]| argv.extend(words.iter().map(|word| (*word).to_owned()));
    if let Some(schema) = launch.schema {
        add(&["--json-schema", schema]);
    }
    if launch.apart {
        add(&["--setting-sources", "user", "--strict-mcp-config"]);
    }
    CommandLine { argv, set: variables(config), unset: SCRUBBED.to_vec() }
}

/// The events that can be registered as callbacks, with their timeouts in seconds.
pub fn callback_events() -> impl Iterator<Item = (&'static str, u32)> {
    EVENTS.into_iter()
}

/// An answer takes milliseconds; this allows for a very busy machine. A slower guard denies.
const ANSWER: u32 = 30;
/// The user's own command, for example a formatter, may run after a tool.
const AFTER_TOOL: u32 = 60;
/// A longer timeout would only delay the client's exit.
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

/// The client never uses callbacks for these two, so they are always processes.
const SESSION_EVENTS: [(&str, u32); 2] = [("SessionStart", ANSWER), ("SessionEnd", CLOSING)];

/// Whether a failing hook of this event blocks the action.
pub(super) fn blocks_on_failure(event: &str) -> bool {
    match Role::from_event(event) {
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
    // Here it overrides a `disableAllHooks` that an agent writes into the project's settings.
    json!({ "disableAllHooks": false, "hooks": hooks })
}

/// Our server. The client would hide its tools behind a search unless it loads them always, and gives servers only some variables.
fn tools(program: &str, socket: &str) -> Value {
    let server = json!({
        "type": "stdio",
        "command": program,
        "args": ["mcp"],
        "env": { (SOCKET_VARIABLE): socket },
        "alwaysLoad": true,
    });
    json!({ "mcpServers": { (SERVER): server } })
}

fn variables(config: &ClaudeAgent) -> Vec<(String, String)> {
    let mut set = vec![
        // The only reliable sign that a turn is over.
        ("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", "1"),
        // Verdone itself waits for the API and shows it; the client alone would take minutes, even for a wrong key.
        ("CLAUDE_CODE_MAX_RETRIES", "3"),
        // The client must not replace itself during a run.
        ("DISABLE_AUTOUPDATER", "1"),
    ];
    if let Some(effort) = &config.effort {
        set.push(("CLAUDE_CODE_EFFORT_LEVEL", effort));
    }
    let own = set.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
    let users = config.env.iter().map(|(name, value)| (name.clone(), value.clone()));
    own.filter(|(name, _)| !config.env.contains_key(name)).chain(users).collect()
}

/// Rounded down, so that the limit never exceeds the rest. The caller handles an exhausted budget; the client does not accept zero.
fn dollars(rest: f64) -> String {
    let rest = if rest.is_finite() { rest } else { 0.0 };
    format!("{:.4}", ((rest * 10_000.0).floor() / 10_000.0).max(0.0001))
}

#[cfg(test)]
mod tests;
