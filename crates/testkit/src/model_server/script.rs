//! What the scripted model says, as data: rules with one answer each, read from TOML or built in a test.
//!
//! A request uses the first matching rule that has uses left. By default, a rule has one use and applies to the main conversation, so a
//! plain list of turns is played in order, whatever else a client asks.

use serde::Deserialize;
use serde_json::Value;

use super::request::{Kind, Request};

/// Everything that a model server can answer.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    #[serde(rename = "rule")]
    pub rules: Vec<Rule>,
    /// The answer to an agent's request that matches no rule; default: "Done.". Such requests count as unscripted.
    pub otherwise: Option<Answer>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    #[serde(default)]
    pub when: When,
    #[serde(default)]
    pub times: Times,
    pub answer: Answer,
}

/// Conditions on a request, all of which must be met.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct When {
    /// Default: the main conversation.
    pub kind: Option<Kind>,
    /// The user's last text contains this.
    pub prompt: Option<String>,
    /// Whether tool results were sent since the model's last answer.
    pub after_tool: Option<bool>,
    /// One of these results contains this.
    pub tool_result: Option<String>,
    /// Any text of the request contains this.
    pub anywhere: Option<String>,
    /// It is the n-th request of its kind, counted from 1.
    pub nth: Option<usize>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Times {
    #[default]
    Once,
    N(u32),
    Always,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    Turn(Turn),
    Error(ApiError),
}

/// One answer of the model.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Turn {
    pub blocks: Vec<Block>,
    pub usage: Usage,
    /// Default: `tool_use` if a tool is called, otherwise `end_turn`.
    pub stop: Option<Stop>,
    /// A delay before the first byte.
    pub stall: Option<Stall>,
    /// What goes wrong after the first piece of content. Only for streamed answers.
    pub fault: Option<Fault>,
    /// How much of a subscription is used, sent in headers.
    pub limit: Option<Limit>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Block {
    Text(String),
    Thinking(String),
    /// Several of these in one turn are parallel calls.
    Tool {
        name: String,
        input: Value,
    },
}

/// Token counts, as the client sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    pub input: u64,
    pub cache_read: u64,
    pub cache_creation: u64,
    pub output: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self { input: 10, cache_read: 0, cache_creation: 0, output: 5 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    EndTurn,
    ToolUse,
    MaxTokens,
    Refusal,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stall {
    Seconds(f64),
    /// Until the test releases it, or ends.
    UntilReleased,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    /// The connection is cut.
    Drop,
    /// An error as a stream event.
    Error { kind: String, message: String },
    /// A pause, followed by the rest.
    Stall(Stall),
}

/// An error instead of an answer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiError {
    pub status: u16,
    /// Default: the usual kind for the status.
    #[serde(default)]
    pub kind: Option<String>,
    #[serde(default)]
    pub message: Option<String>,
    /// In seconds.
    #[serde(default)]
    pub retry_after: Option<u64>,
    /// The headers that subscribers get.
    #[serde(default)]
    pub limit: Option<Limit>,
    #[serde(default)]
    pub stall: Option<Stall>,
}

/// The state of a subscription. Times are relative to the answer, so that a script stays valid.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    #[serde(default)]
    pub window: Window,
    pub status: LimitStatus,
    /// From 0 to 1.
    pub utilization: f64,
    /// Seconds from now.
    pub resets_in: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Window {
    #[default]
    FiveHour,
    SevenDay,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitStatus {
    Allowed,
    AllowedWarning,
    Rejected,
}

impl Script {
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses a script; the error says where it is wrong.
    pub fn from_toml(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    /// Adds the next answer of the main conversation.
    #[must_use]
    pub fn then(self, answer: impl Into<Answer>) -> Self {
        self.rule(When::default(), Times::Once, answer)
    }

    /// Adds answers to a prompt that contains this text, one after the other: the model's steps in one turn of the agent.
    #[must_use]
    pub fn on<A: Into<Answer>>(self, prompt: &str, answers: impl IntoIterator<Item = A>) -> Self {
        answers.into_iter().fold(self, |script, answer| script.rule(When::prompt(prompt), Times::Once, answer))
    }

    #[must_use]
    pub fn rule(mut self, when: When, times: Times, answer: impl Into<Answer>) -> Self {
        self.rules.push(Rule { when, times, answer: answer.into() });
        self
    }

    #[must_use]
    pub fn otherwise(mut self, answer: impl Into<Answer>) -> Self {
        self.otherwise = Some(answer.into());
        self
    }
}

impl When {
    pub fn prompt(text: &str) -> Self {
        Self { prompt: Some(text.to_owned()), ..Self::default() }
    }

    pub fn kind(kind: Kind) -> Self {
        Self { kind: Some(kind), ..Self::default() }
    }

    pub fn after_tool() -> Self {
        Self { after_tool: Some(true), ..Self::default() }
    }

    /// Whether the conditions match a request; `nth` is the request's number among those of its kind.
    pub(super) fn fits(&self, request: &Request, nth: usize) -> bool {
        let results = request.tool_results();
        let said = |text: &Option<String>, found: &dyn Fn(&str) -> bool| text.as_deref().is_none_or(found);
        request.kind() == self.kind.unwrap_or(Kind::Main)
            && said(&self.prompt, &|text| request.prompt().contains(text))
            && self.after_tool.is_none_or(|after| after != results.is_empty())
            && said(&self.tool_result, &|text| results.iter().any(|result| result.text.contains(text)))
            && said(&self.anywhere, &|text| request.contains(text))
            && self.nth.is_none_or(|wanted| wanted == nth)
    }
}

impl Times {
    pub(super) fn is_left(self, used: u32) -> bool {
        match self {
            Self::Once => used < 1,
            Self::N(count) => used < count,
            Self::Always => true,
        }
    }
}

impl Turn {
    pub fn say(text: &str) -> Self {
        Self { blocks: vec![Block::Text(text.to_owned())], ..Self::default() }
    }

    pub fn call(tool: &str, input: Value) -> Self {
        Self::default().and_call(tool, input)
    }

    /// Writes a file with the client's own tool. The client resolves a relative path against its folder.
    pub fn write(path: impl AsRef<std::path::Path>, text: &str) -> Self {
        Self::call("Write", serde_json::json!({ "file_path": path.as_ref(), "content": text }))
    }

    pub fn bash(command: &str) -> Self {
        Self::call("Bash", serde_json::json!({ "command": command, "description": "A command of the script" }))
    }

    #[must_use]
    pub fn and_call(mut self, tool: &str, input: Value) -> Self {
        self.blocks.push(Block::Tool { name: tool.to_owned(), input });
        self
    }

    #[must_use]
    pub fn and_say(mut self, text: &str) -> Self {
        self.blocks.push(Block::Text(text.to_owned()));
        self
    }

    #[must_use]
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    #[must_use]
    pub fn stop(mut self, stop: Stop) -> Self {
        self.stop = Some(stop);
        self
    }

    #[must_use]
    pub fn stall(mut self, stall: Stall) -> Self {
        self.stall = Some(stall);
        self
    }

    #[must_use]
    pub fn fault(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }

    #[must_use]
    pub fn limit(mut self, limit: Limit) -> Self {
        self.limit = Some(limit);
        self
    }
}

impl ApiError {
    pub fn status(status: u16) -> Self {
        Self { status, kind: None, message: None, retry_after: None, limit: None, stall: None }
    }

    #[must_use]
    pub fn message(mut self, message: &str) -> Self {
        self.message = Some(message.to_owned());
        self
    }

    #[must_use]
    pub fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    #[must_use]
    pub fn limit(mut self, limit: Limit) -> Self {
        self.limit = Some(limit);
        self
    }

    /// A subscriber whose usage window is exhausted, and resets after this many seconds.
    pub fn usage_limit(resets_in: u64) -> Self {
        Self::status(429).limit(Limit { window: Window::FiveHour, status: LimitStatus::Rejected, utilization: 1.0, resets_in })
    }
}

impl From<Turn> for Answer {
    fn from(turn: Turn) -> Self {
        Self::Turn(turn)
    }
}

impl From<ApiError> for Answer {
    fn from(error: ApiError) -> Self {
        Self::Error(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_file_says_the_same_as_a_script_that_is_built() {
        let text = r#"
            otherwise.turn.blocks = [{ text = "Nothing to do." }]

            [[rule]]
            when.prompt = "US-001"
            answer.turn.blocks = [{ text = "I write it." }, { tool = { name = "Write", input = { file_path = "a", content = "one" } } }]
            answer.turn.usage = { input = 100, cache_read = 50 }

            [[rule]]
            when = { kind = "subagent", nth = 2 }
            times = "always"
            answer.error = { status = 429, limit = { status = "rejected", utilization = 1, resets_in = 3 } }

            [[rule]]
            times = { n = 2 }
            answer.turn = { stall = { seconds = 0.5 }, fault = "drop", blocks = [{ thinking = "Hm." }], stop = "max_tokens" }
        "#;
        let write = serde_json::json!({ "file_path": "a", "content": "one" });
        let built = Script::new()
            .on(
                "US-001",
                [Turn::say("I write it.").and_call("Write", write).usage(Usage {
                    input: 100,
                    cache_read: 50,
                    ..Usage::default()
                })],
            )
            .rule(When { nth: Some(2), ..When::kind(Kind::Subagent) }, Times::Always, ApiError::usage_limit(3))
            .rule(
                When::default(),
                Times::N(2),
                Turn { blocks: vec![Block::Thinking("Hm.".to_owned())], ..Turn::default() }
                    .stall(Stall::Seconds(0.5))
                    .fault(Fault::Drop)
                    .stop(Stop::MaxTokens),
            )
            .otherwise(Turn::say("Nothing to do."));
        assert_eq!(Script::from_toml(text).unwrap(), built);
    }

    #[test]
    fn a_word_that_means_nothing_in_a_script_file_is_an_error_with_its_place() {
        for text in ["[[rule]]\nanswer.turn.block = []", "[[rules]]", "[[rule]]\nwhen.promt = \"x\"\nanswer.turn = {}"] {
            let error = Script::from_toml(text).unwrap_err();
            assert!(error.contains("unknown field") && error.contains("line "), "{error}");
        }
    }
}
