//! Parses the lines of the client's standard output, leniently and without copying.
//!
//! No line is an error. Unused fields are skipped without allocation, and a field with an unexpected type is ignored. A stream may have
//! 100 MB, most of it tool output that is never used.

mod control;
mod lenient;
mod line;
mod said;

use std::borrow::Cow;

use serde::Deserialize;

use control::RawControl;
pub use control::{ContextAnswer, ControlAnswer, HookCallback, InitializeAnswer};
use lenient::text;
pub use line::{
    ApiRetry, Assistant, BackgroundTask, Block, Compaction, Denial, Init, Message, ModelUsage, RateLimit, ResultLine, State,
    ToolResult, Usage, UserLine, Window,
};
use line::{RawOther, RawSystem, RawToolResult, RawUser, ToolResultMeta};

/// The longest line that is read. The reader passes on only the start of a longer one, which then parses as garbage.
pub const LINE_BYTES: usize = 16 * 1024 * 1024;

/// One line from the client.
#[derive(Debug, Clone)]
pub enum ClientLine<'a> {
    Init(Box<Init<'a>>),
    Assistant(Box<Assistant<'a>>),
    User(UserLine<'a>),
    Result(Box<ResultLine<'a>>),
    /// Must be answered with the same request id.
    HookCallback(HookCallback<'a>),
    /// A request of a kind we did not register for. The client waits for an answer here too; refuse it.
    ControlRequest {
        request: Cow<'a, str>,
        subtype: Cow<'a, str>,
    },
    /// The client no longer waits for an answer.
    ControlCancel {
        request: Cow<'a, str>,
    },
    ControlAnswer(ControlAnswer<'a>),
    RateLimit(RateLimit<'a>),
    StateChanged(State),
    /// The new state of a prompt: `queued`, `started`, `completed`, `cancelled`.
    Lifecycle {
        uuid: Cow<'a, str>,
        state: Cow<'a, str>,
    },
    ApiRetry(ApiRetry<'a>),
    Compacted(Compaction<'a>),
    Status {
        status: Option<Cow<'a, str>>,
        compact_error: Option<Cow<'a, str>>,
    },
    /// The conversation was cleared; the next `init` has the new session's id.
    ConversationReset {
        uuid: Option<Cow<'a, str>>,
    },
    PermissionDenied(Denial<'a>),
    Informational {
        text: Cow<'a, str>,
        level: Option<Cow<'a, str>>,
        tag: Option<Cow<'a, str>>,
    },
    /// `task_started`, `task_progress`, `task_updated`, `task_notification`.
    Task {
        subtype: Cow<'a, str>,
        task: BackgroundTask<'a>,
        summary: Option<Cow<'a, str>>,
    },
    /// All tasks that currently run in the background.
    BackgroundTasks(Vec<BackgroundTask<'a>>),
    StreamEvent,
    HookStarted {
        event: Option<Cow<'a, str>>,
    },
    HookResponse {
        event: Option<Cow<'a, str>>,
        outcome: Option<Cow<'a, str>>,
    },
    /// A line of an unknown kind: `type` or `type/subtype`.
    Unknown {
        kind: String,
    },
    /// The start of a line that is not a JSON object with a type.
    Garbage {
        text: String,
    },
}

/// Parses one line, with or without its line feed; `None` if it is blank.
pub fn parse(bytes: &[u8]) -> Option<ClientLine<'_>> {
    let bytes = bytes.trim_ascii();
    if bytes.is_empty() {
        return None;
    }
    Some(std::str::from_utf8(bytes).ok().and_then(known).unwrap_or_else(|| garbage(bytes)))
}

/// The type and subtype of a line; most lines start with them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Kind<'a> {
    #[serde(borrow, rename = "type", deserialize_with = "text")]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "text")]
    subtype: Option<Cow<'a, str>>,
}

fn known(line: &str) -> Option<ClientLine<'_>> {
    if let Some((name, subtype)) = beginning(line) {
        return of_kind(line, name, subtype);
    }
    let kind: Kind<'_> = read(line)?;
    of_kind(line, kind.name.as_deref()?, kind.subtype.as_deref())
}

/// The type and subtype, if the line starts with them, as nearly all do. Does not read the rest.
fn beginning(line: &str) -> Option<(&str, Option<&str>)> {
    let word = |text: &'_ str| text.find(['"', '\\']).filter(|at| text.as_bytes()[*at] == b'"');
    let rest = line.strip_prefix("{\"type\":\"")?;
    let (name, rest) = rest.split_at(word(rest)?);
    let subtype = rest.strip_prefix("\",\"subtype\":\"").and_then(|rest| Some(&rest[..word(rest)?]));
    // The subtype of a `system` line may come later.
    (subtype.is_some() || name != "system").then_some((name, subtype))
}

fn of_kind<'a>(line: &'a str, name: &str, subtype: Option<&str>) -> Option<ClientLine<'a>> {
    Some(match name {
        "assistant" => ClientLine::Assistant(Box::new(read(line)?)),
        "user" => ClientLine::User(user(read(line)?)),
        "result" => ClientLine::Result(Box::new(read(line)?)),
        "system" => system(line, subtype.unwrap_or_default())?,
        "stream_event" => complete(line).map(|()| ClientLine::StreamEvent)?,
        "control_request" => control_request(read(line)?)?,
        "control_cancel_request" => {
            ClientLine::ControlCancel { request: read::<RawControl<'_>>(line)?.request_id.unwrap_or_default() }
        }
        "control_response" => ClientLine::ControlAnswer(read::<RawControl<'_>>(line)?.response),
        "rate_limit_event" => ClientLine::RateLimit(read::<RawOther<'_>>(line)?.rate_limit_info),
        "command_lifecycle" => {
            let raw: RawOther<'_> = read(line)?;
            ClientLine::Lifecycle { uuid: raw.command_uuid.unwrap_or_default(), state: raw.state.unwrap_or_default() }
        }
        "conversation_reset" => ClientLine::ConversationReset { uuid: read::<RawOther<'_>>(line)?.user_message_uuid },
        _ => complete(line).map(|()| unknown(name, subtype))?,
    })
}

fn system<'a>(line: &'a str, subtype: &str) -> Option<ClientLine<'a>> {
    let raw = || read::<RawSystem<'a>>(line);
    Some(match subtype {
        "init" => ClientLine::Init(Box::new(read(line)?)),
        "session_state_changed" => ClientLine::StateChanged(match raw()?.state.as_deref() {
            Some("running") => State::Running,
            Some("requires_action") => State::RequiresAction,
            Some("idle") => State::Idle,
            Some(_) | None => State::Other,
        }),
        "api_retry" => ClientLine::ApiRetry(read(line)?),
        "compact_boundary" => ClientLine::Compacted(raw()?.compact_metadata),
        "status" => {
            let raw = raw()?;
            ClientLine::Status { status: raw.status, compact_error: raw.compact_error }
        }
        "permission_denied" => ClientLine::PermissionDenied(read(line)?),
        "informational" | "notification" | "model_fallback" | "model_refusal_no_fallback" => {
            let raw = raw()?;
            let text = raw.content.or(raw.text).unwrap_or_default();
            ClientLine::Informational { text, level: raw.level, tag: raw.tag.or(raw.key) }
        }
        "task_started" | "task_progress" | "task_updated" | "task_notification" => {
            let raw = raw()?;
            let task = BackgroundTask { task_id: raw.task_id, task_type: raw.task_type, description: raw.description };
            ClientLine::Task { subtype: Cow::Owned(subtype.to_owned()), task, summary: raw.summary }
        }
        "background_tasks_changed" => ClientLine::BackgroundTasks(raw()?.tasks),
        "hook_started" => ClientLine::HookStarted { event: raw()?.hook_event },
        "hook_response" => {
            let raw = raw()?;
            ClientLine::HookResponse { event: raw.hook_event, outcome: raw.outcome }
        }
        _ => complete(line).map(|()| unknown("system", Some(subtype)))?,
    })
}

fn control_request(raw: RawControl<'_>) -> Option<ClientLine<'_>> {
    let request = raw.request_id?;
    let subtype = raw.request.subtype.unwrap_or_default();
    Some(match (subtype.as_ref(), raw.request.input) {
        ("hook_callback", Some(input)) => {
            ClientLine::HookCallback(HookCallback { request, callback: raw.request.callback_id.unwrap_or_default(), input })
        }
        _ => ClientLine::ControlRequest { request, subtype },
    })
}

fn user(raw: RawUser<'_>) -> UserLine<'_> {
    let mut tool_results = Vec::new();
    for block in raw.message.content {
        let refused = refusal(&block, &raw.tool_result_meta);
        let hook_fault = refused.as_ref().and_then(|_| hook_fault(&block));
        if let Some(id) = block.tool_use_id {
            tool_results.push(ToolResult { id, failed: block.is_error, refused, hook_fault });
        }
    }
    UserLine { tool_results, parent_tool_use_id: raw.parent_tool_use_id }
}

/// Why a call was not executed. The client says so in the metadata beside the result. If that has no entry for the call, the text of the
/// failed result decides.
fn refusal<'a>(block: &RawToolResult<'a>, meta: &[ToolResultMeta<'a>]) -> Option<Cow<'a, str>> {
    if let Some(meta) = meta.iter().find(|meta| meta.id == block.tool_use_id) {
        return meta.non_execution_kind.clone();
    }
    // An invalid input or an unknown tool. The client never puts this tag before text written by a tool.
    let invalid = |text: &str| text.starts_with("\"<tool_use_error>") || text.starts_with("\"PreToolUse:");
    (block.is_error && block.content.is_some_and(|raw| invalid(raw.get()))).then_some(Cow::Borrowed("invalid"))
}

/// Only for calls that were not executed, so that no tool output can pass for it; and only for our hook, not for the user's.
fn hook_fault(block: &RawToolResult<'_>) -> Option<String> {
    const OURS: &str = " hook PreToolUse --run]: failed; blocking because onFailure";
    const SAID_NOTHING: &str = "No stderr output";
    let raw = block.content.map(serde_json::value::RawValue::get).filter(|raw| raw.starts_with("\"PreToolUse:"))?;
    let text: String = read(raw)?;
    let (_, after) = text.split_once(OURS)?;
    let told = after.lines().nth(1).map(str::trim).filter(|line| !line.is_empty() && *line != SAID_NOTHING);
    let told = told.map_or_else(|| "it exited without an answer".to_owned(), |told| cut(told, 300).to_owned());
    Some(format!("the hook's process failed: {told}"))
}

fn read<'a, T: Deserialize<'a>>(line: &'a str) -> Option<T> {
    serde_json::from_str(line).ok()
}

/// Whether the whole line is valid JSON.
fn complete(line: &str) -> Option<()> {
    read::<serde::de::IgnoredAny>(line).map(|_| ())
}

fn unknown(name: &str, subtype: Option<&str>) -> ClientLine<'static> {
    let kind =
        subtype.filter(|subtype| !subtype.is_empty()).map_or_else(|| name.to_owned(), |subtype| format!("{name}/{subtype}"));
    ClientLine::Unknown { kind: cut(&kind, 100).to_owned() }
}

fn garbage(bytes: &[u8]) -> ClientLine<'static> {
    const SHOWN: usize = 500;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN)]);
    ClientLine::Garbage { text: text.into_owned() }
}

fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The hook failure found in the result of a call.
    fn fault_in(content: &str, executed: bool) -> Option<String> {
        let kind = if executed { json!(null) } else { json!("permission-rule") };
        let block = json!({ "type": "tool_result", "content": content, "is_error": true, "tool_use_id": "t" });
        let meta = json!([{ "id": "t", "non_execution_kind": kind }]);
        let line = json!({ "type": "user", "message": { "content": [block] }, "tool_result_meta": meta }).to_string();
        let Some(ClientLine::User(user)) = parse(line.as_bytes()) else { panic!("{line}") };
        user.tool_results[0].hook_fault.clone()
    }

    #[test]
    fn an_error_of_the_api_is_left_to_the_outcome_of_the_turn() {
        let said = |line: serde_json::Value| parse(line.to_string().as_bytes()).unwrap().said();
        let message = json!({ "model": "<synthetic>", "content": [{ "type": "text", "text": "API Error: 500" }] });
        let error = json!({ "type": "assistant", "error": "server_error", "message": message });
        let result = json!({ "type": "result", "subtype": "success", "is_error": true, "result": "API Error: 500" });
        assert_eq!((said(error), said(result)), (None, None), "the outcome says it, once");
        let text = json!({ "type": "assistant", "message": { "content": [{ "type": "text", "text": "Hello." }] } });
        assert_eq!(said(text).as_deref(), Some("Hello."));
    }

    #[test]
    fn a_process_of_our_hook_that_failed_is_told_from_everything_else() {
        let failed = |command: &str, rest: &str| {
            format!("PreToolUse:Bash hook error: [{command}]: failed; blocking because onFailure is \"block\"{rest}")
        };
        let (ours, theirs) = ("/opt/my tools/verdone hook PreToolUse --run", "/home/me/lint.sh");
        let gone = "\nError occurred while executing hook command: ENOENT: no such file or directory";
        let told = "the hook's process failed: Error occurred while executing hook command: ENOENT: no such file or directory";
        let silent = Some("the hook's process failed: it exited without an answer".to_owned());
        assert_eq!(fault_in(&failed(ours, gone), false).as_deref(), Some(told));
        assert_eq!(fault_in(&failed(ours, "\nNo stderr output"), false), silent);
        assert_eq!(fault_in(&failed(ours, ""), false), silent);
        assert_eq!(fault_in(&failed(theirs, gone), false), None, "a hook of the user's own");
        assert_eq!(fault_in(&failed(ours, gone), true), None, "what a tool wrote");
        assert_eq!(fault_in("PreToolUse:Bash hook error: [x hook PreToolUse --run]: no", false), None, "it has answered");
    }
}
