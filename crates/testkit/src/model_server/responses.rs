//! The Responses API, which Codex speaks: its requests, and answers as a stream of events.
//!
//! Scripts stay the same: a `Bash` call becomes Codex's `exec_command`, and `Write` becomes a patch that adds a file.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::request::ToolResult;
use super::script::{ApiError, Block, Limit, Turn, Usage, Window};

/// Texts that the client itself puts before the user's: the environment, instructions from files, results of hooks.
const NOTES: [&str; 5] = ["<environment_context", "<user_instructions", "# AGENTS.md", "<permissions", "<skills"];

/// All texts of the user in a conversation, one string per message.
pub(super) fn prompts(body: &Value) -> Vec<String> {
    let texts = items(body).iter().filter(|item| item["role"] == "user").map(text_of);
    texts.filter(|text| !text.is_empty() && !NOTES.iter().any(|note| text.trim_start().starts_with(note))).collect()
}

/// The results since the model's last answer.
pub(super) fn tool_results(body: &Value) -> Vec<ToolResult> {
    let items = items(body);
    let is_answer = |item: &Value| item["role"] == "assistant" || is_call(item);
    let since = items.iter().rposition(is_answer).map_or(0, |at| at + 1);
    let ended = |item: &&Value| item["type"].as_str().is_some_and(|kind| kind.ends_with("_call_output"));
    items[since..].iter().filter(ended).map(result_of).collect()
}

pub(super) fn items(body: &Value) -> &[Value] {
    body["input"].as_array().map_or(&[], Vec::as_slice)
}

fn is_call(item: &Value) -> bool {
    item["type"].as_str().is_some_and(|kind| kind.ends_with("_call"))
}

fn text_of(item: &Value) -> String {
    let parts = item["content"].as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
    parts.collect::<Vec<_>>().join("\n")
}

fn result_of(item: &Value) -> ToolResult {
    let text = match &item["output"] {
        Value::String(text) => text.clone(),
        output => output.to_string(),
    };
    ToolResult { id: item["call_id"].as_str().unwrap_or_default().to_owned(), is_error: false, text }
}

/// One stream event, ready to send.
pub(super) fn events(turn: &Turn, model: &str, number: usize) -> Vec<(bool, Vec<u8>)> {
    let id = format!("resp_{number:06}");
    let mut events = vec![json!({ "type": "response.created", "response": { "id": id, "model": model } })];
    for (index, block) in turn.blocks.iter().enumerate() {
        let item = item(block, number, index);
        if let Block::Text(text) = block {
            let empty = json!({ "type": "message", "role": "assistant", "id": item["id"], "content": [] });
            events.push(json!({ "type": "response.output_item.added", "output_index": index, "item": empty }));
            events.push(json!({ "type": "response.output_text.delta", "item_id": item["id"], "output_index": index,
                "content_index": 0, "delta": text }));
        }
        events.push(json!({ "type": "response.output_item.done", "output_index": index, "item": item }));
    }
    events.push(json!({ "type": "response.completed", "response": { "id": id, "model": model, "usage": usage(turn.usage) } }));
    let is_content =
        |event: &Value| event["type"] == "response.output_item.done" || event["type"] == "response.output_text.delta";
    events.iter().map(|event| (is_content(event), bytes(event))).collect()
}

/// An error as a stream event.
pub(super) fn failed(kind: &str, message: &str) -> Vec<u8> {
    bytes(&json!({ "type": "response.failed", "response": { "id": "resp_x", "error": { "code": kind, "message": message } } }))
}

fn bytes(event: &Value) -> Vec<u8> {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default()).into_bytes()
}

fn item(block: &Block, number: usize, index: usize) -> Value {
    let id = format!("item_{number:06}_{index}");
    match block {
        Block::Text(text) => {
            json!({ "type": "message", "role": "assistant", "id": id, "content": [{ "type": "output_text", "text": text }] })
        }
        Block::Thinking(text) => {
            json!({ "type": "reasoning", "id": id, "summary": [{ "type": "summary_text", "text": text }], "content": null })
        }
        Block::Tool { name, input } => call(name, input, &id, &format!("call_{number:06}_{index}")),
    }
}

fn call(name: &str, input: &Value, id: &str, call_id: &str) -> Value {
    let function = |name: &str, arguments: &Value| json!({ "type": "function_call", "id": id, "call_id": call_id, "name": name, "arguments": arguments.to_string() });
    let patch = |text: &str| json!({ "type": "custom_tool_call", "id": id, "call_id": call_id, "status": "completed", "name": "apply_patch", "input": text });
    match name {
        "Bash" => function("exec_command", &json!({ "cmd": input["command"] })),
        "Write" => {
            let (file, text) = (input["file_path"].as_str().unwrap_or_default(), input["content"].as_str().unwrap_or_default());
            let lines: Vec<String> = text.lines().map(|line| format!("+{line}\n")).collect();
            patch(&format!("*** Begin Patch\n*** Add File: {file}\n{}*** End Patch\n", lines.concat()))
        }
        "apply_patch" => patch(input["patch"].as_str().unwrap_or_default()),
        _ => function(name, input),
    }
}

fn usage(usage: Usage) -> Value {
    let input = usage.input + usage.cache_read + usage.cache_creation;
    json!({
        "input_tokens": input,
        "input_tokens_details": { "cached_tokens": usage.cache_read },
        "output_tokens": usage.output,
        "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": input + usage.output,
    })
}

/// The body of an error answer.
pub(super) fn refusal(error: &ApiError) -> Value {
    let kind = error.kind.as_deref().unwrap_or(match error.status {
        _ if error.limit.is_some() => "usage_limit_reached",
        401 => "invalid_request_error",
        429 => "rate_limit_exceeded",
        _ => "server_error",
    });
    json!({ "error": { "type": kind, "code": null, "message": error.message.as_deref().unwrap_or("an error of the script") } })
}

/// The headers from which a subscriber's client reads its limits.
pub(super) fn limit_headers(limit: &Limit, now: SystemTime) -> Vec<(String, String)> {
    let resets = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()) + limit.resets_in;
    let (window, minutes) = match limit.window {
        Window::FiveHour => ("primary", 300),
        Window::SevenDay => ("secondary", 10_080),
    };
    let percent = (limit.utilization * 100.0).to_string();
    [("used-percent", percent), ("window-minutes", minutes.to_string()), ("reset-at", resets.to_string())]
        .map(|(name, value)| (format!("x-codex-{window}-{name}"), value))
        .to_vec()
}
