//! Our entries in a settings file: the events, the command to start, and how to recognise our entries later.

use std::ops::Range;

use verdone_text::json::Node;

use super::cap::Cap;
use super::container::Layout;

/// An event for which we install a hook.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) event: &'static str,
    /// Whether it is a tool event. If so, the hook matches all tools; policy decides what each may do.
    tools: bool,
    /// In seconds.
    timeout: u32,
}

/// An answer takes milliseconds; this allows for a very busy machine.
const ANSWER: u32 = 10;
/// Gates may wait for a verification; the `[stop]` wait stays below this.
const GATE: u32 = 120;
/// The user's own command, for example a formatter, may run after a tool.
const AFTER_TOOL: u32 = 60;
/// A longer timeout would also extend that of other hooks while the user waits for the client to close.
const CLOSING: u32 = 2;

pub(super) const EVENTS: [Wanted; 19] = [
    Wanted { event: "SessionStart", tools: false, timeout: ANSWER },
    Wanted { event: "UserPromptSubmit", tools: false, timeout: ANSWER },
    Wanted { event: "PreToolUse", tools: true, timeout: ANSWER },
    Wanted { event: "PermissionRequest", tools: true, timeout: ANSWER },
    Wanted { event: "PostToolUse", tools: true, timeout: AFTER_TOOL },
    Wanted { event: "PostToolUseFailure", tools: true, timeout: AFTER_TOOL },
    Wanted { event: "PostToolBatch", tools: false, timeout: AFTER_TOOL },
    Wanted { event: "ConfigChange", tools: false, timeout: ANSWER },
    Wanted { event: "PreCompact", tools: false, timeout: ANSWER },
    Wanted { event: "PostCompact", tools: false, timeout: ANSWER },
    Wanted { event: "SubagentStart", tools: false, timeout: ANSWER },
    Wanted { event: "SubagentStop", tools: false, timeout: GATE },
    Wanted { event: "TaskCreated", tools: false, timeout: ANSWER },
    Wanted { event: "TaskCompleted", tools: false, timeout: AFTER_TOOL },
    Wanted { event: "TeammateIdle", tools: false, timeout: AFTER_TOOL },
    Wanted { event: "Notification", tools: false, timeout: ANSWER },
    Wanted { event: "Stop", tools: false, timeout: GATE },
    Wanted { event: "StopFailure", tools: false, timeout: ANSWER },
    Wanted { event: "SessionEnd", tools: false, timeout: CLOSING },
];

impl Wanted {
    pub(super) fn matcher(&self) -> Option<&'static str> {
        self.tools.then_some("*")
    }
}

/// The state before we installed our handler. Without it, uninstalling could not tell whether an empty `hooks` was the user's or ours.
/// It is encoded in the order of the handler's keys, which has no other meaning and survives a client that rewrites the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// A file with content. Containers that hold only our handler are ours.
    Plain,
    NoFolder,
    NoFile,
    /// An empty file, without even an object.
    BlankFile,
    /// `"hooks": {}`.
    EmptyHooks,
    /// An empty list for the event.
    EmptyList,
}

impl Mark {
    const ALL: [Self; 6] = [Self::Plain, Self::NoFolder, Self::NoFile, Self::BlankFile, Self::EmptyHooks, Self::EmptyList];

    fn order(self) -> [&'static str; 4] {
        match self {
            Self::Plain => ["type", "command", "args", "timeout"],
            Self::NoFile => ["type", "command", "timeout", "args"],
            Self::NoFolder => ["type", "timeout", "command", "args"],
            Self::BlankFile => ["timeout", "type", "command", "args"],
            Self::EmptyHooks => ["command", "args", "type", "timeout"],
            Self::EmptyList => ["command", "args", "timeout", "type"],
        }
    }

    /// The order for a handler that also marks the limit as ours: see [`Cap`]. No order is alphabetical, because a client might sort keys.
    fn order_with_cap(self) -> [&'static str; 4] {
        match self {
            Self::Plain => ["type", "args", "command", "timeout"],
            Self::NoFile => ["type", "args", "timeout", "command"],
            Self::NoFolder => ["type", "timeout", "args", "command"],
            Self::BlankFile => ["timeout", "type", "args", "command"],
            Self::EmptyHooks => ["args", "command", "type", "timeout"],
            Self::EmptyList => ["args", "timeout", "command", "type"],
        }
    }

    /// The mark of a handler, and whether the handler marks the limit as ours.
    fn parse(handler: &Node<'_>) -> (Self, bool) {
        let keys: Vec<&str> = handler.members().iter().map(|member| member.key.as_ref()).collect();
        let with_cap = Self::ALL.into_iter().find(|mark| mark.order_with_cap() == keys[..]);
        let mark = with_cap.or_else(|| Self::ALL.into_iter().find(|mark| mark.order() == keys[..]));
        (mark.unwrap_or(Self::Plain), with_cap.is_some())
    }
}

/// The argument that makes the program a hook.
const ARGUMENT: &str = "hook";

/// One of our handlers.
#[derive(Debug, Clone)]
pub(super) struct Handler {
    pub(super) program: String,
    pub(super) args: Vec<String>,
    timeout: Option<u64>,
    /// Whether it has keys that we do not write.
    changed: bool,
    pub(super) mark: Mark,
    pub(super) tells_cap: bool,
    pub(super) span: Range<usize>,
}

/// Compares what the handlers do; their positions do not matter.
impl PartialEq for Handler {
    fn eq(&self, other: &Self) -> bool {
        let told = |handler: &Self| (handler.program.clone(), handler.args.clone(), handler.timeout, handler.changed);
        told(self) == told(other)
    }
}

impl Handler {
    pub(super) fn wanted(wanted: &Wanted, program: &str) -> Self {
        let (program, args) = (program.to_owned(), vec![ARGUMENT.to_owned()]);
        Self {
            program,
            args,
            timeout: Some(wanted.timeout.into()),
            changed: false,
            mark: Mark::Plain,
            tells_cap: false,
            span: 0..0,
        }
    }

    /// Parses a handler if it is ours: it starts a program of our name as a hook, in whatever folder.
    pub(super) fn ours(text: &str, node: &Node<'_>) -> Option<Self> {
        let value: serde_json::Value = serde_json::from_str(&text[node.span.clone()]).ok()?;
        let program = value.get("command")?.as_str()?.to_owned();
        let args: Vec<String> = serde_json::from_value(value.get("args")?.clone()).ok()?;
        let ours = value.get("type")? == "command" && is_our_program(&program) && args.first().is_some_and(|arg| arg == ARGUMENT);
        let timeout = value.get("timeout").and_then(serde_json::Value::as_u64);
        let changed = value.as_object()?.len() != Mark::Plain.order().len();
        let (mark, tells_cap) = Mark::parse(node);
        ours.then(|| Self { program, args, timeout, changed, mark, tells_cap, span: node.span.clone() })
    }
}

pub(super) fn is_our_program(program: &str) -> bool {
    program.rsplit('/').next().is_some_and(|name| name.starts_with("verdone"))
}

/// One group with one handler, on one line: `{ "matcher": "*", "hooks": [{ … }] }`.
///
/// No `onFailure: "block"`: these are the user's own sessions, where our failure may warn but not stop the work. In a run, where the
/// hooks are the permission system, it must be set.
pub(super) fn group(layout: &Layout, wanted: &Wanted, program: &str, mark: Mark, cap: Cap) -> String {
    let value = |key: &str| match key {
        "type" => "\"command\"".to_owned(),
        "command" => quoted(program),
        "args" => format!("[{}]", quoted(ARGUMENT)),
        _ => wanted.timeout.to_string(),
    };
    let order = if cap.is_told_by(wanted.event) { mark.order_with_cap() } else { mark.order() };
    let handler = layout.line(&order.map(|key| layout.member(key, &value(key))));
    let hooks = layout.member("hooks", &format!("[{handler}]"));
    match wanted.matcher() {
        Some(matcher) => layout.line(&[layout.member("matcher", &quoted(matcher)), hooks]),
        None => layout.line(&[hooks]),
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
