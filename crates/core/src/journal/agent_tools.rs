//! The tools that Verdone offers to an agent: their arguments, their answers, and which of them need a run. Only data: the server that
//! speaks MCP and the run that answers share it, and one line of JSON carries it between them.

mod answers;
mod arguments;
mod catalogue;
mod question;
mod recall;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub use crate::agent::tool_server::SOCKET_VARIABLE;
use crate::check::lessons::LONGEST_NOTE;
pub use answers::{
    Added, Claimed, FailingCheck, FoundStory, MergeAnswer, NextStoryAnswer, OpenQuestion, Recalled, StageAnswer, StatusAnswer,
    StoryAnswer, VerificationAnswer,
};
pub use arguments::{
    AddGuardrail, AddStory, ClaimStatus, CompleteStory, GetStory, NoArguments, Recall, ReportBlocked, RequestMerge, VerifyStage,
};
pub use catalogue::{Need, ToolInfo, tools};
pub use question::QuestionStatus;
pub use recall::{Passage, search};

/// Longer texts belong in a file.
pub const LONGEST_TEXT: usize = 16 * 1024;
/// A story with more criteria is several stories.
pub const MOST_CRITERIA: usize = 50;

/// One call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "tool", content = "arguments", rename_all = "snake_case")]
pub enum Call {
    CompleteStory(CompleteStory),
    NextStory(NoArguments),
    GetStory(GetStory),
    Verify(VerifyStage),
    ReportBlocked(ReportBlocked),
    RequestMerge(RequestMerge),
    Recall(Recall),
    AddGuardrail(AddGuardrail),
    AddStory(AddStory),
    Status(NoArguments),
}

/// A text that a client can read without a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resource {
    Plan,
    Guardrails,
    LastFailure,
    Evidence,
}

impl Resource {
    pub const ALL: [Self; 4] = [Self::Plan, Self::Guardrails, Self::LastFailure, Self::Evidence];

    pub fn name(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Guardrails => "guardrails",
            Self::LastFailure => "last-failure",
            Self::Evidence => "evidence",
        }
    }

    pub fn uri(self) -> String {
        format!("verdone://{}", self.name())
    }

    pub fn from_uri(uri: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|resource| resource.uri() == uri)
    }

    pub fn description(self) -> &'static str {
        match self {
            Self::Plan => "The plan, as the agent may see it",
            Self::Guardrails => "Lessons of earlier work in this project",
            Self::LastFailure => "Why the last verification did not pass",
            Self::Evidence => "What proved the stories that are done",
        }
    }
}

/// What a server asks the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Query {
    Call(Call),
    Read(Resource),
}

/// The answer to a query.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The call had no effect. The body says why, and what to do.
    pub is_error: bool,
    pub body: Value,
}

impl Answer {
    pub fn new(body: &impl Serialize) -> Self {
        match serde_json::to_value(body) {
            Ok(body) => Self { is_error: false, body },
            Err(error) => Self::error(&format!("the answer cannot be written: {error}"), "report this to the user"),
        }
    }

    /// Why it did not work, and what to do instead.
    pub fn error(message: &str, todo: &str) -> Self {
        Self { is_error: true, body: json!({ "error": message, "what_to_do": todo }) }
    }
}

impl Call {
    /// Reads a call strictly: an unknown tool or argument is an error that names the known ones.
    pub fn parse(tool: &str, arguments: &Map<String, Value>) -> Result<Self, Answer> {
        let call = serde_json::from_value::<Self>(json!({ "tool": tool, "arguments": arguments }));
        let call = call.map_err(|error| Answer::error(&error.to_string(), "call it again with arguments that fit its schema"))?;
        call.check()?;
        Ok(call)
    }

    /// Refuses empty and huge texts. The server does it, and so does the run, because anything can connect to the run's socket.
    pub fn check(&self) -> Result<(), Answer> {
        for (name, text) in self.texts() {
            if text.trim().is_empty() {
                return Err(Answer::error(&format!("`{name}` is empty"), "fill it in and call again"));
            }
            let longest = if matches!(self, Self::AddGuardrail(_)) { LONGEST_NOTE } else { LONGEST_TEXT };
            if text.len() > longest {
                return Err(Answer::error(&format!("`{name}` is longer than {longest} bytes"), "shorten it and call again"));
            }
        }
        if let Self::AddStory(story) = self
            && story.criteria.len() > MOST_CRITERIA
        {
            return Err(Answer::error(&format!("more than {MOST_CRITERIA} `criteria`"), "propose several stories"));
        }
        Ok(())
    }

    /// The tool's name.
    pub fn tool(&self) -> &'static str {
        match self {
            Self::CompleteStory(_) => "complete_story",
            Self::NextStory(_) => "next_story",
            Self::GetStory(_) => "get_story",
            Self::Verify(_) => "verify",
            Self::ReportBlocked(_) => "report_blocked",
            Self::RequestMerge(_) => "request_merge",
            Self::Recall(_) => "recall",
            Self::AddGuardrail(_) => "add_guardrail",
            Self::AddStory(_) => "add_story",
            Self::Status(_) => "status",
        }
    }

    /// Whether it changes something, which only the agent of a run may do.
    pub fn need(&self) -> Need {
        catalogue::need_of(self.tool())
    }

    fn texts(&self) -> Vec<(&'static str, &str)> {
        match self {
            Self::CompleteStory(call) => vec![("story", &call.story), ("summary", &call.summary)],
            Self::GetStory(call) => vec![("story", &call.story)],
            Self::ReportBlocked(call) => {
                vec![("story", &call.story), ("reason", &call.reason), ("question", &call.question)]
            }
            Self::RequestMerge(call) => vec![("story", &call.story), ("summary", &call.summary)],
            Self::Recall(call) => vec![("query", &call.query)],
            Self::AddGuardrail(call) => vec![("text", &call.text)],
            Self::AddStory(call) => {
                let criteria = call.criteria.iter().map(|text| ("criteria", text.as_str()));
                let reason = call.reason.iter().map(|text| ("reason", text.as_str()));
                [("title", call.title.as_str())].into_iter().chain(criteria).chain(reason).collect()
            }
            Self::Verify(call) => call.stage.iter().map(|stage| ("stage", stage.as_str())).collect(),
            Self::NextStory(NoArguments {}) | Self::Status(NoArguments {}) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
