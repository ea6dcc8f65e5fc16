//! The tools as a client lists them.

use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::Value;

use super::arguments::{
    AddGuardrail, AddStory, CompleteStory, GetStory, NoArguments, Recall, ReportBlocked, RequestMerge, VerifyStage,
};

/// Who may call a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Everyone: it changes nothing.
    Nothing,
    /// Only the agent of a run.
    Run,
}

#[derive(Debug, Clone)]
pub struct ToolInfo {
    pub name: &'static str,
    pub description: &'static str,
    /// The JSON schema of its arguments.
    pub schema: Value,
    pub need: Need,
}

/// All tools, in the order in which an agent needs them.
pub fn tools() -> Vec<ToolInfo> {
    let schema = |name: &str| match name {
        "complete_story" => schema_of::<CompleteStory>(),
        "get_story" => schema_of::<GetStory>(),
        "verify" => schema_of::<VerifyStage>(),
        "report_blocked" => schema_of::<ReportBlocked>(),
        "request_merge" => schema_of::<RequestMerge>(),
        "recall" => schema_of::<Recall>(),
        "add_guardrail" => schema_of::<AddGuardrail>(),
        "add_story" => schema_of::<AddStory>(),
        _ => schema_of::<NoArguments>(),
    };
    LIST.iter().map(|(name, need, description)| ToolInfo { name, description, schema: schema(name), need: *need }).collect()
}

pub(super) fn need_of(tool: &str) -> Need {
    LIST.iter().find(|(name, ..)| *name == tool).map_or(Need::Run, |(_, need, _)| *need)
}

const LIST: [(&str, Need, &str); 10] = [
    (
        "complete_story",
        Need::Run,
        "Say that your story is done, partly done or blocked. Verdone then runs the checks itself and answers with the proof, what \
         fails, and whether to continue. Only a passing verification closes the story.",
    ),
    ("next_story", Need::Nothing, "The story to work on. In a run, the story of this session."),
    ("get_story", Need::Nothing, "One story of the plan: its text, criteria, scope and checks."),
    ("verify", Need::Nothing, "Run the checks on your current files, without claiming anything. With `stage`, only those gates."),
    (
        "report_blocked",
        Need::Run,
        "Ask the user a question without which the story cannot be done. The run continues with other stories; the answer is in the \
         prompt of the next session for this story.",
    ),
    (
        "request_merge",
        Need::Run,
        "Prepare a story that is done for review: a local branch and a Markdown report. Use it instead of `git push`.",
    ),
    ("recall", Need::Nothing, "Search the project's guardrails and the evidence of finished stories."),
    ("add_guardrail", Need::Run, "Leave one short note for later sessions among the lessons in .verdone/guardrails.md."),
    ("add_story", Need::Run, "Propose a story for the plan. It waits for the user, unless the settings allow more."),
    ("status", Need::Nothing, "The progress of the run and the plan."),
];

fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = SchemaGenerator::new(settings).into_root_schema_for::<T>();
    schema.remove("$schema");
    schema.remove("title");
    schema.to_value()
}
