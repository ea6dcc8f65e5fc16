//! Codex's approval requests as tool calls that policy understands.

use serde_json::{Value, json};

use super::command_text::{inner_command, waits_for_input};
use crate::agent::protocol::{CallFailure, FinishedCall, GuardedCall, PermissionRequest};

/// The calls that an item of the conversation stands for; empty if it runs nothing.
pub(super) fn calls_of(item: &Value) -> Vec<GuardedCall> {
    let id = item["id"].as_str().unwrap_or_default();
    match item["type"].as_str().unwrap_or_default() {
        "commandExecution" => vec![command_of(id, item)],
        "fileChange" => item["changes"].as_array().into_iter().flatten().flat_map(|change| edits_of(id, change)).collect(),
        "mcpToolCall" => vec![mcp_call(id, item["server"].as_str(), item["tool"].as_str(), &item["arguments"])],
        _ => Vec::new(),
    }
}

fn command_of(id: &str, holder: &Value) -> GuardedCall {
    GuardedCall::command(id, &inner_command(holder["command"].as_str().unwrap_or_default()), holder["cwd"].as_str())
}

/// One call for each file that a change touches: a move has two.
fn edits_of(id: &str, change: &Value) -> Vec<GuardedCall> {
    let path = change["path"].as_str().unwrap_or_default();
    let diff = change["diff"].as_str().unwrap_or_default();
    let edit = |tool: &str, path: &str, field: &str| {
        let input = json!({ "file_path": path, (field): diff });
        GuardedCall { id: id.to_owned(), tool: tool.to_owned(), input, cwd: None }
    };
    match change["kind"]["type"].as_str().unwrap_or_default() {
        "add" => vec![edit("Write", path, "content")],
        // Policy has a rule for deleting, which only commands can express.
        "delete" => vec![GuardedCall::command(id, &format!("rm -- {}", verdone_text::shell_word::shell_word(path)), None)],
        _ => {
            let moved = change["kind"]["move_path"].as_str().map(|to| edit("Write", to, "content"));
            std::iter::once(edit("Edit", path, "new_string")).chain(moved).collect()
        }
    }
}

fn mcp_call(id: &str, server: Option<&str>, tool: Option<&str>, arguments: &Value) -> GuardedCall {
    let tool = format!("mcp__{}__{}", server.unwrap_or_default(), tool.unwrap_or_default());
    let input = if arguments.is_object() { arguments.clone() } else { json!({}) };
    GuardedCall { id: id.to_owned(), tool, input, cwd: None }
}

/// The question about a command.
pub(super) fn about_command(request: String, params: &Value) -> PermissionRequest {
    let call = command_of(params["itemId"].as_str().unwrap_or_default(), params);
    let command = call.input["command"].as_str().unwrap_or_default();
    let refused = if command.trim().is_empty() {
        Some("the request names no command".to_owned())
    } else {
        waits_for_input(command).map(|program| {
            format!(
                "{program} would wait for typed commands, which cannot be checked. Instead: pass the commands as arguments \
                 (`{program} -c '…'`), or run a script file."
            )
        })
    };
    PermissionRequest { request, calls: vec![call], refused }
}

/// The question about an edit. The request names only the item, so the caller passes the calls of that item.
pub(super) fn about_edit(request: String, calls: Option<&Vec<GuardedCall>>) -> PermissionRequest {
    let calls = calls.cloned().unwrap_or_default();
    let refused =
        calls.is_empty().then(|| "Verdone did not see what the edit changes. Try it again in smaller steps.".to_owned());
    PermissionRequest { request, calls, refused }
}

/// The question about a call of an MCP server; `None` if a server asks the user something else.
pub(super) fn about_mcp(request: String, params: &Value, pending: Option<&GuardedCall>) -> Option<PermissionRequest> {
    let meta = &params["_meta"];
    if meta["codex_approval_kind"].as_str() != Some("mcp_tool_call") {
        return None;
    }
    let server = params["serverName"].as_str();
    // The tool's name is only in the item before, and in the message for people.
    let call = pending.filter(|call| call.tool.starts_with(&format!("mcp__{}__", server.unwrap_or_default()))).cloned();
    let quoted = || params["message"].as_str().and_then(|message| message.split('"').nth(1));
    let call = call.unwrap_or_else(|| mcp_call("", server, quoted(), &meta["tool_params"]));
    Some(PermissionRequest { request, calls: vec![call], refused: None })
}

/// The end of an item that ran something. `None` if it did not run.
pub(super) fn finished(item: &Value) -> Option<Vec<FinishedCall>> {
    let status = item["status"].as_str().unwrap_or_default();
    if !matches!(status, "completed" | "failed") {
        return None;
    }
    let exit_code = item["exitCode"].as_i64().and_then(|code| i32::try_from(code).ok());
    // A command that was never started has neither.
    if item["type"].as_str() == Some("commandExecution") && exit_code.is_none() && item["processId"].is_null() {
        return None;
    }
    let output = item["aggregatedOutput"].as_str().unwrap_or_default().to_owned();
    let error = item["error"]["message"].as_str().unwrap_or_default();
    let duration_ms = item["durationMs"].as_u64().unwrap_or(0);
    let result = match (status, exit_code) {
        ("completed", None | Some(0)) => Ok(output),
        (_, exit_code) => {
            let output = if output.is_empty() { error.to_owned() } else { output };
            Err(CallFailure { exit_code, output, interrupted: false })
        }
    };
    let ended = |call| FinishedCall { call, result: result.clone(), duration_ms };
    Some(calls_of(item).into_iter().map(ended).collect())
}
