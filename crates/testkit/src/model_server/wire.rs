//! Answers in the format of the Messages API: one JSON message or a stream of events; errors; the headers of a subscription.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::script::{ApiError, Block, Limit, LimitStatus, Stop, Turn, Usage, Window};

/// One stream event, ready to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    /// Empty for APIs whose events have no names.
    name: &'static str,
    data: String,
    is_content: bool,
}

impl Event {
    fn new(data: &Value) -> Self {
        let name = match data["type"].as_str() {
            Some("message_start") => "message_start",
            Some("content_block_start") => "content_block_start",
            Some("content_block_delta") => "content_block_delta",
            Some("content_block_stop") => "content_block_stop",
            Some("message_delta") => "message_delta",
            Some("message_stop") => "message_stop",
            Some("ping") => "ping",
            _ => "error",
        };
        Self { name, data: data.to_string(), is_content: name == "content_block_delta" }
    }

    /// An event of an API whose events have no names.
    pub(super) fn unnamed(data: &Value, is_content: bool) -> Self {
        Self { name: "", data: data.to_string(), is_content }
    }

    /// An event that is no JSON.
    pub(super) fn verbatim(data: &str) -> Self {
        Self { name: "", data: data.to_owned(), is_content: false }
    }

    pub(super) fn error(kind: &str, message: &str) -> Self {
        Self::new(&error_body(kind, message))
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let name = if self.name.is_empty() { String::new() } else { format!("event: {}\n", self.name) };
        format!("{name}data: {}\n\n", self.data).into_bytes()
    }

    /// Whether the client has seen part of the answer once this is sent.
    pub(super) fn is_content(&self) -> bool {
        self.is_content
    }
}

/// The events of a turn. `number` makes its ids unique.
pub(super) fn events(turn: &Turn, model: &str, number: usize) -> Vec<Event> {
    let mut start = message(turn, model, number);
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    // Real answers start with one token and report the total at the end.
    start["usage"]["output_tokens"] = json!(1);
    let mut events = vec![json!({ "type": "message_start", "message": start }), json!({ "type": "ping" })];
    for (index, block) in turn.blocks.iter().enumerate() {
        let (empty, deltas) = in_pieces(block, number, index);
        events.push(json!({ "type": "content_block_start", "index": index, "content_block": empty }));
        events.extend(deltas.into_iter().map(|delta| json!({ "type": "content_block_delta", "index": index, "delta": delta })));
        events.push(json!({ "type": "content_block_stop", "index": index }));
    }
    let stop = stop_reason(turn);
    events.push(
        json!({ "type": "message_delta", "delta": { "stop_reason": stop, "stop_sequence": null }, "usage": usage(turn.usage) }),
    );
    events.push(json!({ "type": "message_stop" }));
    events.iter().map(Event::new).collect()
}

/// A turn as one message.
pub(super) fn message(turn: &Turn, model: &str, number: usize) -> Value {
    let content: Vec<Value> = turn.blocks.iter().enumerate().map(|(index, block)| whole(block, number, index)).collect();
    json!({
        "id": format!("msg_{number:06}"),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": stop_reason(turn),
        "stop_sequence": null,
        "usage": usage(turn.usage),
    })
}

fn whole(block: &Block, number: usize, index: usize) -> Value {
    match block {
        Block::Text(text) => json!({ "type": "text", "text": text }),
        Block::Thinking(text) => json!({ "type": "thinking", "thinking": text, "signature": SIGNATURE }),
        Block::Tool { name, input } => json!({ "type": "tool_use", "id": tool_id(number, index), "name": name, "input": input }),
    }
}

/// Opaque to clients, which send it back.
const SIGNATURE: &str = "c2NyaXB0ZWQ=";

fn in_pieces(block: &Block, number: usize, index: usize) -> (Value, Vec<Value>) {
    match block {
        Block::Text(text) => {
            let pieces = halves(text).map(|piece| json!({ "type": "text_delta", "text": piece }));
            (json!({ "type": "text", "text": "" }), pieces.collect())
        }
        Block::Thinking(text) => {
            let pieces = halves(text).map(|piece| json!({ "type": "thinking_delta", "thinking": piece }));
            let signature = json!({ "type": "signature_delta", "signature": SIGNATURE });
            (json!({ "type": "thinking", "thinking": "", "signature": "" }), pieces.chain([signature]).collect())
        }
        Block::Tool { name, input } => {
            let text = input.to_string();
            let pieces = halves(&text).map(|piece| json!({ "type": "input_json_delta", "partial_json": piece }));
            (json!({ "type": "tool_use", "id": tool_id(number, index), "name": name, "input": {} }), pieces.collect())
        }
    }
}

/// Splits a text in two, because real answers come in several pieces.
pub(super) fn halves(text: &str) -> impl Iterator<Item = &str> {
    let middle = (text.len() / 2..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let (first, second) = text.split_at(middle);
    [first, second].into_iter().filter(|piece| !piece.is_empty())
}

fn tool_id(number: usize, index: usize) -> String {
    format!("toolu_{number:06}_{index}")
}

fn stop_reason(turn: &Turn) -> &'static str {
    let calls = turn.blocks.iter().any(|block| matches!(block, Block::Tool { .. }));
    match turn.stop.unwrap_or(if calls { Stop::ToolUse } else { Stop::EndTurn }) {
        Stop::EndTurn => "end_turn",
        Stop::ToolUse => "tool_use",
        Stop::MaxTokens => "max_tokens",
        Stop::Refusal => "refusal",
    }
}

fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_creation,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    })
}

/// The body of an error answer.
pub(super) fn refusal(error: &ApiError) -> Value {
    let kind = error.kind.as_deref().unwrap_or(match error.status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    });
    error_body(kind, error.message.as_deref().unwrap_or("an error of the script"))
}

pub(super) fn error_body(kind: &str, message: &str) -> Value {
    json!({ "type": "error", "error": { "type": kind, "message": message } })
}

/// The headers from which a subscriber's client reads its limits.
pub(super) fn limit_headers(limit: &Limit, now: SystemTime) -> Vec<(String, String)> {
    let now = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let resets = now + limit.resets_in;
    let (claim, short) = match limit.window {
        Window::FiveHour => ("five_hour", "5h"),
        Window::SevenDay => ("seven_day", "7d"),
    };
    let other = match limit.window {
        Window::FiveHour => "7d",
        Window::SevenDay => "5h",
    };
    let status = match limit.status {
        LimitStatus::Allowed => "allowed",
        LimitStatus::AllowedWarning => "allowed_warning",
        LimitStatus::Rejected => "rejected",
    };
    let pairs = [
        ("status".to_owned(), status.to_owned()),
        ("reset".to_owned(), resets.to_string()),
        ("representative-claim".to_owned(), claim.to_owned()),
        (format!("{short}-status"), status.to_owned()),
        (format!("{short}-reset"), resets.to_string()),
        (format!("{short}-utilization"), limit.utilization.to_string()),
        (format!("{other}-status"), "allowed".to_owned()),
        (format!("{other}-reset"), (resets + 86_400).to_string()),
        (format!("{other}-utilization"), "0.5".to_owned()),
        ("overage-status".to_owned(), "rejected".to_owned()),
        ("overage-disabled-reason".to_owned(), "org_level_disabled".to_owned()),
    ];
    pairs.into_iter().map(|(name, value)| (format!("anthropic-ratelimit-unified-{name}"), value)).collect()
}
