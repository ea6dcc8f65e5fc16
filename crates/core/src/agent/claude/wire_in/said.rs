//! The text of a line that a person sees while the agent works. Untrusted: the surfaces sanitise it.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::lenient::text;
use super::{ApiRetry, Block, ClientLine, Compaction, RateLimit, State, cut};

/// The number of bytes shown of a tool's input.
const INPUT: usize = 200;

impl ClientLine<'_> {
    /// The line as text; `None` for lines that are only for programs.
    pub fn said(&self) -> Option<String> {
        match self {
            // An error of the API, which the client repeats in the result. The turn's outcome has it.
            Self::Assistant(assistant) if assistant.error.is_some() => None,
            Self::Assistant(assistant) => {
                let said: Vec<String> = assistant.message.content.iter().filter_map(Block::shown).collect();
                (!said.is_empty()).then(|| said.join("\n"))
            }
            Self::ApiRetry(retry) => Some(retrying(retry)),
            Self::Compacted(compaction) => Some(compacted(compaction)),
            Self::RateLimit(limit) => limited(limit),
            Self::PermissionDenied(denial) => {
                let tool = denial.tool_name.as_deref().unwrap_or("a tool");
                Some(format!("{tool} was refused by the client: {}", denial.message.as_deref().unwrap_or("no reason given")))
            }
            Self::Informational { text, .. } if !text.trim().is_empty() => Some(text.to_string()),
            Self::Task { subtype, task, summary } if subtype == "task_notification" || subtype == "task_started" => {
                let words = summary.as_deref().or(task.description.as_deref())?;
                let what = if subtype == "task_started" { "started" } else { "ended" };
                Some(format!("background task {what}: {}", cut(words, INPUT)))
            }
            Self::ConversationReset { .. } => Some("a fresh session".to_owned()),
            Self::Garbage { text } => Some(text.clone()),
            Self::StateChanged(State::Running | State::RequiresAction | State::Idle | State::Other)
            | Self::Informational { .. }
            | Self::Task { .. }
            | Self::Result(_)
            | Self::Init(_)
            | Self::User(_)
            | Self::HookCallback(_)
            | Self::ControlRequest { .. }
            | Self::ControlCancel { .. }
            | Self::ControlAnswer(_)
            | Self::Lifecycle { .. }
            | Self::Status { .. }
            | Self::BackgroundTasks(_)
            | Self::StreamEvent
            | Self::HookStarted { .. }
            | Self::HookResponse { .. }
            | Self::Unknown { .. } => None,
        }
    }
}

impl super::ResultLine<'_> {
    /// The text of the result, or the errors.
    pub fn text(&self) -> Option<String> {
        let said = self.result.as_deref().map(str::trim).filter(|text| !text.is_empty());
        said.map(str::to_owned).or_else(|| (!self.errors.is_empty()).then(|| self.errors.join("; ")))
    }
}

impl Block<'_> {
    /// The block as text for people; `None` if it has nothing for them.
    pub(in crate::agent::claude) fn shown(&self) -> Option<String> {
        match self.kind.as_deref()? {
            "text" => self.text.as_deref().map(str::trim_end).filter(|text| !text.is_empty()).map(str::to_owned),
            "tool_use" => {
                let name = self.name.as_deref().unwrap_or("a tool");
                Some(self.input.and_then(about).map_or_else(|| name.to_owned(), |about| format!("{name}: {about}")))
            }
            _ => None,
        }
    }
}

/// The part of an input that names the target of the call.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Input<'a> {
    #[serde(borrow, deserialize_with = "text")]
    command: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "text")]
    file_path: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "text")]
    notebook_path: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "text")]
    pattern: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "text")]
    path: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "text")]
    url: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "text")]
    query: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "text")]
    description: Option<Cow<'a, str>>,
    #[serde(borrow, deserialize_with = "text")]
    prompt: Option<Cow<'a, str>>,
}

fn about(input: &RawValue) -> Option<String> {
    let input: Input<'_> = serde_json::from_str(input.get()).ok()?;
    let named = input.command.or(input.file_path).or(input.notebook_path).or(input.pattern).or(input.path);
    let about = named.or(input.url).or(input.query).or(input.description).or(input.prompt)?;
    let line = about.trim().lines().next()?.trim();
    let more = cut(line, INPUT).len() < about.trim().len();
    (!line.is_empty()).then(|| format!("{}{}", cut(line, INPUT), if more { " …" } else { "" }))
}

fn retrying(retry: &ApiRetry<'_>) -> String {
    let what = match (retry.error_status, retry.error.as_deref()) {
        (Some(status), Some(error)) => format!("API error {status} ({error})"),
        (Some(status), None) => format!("API error {status}"),
        (None, Some(error)) => format!("API error ({error})"),
        (None, None) => "API error".to_owned(),
    };
    let count = match (retry.attempt, retry.max_retries) {
        (Some(attempt), Some(most)) => format!(", retry {attempt} of {most}"),
        (Some(_) | None, _) => ", retrying".to_owned(),
    };
    let wait = retry.retry_delay_ms.map(|ms| format!(" in {}.{} s", ms / 1000, ms % 1000 / 100)).unwrap_or_default();
    format!("{what}{count}{wait}")
}

fn compacted(compaction: &Compaction<'_>) -> String {
    let size = match (compaction.pre_tokens, compaction.post_tokens) {
        (Some(before), Some(after)) => format!(" from {before} to {after} tokens"),
        (Some(_) | None, _) => String::new(),
    };
    format!("the client compacted the conversation{size}")
}

fn limited(limit: &RateLimit<'_>) -> Option<String> {
    let status = limit.status.as_deref().filter(|status| *status != "allowed")?;
    let kind = limit.kind.as_deref().unwrap_or("unknown").replace('_', " ");
    Some(format!("usage limit ({kind}): {}", status.replace('_', " ")))
}
