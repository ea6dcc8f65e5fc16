//! Parses the input of a hook. Unknown events and fields are accepted; a known event without a required field is an error.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::policy::{self, ToolKind};

/// One hook call, borrowed from the input bytes.
#[derive(Debug, Clone)]
pub struct HookInput<'a> {
    pub common: Common<'a>,
    pub event: HookEvent<'a>,
}

/// The fields of every event.
#[derive(Debug, Clone, Default)]
pub struct Common<'a> {
    /// The name of the event, even if we do not know it.
    pub event_name: Cow<'a, str>,
    pub session: Cow<'a, str>,
    /// Follows the agent's `cd`, so it does not identify the project.
    pub cwd: Cow<'a, str>,
    pub transcript: Option<Cow<'a, str>>,
    pub permission_mode: Option<Cow<'a, str>>,
    /// Only inside a subagent.
    pub agent_id: Option<Cow<'a, str>>,
    pub agent_type: Option<Cow<'a, str>>,
}

#[derive(Debug, Clone)]
pub enum HookEvent<'a> {
    SessionStart {
        source: StartSource,
    },
    UserPromptSubmit {
        prompt: Cow<'a, str>,
    },
    PreToolUse(ToolCall<'a>),
    PermissionRequest(ToolCall<'a>),
    /// The tool succeeded.
    PostToolUse {
        call: ToolCall<'a>,
        response: Option<&'a RawValue>,
        duration_ms: u64,
    },
    /// The tool started and failed. Includes Bash commands with a non-zero exit code.
    PostToolUseFailure {
        call: ToolCall<'a>,
        error: Cow<'a, str>,
        interrupted: bool,
        duration_ms: u64,
    },
    PostToolBatch,
    TaskCreated {
        task: Cow<'a, str>,
        subject: Cow<'a, str>,
    },
    TaskCompleted {
        task: Cow<'a, str>,
        subject: Cow<'a, str>,
    },
    TeammateIdle {
        teammate: Cow<'a, str>,
    },
    ConfigChange {
        source: Cow<'a, str>,
        file: Option<Cow<'a, str>>,
    },
    PreCompact,
    PostCompact,
    SubagentStart,
    SubagentStop {
        active: bool,
    },
    Notification {
        message: Cow<'a, str>,
    },
    Stop {
        /// Whether an earlier block made the turn continue.
        active: bool,
        last_message: Option<Cow<'a, str>>,
        background_tasks: Option<&'a RawValue>,
    },
    StopFailure {
        error: Cow<'a, str>,
    },
    SessionEnd {
        reason: Cow<'a, str>,
    },
    /// An event we do not handle.
    Other,
}

/// Why a session starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartSource {
    Startup,
    Resume,
    Clear,
    Compact,
    Fork,
    Other,
}

/// A tool that the agent wants to use, or has used.
#[derive(Debug, Clone)]
pub struct ToolCall<'a> {
    pub tool: Cow<'a, str>,
    pub input: &'a RawValue,
    /// Absent in permission requests.
    pub id: Option<Cow<'a, str>>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    #[error("the input is not UTF-8")]
    NotUtf8,
    #[error("the input is not JSON: {message}")]
    NotJson { message: String },
    #[error("{event} without {field}")]
    Missing { event: String, field: &'static str },
}

impl<'a> HookInput<'a> {
    /// Reads one JSON value.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, InputError> {
        let text = std::str::from_utf8(bytes).map_err(|_| InputError::NotUtf8)?;
        let text = text.trim_start_matches('\u{feff}');
        let wire: Wire<'a> = serde_json::from_str(text).map_err(|error| InputError::NotJson { message: error.to_string() })?;
        let common = Common {
            event_name: wire.text(wire.hook_event_name.as_ref(), "hook_event_name")?,
            session: wire.text(wire.session_id.as_ref(), "session_id")?,
            cwd: wire.text(wire.cwd.as_ref(), "cwd")?,
            transcript: wire.transcript_path.clone().map(Text::into_inner),
            permission_mode: wire.permission_mode.clone().map(Text::into_inner),
            agent_id: wire.agent_id.clone().map(Text::into_inner),
            agent_type: wire.agent_type.clone().map(Text::into_inner),
        };
        let event = wire.event(&common.event_name)?;
        Ok(Self { common, event })
    }
}

impl HookInput<'_> {
    /// The tool call of the event.
    pub fn call(&self) -> Option<&ToolCall<'_>> {
        match &self.event {
            HookEvent::PreToolUse(call)
            | HookEvent::PermissionRequest(call)
            | HookEvent::PostToolUse { call, .. }
            | HookEvent::PostToolUseFailure { call, .. } => Some(call),
            HookEvent::SessionStart { .. }
            | HookEvent::UserPromptSubmit { .. }
            | HookEvent::PostToolBatch
            | HookEvent::TaskCreated { .. }
            | HookEvent::TaskCompleted { .. }
            | HookEvent::TeammateIdle { .. }
            | HookEvent::ConfigChange { .. }
            | HookEvent::PreCompact
            | HookEvent::PostCompact
            | HookEvent::SubagentStart
            | HookEvent::SubagentStop { .. }
            | HookEvent::Notification { .. }
            | HookEvent::Stop { .. }
            | HookEvent::StopFailure { .. }
            | HookEvent::SessionEnd { .. }
            | HookEvent::Other => None,
        }
    }
}

impl ToolCall<'_> {
    /// The call in the form policy needs. Fails if a shell call has no command or a write names no file, because policy cannot judge it.
    pub fn for_policy(&self, event: &str) -> Result<policy::ToolCall, InputError> {
        let missing = |field| InputError::Missing { event: event.to_owned(), field };
        let input: serde_json::Value =
            serde_json::from_str(self.input.get()).map_err(|error| InputError::NotJson { message: error.to_string() })?;
        let call = policy::ToolCall { tool: self.tool.to_string(), input };
        let has = |fields: &[&str]| fields.iter().any(|field| call.text(field).is_some());
        match policy::kind_of(&call.tool) {
            // Monitor can also watch something other than a command.
            ToolKind::Shell if call.tool == "Monitor" && call.input.get("command").is_none() => Ok(call),
            ToolKind::Shell if !has(&["command", "cmd"]) => Err(missing("tool_input.command")),
            ToolKind::Write if !has(&["file_path", "notebook_path", "path"]) => Err(missing("tool_input.file_path")),
            ToolKind::Shell | ToolKind::Write | ToolKind::Read | ToolKind::Agent | ToolKind::Other => Ok(call),
        }
    }
}

/// All fields that we read, of all events, flat as on the wire.
#[derive(Debug, Deserialize)]
struct Wire<'a> {
    #[serde(borrow)]
    hook_event_name: Option<Text<'a>>,
    #[serde(borrow)]
    session_id: Option<Text<'a>>,
    #[serde(borrow)]
    cwd: Option<Text<'a>>,
    #[serde(borrow)]
    transcript_path: Option<Text<'a>>,
    #[serde(borrow)]
    permission_mode: Option<Text<'a>>,
    #[serde(borrow)]
    agent_id: Option<Text<'a>>,
    #[serde(borrow)]
    agent_type: Option<Text<'a>>,
    #[serde(borrow)]
    source: Option<Text<'a>>,
    #[serde(borrow)]
    prompt: Option<Text<'a>>,
    #[serde(borrow)]
    tool_name: Option<Text<'a>>,
    #[serde(borrow)]
    tool_input: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_use_id: Option<Text<'a>>,
    #[serde(borrow)]
    tool_response: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<Text<'a>>,
    #[serde(default)]
    is_interrupt: bool,
    #[serde(default)]
    duration_ms: u64,
    #[serde(borrow)]
    task_id: Option<Text<'a>>,
    #[serde(borrow)]
    task_subject: Option<Text<'a>>,
    #[serde(borrow)]
    teammate_name: Option<Text<'a>>,
    #[serde(borrow)]
    file_path: Option<Text<'a>>,
    #[serde(borrow)]
    message: Option<Text<'a>>,
    #[serde(default)]
    stop_hook_active: bool,
    #[serde(borrow)]
    last_assistant_message: Option<Text<'a>>,
    #[serde(borrow)]
    background_tasks: Option<&'a RawValue>,
    #[serde(borrow)]
    reason: Option<Text<'a>>,
}

/// Borrowed if the text has no escapes.
#[derive(Debug, Clone, Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Text<'a> {
    fn into_inner(self) -> Cow<'a, str> {
        self.0
    }
}

impl<'a> Wire<'a> {
    fn text(&self, field: Option<&Text<'a>>, name: &'static str) -> Result<Cow<'a, str>, InputError> {
        field.map(|text| text.0.clone()).ok_or_else(|| self.missing(name))
    }

    fn missing(&self, field: &'static str) -> InputError {
        let event = self.hook_event_name.as_ref().map_or("an input", |name| name.0.as_ref());
        InputError::Missing { event: event.to_owned(), field }
    }

    fn call(&self) -> Result<ToolCall<'a>, InputError> {
        Ok(ToolCall {
            tool: self.text(self.tool_name.as_ref(), "tool_name")?,
            input: self.tool_input.ok_or_else(|| self.missing("tool_input"))?,
            id: self.tool_use_id.clone().map(Text::into_inner),
        })
    }

    fn event(&self, name: &str) -> Result<HookEvent<'a>, InputError> {
        let or_empty = |text: &Option<Text<'a>>| text.clone().map_or(Cow::Borrowed(""), Text::into_inner);
        let duration_ms = self.duration_ms;
        Ok(match name {
            "SessionStart" => HookEvent::SessionStart { source: start_source(&or_empty(&self.source)) },
            "UserPromptSubmit" => HookEvent::UserPromptSubmit { prompt: or_empty(&self.prompt) },
            "PreToolUse" => HookEvent::PreToolUse(self.call()?),
            "PermissionRequest" => HookEvent::PermissionRequest(self.call()?),
            "PostToolUse" => HookEvent::PostToolUse { call: self.call()?, response: self.tool_response, duration_ms },
            "PostToolUseFailure" => HookEvent::PostToolUseFailure {
                call: self.call()?,
                error: or_empty(&self.error),
                interrupted: self.is_interrupt,
                duration_ms,
            },
            "PostToolBatch" => HookEvent::PostToolBatch,
            "TaskCreated" => HookEvent::TaskCreated { task: or_empty(&self.task_id), subject: or_empty(&self.task_subject) },
            "TaskCompleted" => HookEvent::TaskCompleted { task: or_empty(&self.task_id), subject: or_empty(&self.task_subject) },
            "TeammateIdle" => HookEvent::TeammateIdle { teammate: or_empty(&self.teammate_name) },
            "ConfigChange" => HookEvent::ConfigChange {
                source: self.text(self.source.as_ref(), "source")?,
                file: self.file_path.clone().map(Text::into_inner),
            },
            "PreCompact" => HookEvent::PreCompact,
            "PostCompact" => HookEvent::PostCompact,
            "SubagentStart" => HookEvent::SubagentStart,
            "SubagentStop" => HookEvent::SubagentStop { active: self.stop_hook_active },
            "Notification" => HookEvent::Notification { message: or_empty(&self.message) },
            "Stop" => HookEvent::Stop {
                active: self.stop_hook_active,
                last_message: self.last_assistant_message.clone().map(Text::into_inner),
                background_tasks: self.background_tasks,
            },
            "StopFailure" => HookEvent::StopFailure { error: or_empty(&self.error) },
            "SessionEnd" => HookEvent::SessionEnd { reason: or_empty(&self.reason) },
            _ => HookEvent::Other,
        })
    }
}

fn start_source(name: &str) -> StartSource {
    match name {
        "startup" => StartSource::Startup,
        "resume" => StartSource::Resume,
        "clear" => StartSource::Clear,
        "compact" => StartSource::Compact,
        "fork" => StartSource::Fork,
        _ => StartSource::Other,
    }
}
