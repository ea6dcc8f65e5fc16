//! Messages to the client: one JSON object per line, built from types that have no invalid value. A line that the client cannot parse
//! ends it.

use serde_json::{Map, Value, json};

use super::launch::{blocks_on_failure, callback_events};
use super::uuid::Uuid;
use crate::hook::Answer;

/// One message to the client. The answer will carry the `request` id.
#[derive(Debug, Clone)]
pub enum ToClient<'a> {
    /// A prompt.
    Prompt {
        uuid: &'a Uuid,
        text: &'a str,
    },
    /// Clear the conversation and continue with a new session id in the same process.
    Clear {
        uuid: &'a Uuid,
    },
    /// Register the hook callbacks. A prompt may follow without waiting for the answer.
    Initialize {
        request: &'a str,
    },
    /// The answer to a hook callback.
    Answer {
        request: &'a str,
        answer: &'a Answer,
    },
    /// No answer is possible: block what the callback guards.
    Refuse {
        request: &'a str,
        reason: &'a str,
    },
    /// End the turn.
    Interrupt {
        request: &'a str,
    },
    /// Ask how full the context is.
    ContextUsage {
        request: &'a str,
    },
    SetModel {
        request: &'a str,
        model: &'a str,
    },
    /// End the process.
    EndSession {
        request: &'a str,
    },
}

/// One line with its line feed, ready to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line(String);

impl Line {
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ToClient<'_> {
    pub fn line(&self) -> Line {
        Line::new(&self.value())
    }

    fn value(&self) -> Value {
        match self {
            Self::Prompt { uuid, text } => user(uuid, &not_a_command(text)),
            Self::Clear { uuid } => user(uuid, "/clear"),
            Self::Initialize { request } => control(request, &json!({ "subtype": "initialize", "hooks": callbacks() })),
            Self::Answer { request, answer } => {
                let said = answer.to_json().unwrap_or_else(|| Value::Object(Map::new()));
                response(&json!({ "subtype": "success", "request_id": request, "response": said }))
            }
            Self::Refuse { request, reason } => response(&json!({ "subtype": "error", "request_id": request, "error": reason })),
            Self::Interrupt { request } => control(request, &json!({ "subtype": "interrupt", "cancel_queued": true })),
            // Full detail makes two dozen API requests and takes a second.
            Self::ContextUsage { request } => control(request, &json!({ "subtype": "get_context_usage", "detail": "summary" })),
            Self::SetModel { request, model } => control(request, &json!({ "subtype": "set_model", "model": model })),
            Self::EndSession { request } => control(request, &json!({ "subtype": "end_session" })),
        }
    }
}

impl Line {
    fn new(value: &Value) -> Self {
        // Some line readers treat these two as line ends. In JSON they can only occur inside strings.
        let mut text = value.to_string().replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
        text.push('\n');
        Self(text)
    }
}

fn user(uuid: &Uuid, text: &str) -> Value {
    json!({ "type": "user", "uuid": uuid.as_str(), "message": { "role": "user", "content": text } })
}

fn control(request: &str, body: &Value) -> Value {
    json!({ "type": "control_request", "request_id": request, "request": body })
}

fn response(body: &Value) -> Value {
    json!({ "type": "control_response", "response": body })
}

/// The event's name is the callback's id.
fn callbacks() -> Value {
    let entry = |(event, timeout): (&str, u32)| {
        let mut hook = json!({ "matcher": "", "hookCallbackIds": [event], "timeout": timeout });
        if blocks_on_failure(event) {
            hook["onFailure"] = "block".into();
        }
        (event.to_owned(), json!([hook]))
    };
    Value::Object(callback_events().map(entry).collect())
}

/// The client would treat a prompt that starts with a slash as a command such as `/clear`.
fn not_a_command(text: &str) -> std::borrow::Cow<'_, str> {
    if text.trim_start().starts_with('/') { format!("Prompt:\n{text}").into() } else { text.into() }
}

#[cfg(test)]
mod tests;
