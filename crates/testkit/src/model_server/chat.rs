//! `OpenAI`'s Chat Completions, complete or streamed.

use serde_json::{Value, json};

use super::script::{ApiError, Block, Stop, Turn};
use super::wire::{Event, halves};

/// A request in the form of the Messages API.
pub(super) fn read(body: &Value) -> Value {
    let tools: Vec<Value> = array(&body["tools"]).map(|tool| json!({ "name": tool["function"]["name"] })).collect();
    let (system, messages): (Vec<&Value>, Vec<&Value>) =
        array(&body["messages"]).partition(|message| message["role"] == "system" || message["role"] == "developer");
    let system: Vec<String> = system.into_iter().map(|message| text(&message["content"])).collect();
    let messages: Vec<Value> = messages.into_iter().map(message).collect();
    json!({
        "model": body["model"],
        "stream": body["stream"],
        "system": system.join("\n"),
        "tools": tools,
        "messages": messages,
    })
}

fn message(message: &Value) -> Value {
    if message["role"] == "tool" {
        let said = text(&message["content"]);
        let result = json!({ "type": "tool_result", "tool_use_id": message["tool_call_id"], "is_error": false, "content": said });
        return json!({ "role": "user", "content": [result] });
    }
    let calls = array(&message["tool_calls"]).map(|call| {
        let function = &call["function"];
        let input: Value = function["arguments"].as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        json!({ "type": "tool_use", "id": call["id"], "name": function["name"], "input": input })
    });
    let blocks: Vec<Value> =
        texts(&message["content"]).map(|text| json!({ "type": "text", "text": text })).chain(calls).collect();
    json!({ "role": message["role"], "content": blocks })
}

fn text(content: &Value) -> String {
    texts(content).collect::<Vec<_>>().join("\n")
}

/// Content is a string or a list of parts.
fn texts(content: &Value) -> impl Iterator<Item = &str> {
    content.as_str().into_iter().chain(array(content).filter_map(|part| part["text"].as_str()))
}

/// A whole answer.
pub(super) fn answer(turn: &Turn, model: &str, number: usize) -> Value {
    let mut message = json!({ "role": "assistant", "content": said(turn) });
    let calls = calls(turn, number);
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    let mut answer = head("chat.completion", model, number);
    answer["choices"] = json!([{ "index": 0, "message": message, "finish_reason": finish(turn) }]);
    answer["usage"] = usage(turn);
    answer
}

/// The same in pieces.
pub(super) fn events(turn: &Turn, model: &str, number: usize) -> Vec<Event> {
    let piece = |delta: Value, finish: Value| {
        let mut piece = head("chat.completion.chunk", model, number);
        piece["choices"] = json!([{ "index": 0, "delta": delta, "finish_reason": finish }]);
        piece
    };
    let mut events = vec![Event::unnamed(&piece(json!({ "role": "assistant", "content": "" }), Value::Null), false)];
    let text = said(turn);
    events.extend(halves(&text).map(|half| Event::unnamed(&piece(json!({ "content": half }), Value::Null), true)));
    for (index, mut call) in calls(turn, number).into_iter().enumerate() {
        call["index"] = json!(index);
        events.push(Event::unnamed(&piece(json!({ "tool_calls": [call] }), Value::Null), true));
    }
    let mut end = piece(json!({}), json!(finish(turn)));
    end["usage"] = usage(turn);
    events.push(Event::unnamed(&end, false));
    events.push(Event::verbatim("[DONE]"));
    events
}

fn head(object: &str, model: &str, number: usize) -> Value {
    json!({ "id": format!("chatcmpl-{number:06}"), "object": object, "created": 1_700_000_000, "model": model })
}

fn said(turn: &Turn) -> String {
    let texts = turn.blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.as_str()),
        Block::Thinking(_) | Block::Tool { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn calls(turn: &Turn, number: usize) -> Vec<Value> {
    let calls = turn.blocks.iter().enumerate().filter_map(|(index, block)| match block {
        Block::Tool { name, input } => Some(json!({
            "id": format!("call_{number:06}_{index}"),
            "type": "function",
            "function": { "name": name, "arguments": input.to_string() },
        })),
        Block::Text(_) | Block::Thinking(_) => None,
    });
    calls.collect()
}

fn finish(turn: &Turn) -> &'static str {
    let calls = turn.blocks.iter().any(|block| matches!(block, Block::Tool { .. }));
    match turn.stop.unwrap_or(if calls { Stop::ToolUse } else { Stop::EndTurn }) {
        Stop::MaxTokens => "length",
        Stop::Refusal => "content_filter",
        Stop::ToolUse => "tool_calls",
        Stop::EndTurn => "stop",
    }
}

fn usage(turn: &Turn) -> Value {
    let input = turn.usage.input + turn.usage.cache_read + turn.usage.cache_creation;
    json!({ "prompt_tokens": input, "completion_tokens": turn.usage.output, "total_tokens": input + turn.usage.output })
}

pub(super) fn refusal(error: &ApiError) -> Value {
    let kind = error.kind.as_deref().unwrap_or(match error.status {
        401 => "invalid_api_key",
        404 => "model_not_found",
        429 => "rate_limit_exceeded",
        500.. => "server_error",
        _ => "invalid_request_error",
    });
    let message = error.message.as_deref().unwrap_or("an error of the script");
    json!({ "error": { "message": message, "type": kind, "code": kind } })
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
