//! A request to the model server, for examination in tests: who asks, what was said, what the tools returned.

use std::time::SystemTime;

use serde::Deserialize;
use serde_json::Value;

use super::dialect::Dialect;
use super::responses;

/// A request that was answered or is being answered.
#[derive(Debug, Clone)]
pub struct Request {
    /// Counted from 1 in the order of arrival.
    pub number: usize,
    pub at: SystemTime,
    pub method: String,
    /// Without the query string.
    pub path: String,
    /// Names are in lower case.
    pub headers: Vec<(String, String)>,
    /// In the form of the Messages API, whatever API the client speaks. `null` if the body is empty or not JSON.
    pub body: Value,
    /// Whether no rule of the script matched.
    pub is_unscripted: bool,
}

/// The purpose of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The conversation of the user, or of Verdone, with the agent.
    Main,
    /// The conversation of a subagent.
    Subagent,
    /// A request for the summary that replaces a conversation that has become too long.
    Compaction,
    /// Small requests of the client itself: titles, probes, summaries. They offer no tools.
    Side,
    /// Not for the model: token counts, other addresses.
    Other,
}

/// A tool's result, as sent to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    pub id: String,
    pub is_error: bool,
    pub text: String,
}

impl Request {
    pub fn kind(&self) -> Kind {
        if self.dialect().is_none() {
            return Kind::Other;
        }
        if self.prompt().contains("Your task is to create a detailed summary of") {
            return Kind::Compaction;
        }
        if self.body["tools"].as_array().is_none_or(Vec::is_empty) || is_aside(&self.prompt()) {
            return Kind::Side;
        }
        if self.header("x-claude-code-agent-id").is_some() { Kind::Subagent } else { Kind::Main }
    }

    /// The API that the client speaks; `None` if the request is not for the model.
    pub fn dialect(&self) -> Option<Dialect> {
        Dialect::from_request(&self.method, &self.path)
    }

    /// The names of the tools that the model may call.
    pub fn tools(&self) -> Vec<&str> {
        self.body["tools"].as_array().into_iter().flatten().filter_map(|tool| tool["name"].as_str()).collect()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn is_streamed(&self) -> bool {
        self.body["stream"] == Value::Bool(true)
    }

    pub fn model(&self) -> &str {
        self.body["model"].as_str().unwrap_or_default()
    }

    /// The client's session, if it sends one.
    pub fn session(&self) -> Option<&str> {
        self.header("x-claude-code-session-id")
    }

    /// The user's last text. Tool results and the client's notes do not count.
    pub fn prompt(&self) -> String {
        self.prompts().pop().unwrap_or_default()
    }

    /// All texts of the user in this conversation, one string per message.
    pub fn prompts(&self) -> Vec<String> {
        if self.dialect() == Some(Dialect::Responses) {
            return responses::prompts(&self.body);
        }
        self.messages().iter().filter(|message| message["role"] == "user").map(own_text).filter(|text| !text.is_empty()).collect()
    }

    /// The tool results since the model's last answer.
    pub fn tool_results(&self) -> Vec<ToolResult> {
        if self.dialect() == Some(Dialect::Responses) {
            return responses::tool_results(&self.body);
        }
        let messages = self.messages();
        let since = messages.iter().rposition(|message| message["role"] == "assistant").map_or(0, |at| at + 1);
        messages[since..].iter().flat_map(blocks).filter(|block| block["type"] == "tool_result").map(tool_result).collect()
    }

    /// The system prompt, including later system messages of the client.
    pub fn system(&self) -> String {
        let later = self.messages().iter().filter(|message| message["role"] == "system");
        let texts: Vec<String> = std::iter::once(content_text(&self.body["system"])).chain(later.map(own_text)).collect();
        texts.join("\n")
    }

    /// Whether any text of the request contains this.
    pub fn contains(&self, text: &str) -> bool {
        any_text(&self.body, text)
    }

    pub fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map_or(&[], Vec::as_slice)
    }
}

/// Prompts of Qwen's own, which it sends with tools: its memory, and what the user may type next.
fn is_aside(prompt: &str) -> bool {
    ["Managed memory has", "[SUGGESTION MODE"].iter().any(|start| prompt.starts_with(start))
}

fn blocks(message: &Value) -> &[Value] {
    message["content"].as_array().map_or(&[], Vec::as_slice)
}

fn own_text(message: &Value) -> String {
    content_text(&message["content"])
}

fn tool_result(block: &Value) -> ToolResult {
    ToolResult {
        id: block["tool_use_id"].as_str().unwrap_or_default().to_owned(),
        is_error: block["is_error"] == Value::Bool(true),
        text: content_text(&block["content"]),
    }
}

/// Starts the client's notes that are mixed into the user's text: git's state, dates, the user's own files.
const REMINDER: &str = "<system-reminder>";

/// Content is a string or a list of blocks.
fn content_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| block["text"].as_str());
            texts.filter(|text| !text.starts_with(REMINDER)).collect::<Vec<_>>().join("\n")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

fn any_text(value: &Value, text: &str) -> bool {
    match value {
        Value::String(found) => found.contains(text),
        Value::Array(items) => items.iter().any(|item| any_text(item, text)),
        Value::Object(members) => members.values().any(|member| any_text(member, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
