//! Google's API: `models/NAME:generateContent`, complete or streamed.

use serde_json::{Value, json};

use super::script::{ApiError, Block, Stop, Turn};
use super::wire::Event;

/// A request in the form of the Messages API.
pub(super) fn read(path: &str, body: &Value) -> Value {
    let name = path.rsplit('/').next().unwrap_or_default();
    let (model, method) = name.split_once(':').unwrap_or((name, ""));
    let declared = array(&body["tools"]).flat_map(|tools| array(&tools["functionDeclarations"]));
    let tools: Vec<Value> = declared.map(|tool| json!({ "name": tool["name"] })).collect();
    let messages: Vec<Value> = array(&body["contents"]).map(message).collect();
    let system: Vec<&str> = array(&body["systemInstruction"]["parts"]).filter_map(|part| part["text"].as_str()).collect();
    json!({
        "model": model,
        "stream": method == "streamGenerateContent",
        "system": system.join("\n"),
        "tools": tools,
        "messages": messages,
    })
}

fn message(content: &Value) -> Value {
    let role = if content["role"] == "model" { "assistant" } else { "user" };
    let blocks: Vec<Value> = array(&content["parts"]).map(block).collect();
    json!({ "role": role, "content": blocks })
}

fn block(part: &Value) -> Value {
    if part["functionCall"].is_object() {
        let call = &part["functionCall"];
        return json!({ "type": "tool_use", "id": call["id"], "name": call["name"], "input": call["args"] });
    }
    if part["functionResponse"].is_object() {
        let result = &part["functionResponse"];
        let response = &result["response"];
        let error = response["error"].as_str();
        let text = error.or(response["output"].as_str()).map_or_else(|| response.to_string(), str::to_owned);
        return json!({ "type": "tool_result", "tool_use_id": result["id"], "is_error": error.is_some(), "content": text });
    }
    json!({ "type": "text", "text": part["text"] })
}

/// A whole answer.
pub(super) fn answer(turn: &Turn, model: &str, number: usize) -> Value {
    let parts: Vec<Value> = turn.blocks.iter().enumerate().map(|(index, block)| part(block, number, index)).collect();
    piece(&parts, Some(turn), model)
}

/// The same in pieces, one for each block.
pub(super) fn events(turn: &Turn, model: &str, number: usize) -> Vec<Event> {
    let last = turn.blocks.len().saturating_sub(1);
    let pieces = turn.blocks.iter().enumerate().map(|(index, block)| {
        let end = (index == last).then_some(turn);
        Event::unnamed(&piece(&[part(block, number, index)], end, model), true)
    });
    let mut events: Vec<Event> = pieces.collect();
    if events.is_empty() {
        events.push(Event::unnamed(&piece(&[], Some(turn), model), false));
    }
    events
}

fn piece(parts: &[Value], end: Option<&Turn>, model: &str) -> Value {
    let mut candidate = json!({ "index": 0, "content": { "role": "model", "parts": parts } });
    let mut piece = json!({ "modelVersion": model });
    if let Some(turn) = end {
        candidate["finishReason"] = json!(match turn.stop {
            Some(Stop::MaxTokens) => "MAX_TOKENS",
            Some(Stop::Refusal) => "SAFETY",
            Some(Stop::EndTurn | Stop::ToolUse) | None => "STOP",
        });
        let input = turn.usage.input + turn.usage.cache_read + turn.usage.cache_creation;
        piece["usageMetadata"] = json!({
            "promptTokenCount": input,
            "candidatesTokenCount": turn.usage.output,
            "totalTokenCount": input + turn.usage.output,
        });
    }
    piece["candidates"] = json!([candidate]);
    piece
}

fn part(block: &Block, number: usize, index: usize) -> Value {
    match block {
        Block::Text(text) => json!({ "text": text }),
        Block::Thinking(text) => json!({ "text": text, "thought": true }),
        Block::Tool { name, input } => {
            let id = format!("{name}_{number}_{index}");
            json!({ "functionCall": { "id": id, "name": name, "args": input }, "thoughtSignature": "c2NyaXB0ZWQ=" })
        }
    }
}

pub(super) fn refusal(error: &ApiError) -> Value {
    let status = error.kind.as_deref().unwrap_or(match error.status {
        400 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        _ => "INTERNAL",
    });
    let message = error.message.as_deref().unwrap_or("an error of the script");
    json!({ "error": { "code": error.status, "message": message, "status": status } })
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
