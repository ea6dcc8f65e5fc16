//! The messages of `codex app-server`: JSON-RPC without its version field, one message in a line.

use serde_json::{Value, json};

use crate::agent::protocol::Verdict;

/// A message of the client.
#[derive(Debug)]
pub(super) enum Message {
    Answer {
        id: u64,
        result: Result<Value, Value>,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// `id` is the JSON text of the client's id.
    Request {
        method: String,
        id: String,
        params: Value,
    },
}

/// Reads a line; `None` if it is no message.
pub(super) fn parse(line: &[u8]) -> Option<Message> {
    let Ok(Value::Object(mut fields)) = serde_json::from_slice(line) else { return None };
    let params = fields.remove("params").unwrap_or(Value::Null);
    match (fields.remove("method"), fields.remove("id")) {
        (Some(Value::String(method)), None) => Some(Message::Notification { method, params }),
        (Some(Value::String(method)), Some(id)) => Some(Message::Request { method, id: id.to_string(), params }),
        (None, Some(id)) => {
            let result = match fields.remove("error") {
                Some(error) => Err(error),
                None => Ok(fields.remove("result").unwrap_or(Value::Null)),
            };
            Some(Message::Answer { id: id.as_u64()?, result })
        }
        _ => None,
    }
}

/// Our requests.
#[derive(Debug)]
pub(super) enum Request<'a> {
    Initialize,
    /// Starts a thread, or resumes the thread of a session.
    Thread {
        session: Option<&'a str>,
        cwd: &'a str,
        policy: &'a str,
        model: Option<&'a str>,
    },
    TurnStart {
        thread: &'a str,
        text: &'a str,
        model: Option<&'a str>,
        effort: Option<&'a str>,
    },
    Steer {
        thread: &'a str,
        turn: &'a str,
        text: &'a str,
    },
    Interrupt {
        thread: &'a str,
        turn: &'a str,
    },
    EndCommands {
        thread: &'a str,
    },
}

impl Request<'_> {
    pub(super) fn line(&self, id: u64) -> String {
        json!({ "id": id, "method": self.method(), "params": self.params() }).to_string()
    }

    fn method(&self) -> &'static str {
        match self {
            Self::Initialize => "initialize",
            Self::Thread { session: None, .. } => "thread/start",
            Self::Thread { session: Some(_), .. } => "thread/resume",
            Self::TurnStart { .. } => "turn/start",
            Self::Steer { .. } => "turn/steer",
            Self::Interrupt { .. } => "turn/interrupt",
            Self::EndCommands { .. } => "thread/backgroundTerminals/clean",
        }
    }

    fn params(&self) -> Value {
        match self {
            Self::Initialize => json!({
                "clientInfo": { "name": "verdone", "title": "Verdone", "version": env!("CARGO_PKG_VERSION") },
                // Ending background commands needs it.
                "capabilities": { "experimentalApi": true },
            }),
            Self::Thread { session, cwd, policy, model } => thread(*session, cwd, policy, *model),
            Self::TurnStart { thread, text, model, effort } => {
                let mut params = json!({ "threadId": thread, "input": input(text) });
                set(&mut params, "model", *model);
                set(&mut params, "effort", *effort);
                params
            }
            Self::Steer { thread, turn, text } => {
                json!({ "threadId": thread, "expectedTurnId": turn, "input": input(text) })
            }
            Self::Interrupt { thread, turn } => json!({ "threadId": thread, "turnId": turn }),
            Self::EndCommands { thread } => json!({ "threadId": thread }),
        }
    }
}

/// Codex's own sandbox is off: an approved command runs outside of it anyway, and the workspace is sealed by Verdone.
fn thread(session: Option<&str>, cwd: &str, policy: &str, model: Option<&str>) -> Value {
    let mut params = json!({ "cwd": cwd, "approvalPolicy": policy, "sandbox": "danger-full-access" });
    set(&mut params, "model", model);
    set(&mut params, "threadId", session);
    if session.is_some() {
        params["excludeTurns"] = true.into();
    }
    params
}

fn input(text: &str) -> Value {
    json!([{ "type": "text", "text": text }])
}

fn set(params: &mut Value, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        params[name] = value.into();
    }
}

pub(super) fn initialized() -> String {
    json!({ "method": "initialized" }).to_string()
}

pub(super) fn approval(request: &str, verdict: &Verdict) -> String {
    // Not `cancel`: it ends the turn.
    let decision = if *verdict == Verdict::Allow { "accept" } else { "decline" };
    answer(request, &json!({ "decision": decision }))
}

pub(super) fn elicitation(request: &str, verdict: &Verdict) -> String {
    answer(
        request,
        &match verdict {
            Verdict::Allow => json!({ "action": "accept", "content": {} }),
            Verdict::Deny { .. } => json!({ "action": "decline", "content": null }),
        },
    )
}

/// For a request that we do not support.
pub(super) fn refusal(request: &str) -> String {
    json!({ "id": id(request), "error": { "code": -32601, "message": "not supported by Verdone" } }).to_string()
}

fn answer(request: &str, result: &Value) -> String {
    json!({ "id": id(request), "result": result }).to_string()
}

fn id(request: &str) -> Value {
    serde_json::from_str(request).unwrap_or(Value::Null)
}
