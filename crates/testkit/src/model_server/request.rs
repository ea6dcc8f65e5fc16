//! One request to the model server as tests look at it: who asks, what was said, what the tools gave.

use std::time::SystemTime;

use serde::Deserialize;
use serde_json::Value;

/// A request that was answered, or is being answered.
#[derive(Debug, Clone)]
pub struct Request {
    /// From 1, in the order in which they came.
    pub number: usize,
    pub at: SystemTime,
    pub method: String,
    /// Without the part behind `?`.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// `null` where the body is empty or no JSON.
    pub body: Value,
    /// No rule of the script fitted.
    pub is_unscripted: bool,
}

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The conversation that the user, or Verdone, has with the agent.
    Main,
    /// One of an agent that the agent started.
    Subagent,
    /// The summary that replaces a conversation that grew too long.
    Compaction,
    /// Small questions of the client itself: titles, probes, summaries. They offer no tools.
    Side,
    /// Not for the model: tokens to count, other addresses.
    Other,
}

/// What a tool gave back to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    pub id: String,
    pub is_error: bool,
    pub text: String,
}

impl Request {
    pub fn kind(&self) -> Kind {
        if self.method != "POST" || self.path != "/v1/messages" {
            return Kind::Other;
        }
        if self.prompt().contains("Your task is to create a detailed summary of") {
            return Kind::Compaction;
        }
        if self.body["tools"].as_array().is_none_or(Vec::is_empty) {
            return Kind::Side;
        }
        if self.header("x-claude-code-agent-id").is_some() { Kind::Subagent } else { Kind::Main }
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

    /// The client's session, where it tells.
    pub fn session(&self) -> Option<&str> {
        self.header("x-claude-code-session-id")
    }

    /// The last text of the user. Results of tools and notes of the client between them are none.
    pub fn prompt(&self) -> String {
        self.prompts().pop().unwrap_or_default()
    }

    /// All texts of the user in this conversation, a string for each message.
    pub fn prompts(&self) -> Vec<String> {
        self.messages().iter().filter(|message| message["role"] == "user").map(own_text).filter(|text| !text.is_empty()).collect()
    }

    /// What tools gave back since the model's last answer.
    pub fn tool_results(&self) -> Vec<ToolResult> {
        let messages = self.messages();
        let since = messages.iter().rposition(|message| message["role"] == "assistant").map_or(0, |at| at + 1);
        messages[since..].iter().flat_map(blocks).filter(|block| block["type"] == "tool_result").map(tool_result).collect()
    }

    /// The system prompt, and what the client says in its name later.
    pub fn system(&self) -> String {
        let later = self.messages().iter().filter(|message| message["role"] == "system");
        let texts: Vec<String> = std::iter::once(content_text(&self.body["system"])).chain(later.map(own_text)).collect();
        texts.join("\n")
    }

    /// Whether any text of the request has this in it, wherever it stands.
    pub fn contains(&self, text: &str) -> bool {
        any_text(&self.body, text)
    }

    pub fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map_or(&[], Vec::as_slice)
    }
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

/// How notes of the client begin that stand beside the user's words: git's state, dates, the user's own files.
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
