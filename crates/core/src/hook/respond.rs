//! Answers every event: tool calls are judged by policy and the session's memory, other events are answered and recorded.
//!
//! Pure: the state on disk (rules, real paths, whether a file exists and whether this session has read it) comes in as data. In a run,
//! the answer to a tool call is always explicit, because Verdone *is* the permission system there. In a user's own session, only
//! denials are explicit, because an explicit "allow" would bypass the user's settings.

use super::after::{Ended, after};
use super::record::cut;
use super::watch::{FileLook, Watch, watched};
use super::{AfterCommand, AfterTool, Answer, HookEvent, HookInput, Permission, Record, StartSource, ToolCall};
use crate::base::verdict::PolicyVerdict;
use crate::policy::{
    self, Decision, Mode, PolicyContext, READ_BEFORE_EDIT, Rule, Source, ToolKind, evaluate, evaluate_prompt, kind_of, reads,
    writes,
};

/// Everything known about the circumstances of the event.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    pub rules: &'a [Rule],
    /// Its `mode` tells whether this is a run.
    pub context: &'a PolicyContext,
    /// The tool call in the input, if it has one.
    pub call: Option<&'a policy::ToolCall>,
    /// The file that the call would change, and whether the session knows it; `None` if reading before writing is not required.
    pub target: Option<&'a Target>,
    /// The text for the agent at the start of a session.
    pub briefing: Option<&'a str>,
    /// The checks after a command, if any are enabled.
    pub watch: Option<&'a Watch>,
    /// The attempt's test runs so far; `None` if no driver could roll the attempt back.
    pub tests: Option<TestRuns>,
    pub after_tool: &'a [AfterTool],
}

/// The agent's own test runs in one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestRuns {
    /// The consecutive failures before this call.
    pub failing: u32,
    /// The number of consecutive failures that ends the turn; `None` if failures are only reported.
    pub patience: Option<u32>,
}

/// How a call changes the number of consecutive failing test runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Streak {
    #[default]
    Same,
    Longer,
    Over,
}

/// A file that a file tool would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub path: String,
    pub exists: bool,
    /// This session has read or written it.
    pub known: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Response {
    pub answer: Answer,
    pub records: Vec<Record>,
    /// Files that the session now knows.
    pub known: Vec<String>,
    pub streak: Streak,
    /// Commands to run before answering; [`Response::after`] adds their results.
    pub commands: Vec<AfterCommand>,
    /// Files about to be read, and files that could not be read.
    pub reading: Vec<String>,
    pub unread: Vec<String>,
    /// The session's new view of git and of the story's scope, if it changed.
    pub seen: Option<FileLook>,
}

/// The file that a file tool would change; the caller looks it up in the session's memory.
pub fn target(call: &policy::ToolCall, context: &PolicyContext) -> Option<String> {
    match kind_of(&call.tool) {
        ToolKind::Write => writes(call, context).into_iter().next(),
        ToolKind::Shell | ToolKind::Read | ToolKind::Agent | ToolKind::Other => None,
    }
}

/// Answers one event.
pub fn respond(input: &HookInput<'_>, situation: &Situation<'_>) -> Response {
    watched(answered(input, situation), input, situation)
}

fn answered(input: &HookInput<'_>, situation: &Situation<'_>) -> Response {
    let event = input.common.event_name.as_ref();
    match &input.event {
        HookEvent::SessionStart { source } => started(*source, situation.briefing),
        HookEvent::UserPromptSubmit { prompt } => prompted(prompt, situation),
        HookEvent::PreToolUse(call) => judged(call, situation, Answer::ToolUse),
        HookEvent::PermissionRequest(call) => judged(call, situation, Answer::PermissionRequest),
        HookEvent::PostToolUse { call, response, duration_ms } => {
            let result = Ok(response.map(serde_json::value::RawValue::get));
            after(call, situation.call, &Ended { event, duration_ms: *duration_ms, result, interrupted: false }, situation)
        }
        HookEvent::PostToolUseFailure { call, error, interrupted, duration_ms } => {
            let ended = Ended { event, duration_ms: *duration_ms, result: Err(error), interrupted: *interrupted };
            after(call, situation.call, &ended, situation)
        }
        HookEvent::ConfigChange { source, file } => settings_changed(source, file.as_deref(), situation.context.mode),
        HookEvent::StopFailure { error } => silent(Record::TurnFailed { error: cut(error) }),
        HookEvent::SessionEnd { reason } => silent(Record::Ended { reason: cut(reason) }),
        HookEvent::TaskCreated { task, subject } => silent(Record::TaskOpened { task: cut(task), subject: cut(subject) }),
        HookEvent::TaskCompleted { task, .. } => silent(Record::TaskClosed { task: cut(task) }),
        HookEvent::PostToolBatch
        | HookEvent::TeammateIdle { .. }
        | HookEvent::PreCompact
        | HookEvent::PostCompact
        | HookEvent::SubagentStart
        | HookEvent::SubagentStop { .. }
        | HookEvent::Notification { .. }
        | HookEvent::Stop { .. }
        | HookEvent::Other => silent(Record::Seen),
    }
}

fn silent(record: Record) -> Response {
    Response { records: vec![record], ..Response::default() }
}

fn started(source: StartSource, briefing: Option<&str>) -> Response {
    let name = match source {
        StartSource::Startup => "startup",
        StartSource::Resume => "resume",
        StartSource::Clear => "clear",
        StartSource::Compact => "compact",
        StartSource::Fork => "fork",
        StartSource::Other => "other",
    };
    let answer = match briefing.filter(|text| !text.trim().is_empty()) {
        Some(text) => Answer::Context { event: "SessionStart".to_owned(), text: text.to_owned() },
        None => Answer::Silent,
    };
    Response { answer, ..silent(Record::Started { source: name.to_owned() }) }
}

fn prompted(prompt: &str, situation: &Situation<'_>) -> Response {
    let decision = evaluate_prompt(prompt, situation.context.mode, situation.rules);
    let refused = decision.verdict == PolicyVerdict::Deny;
    let refused_by = decision.rule.as_ref().filter(|_| refused).map(|(name, _)| name.clone());
    let answer = if refused { Answer::Block { reason: said(&decision) } } else { Answer::Silent };
    Response { answer, ..silent(Record::Prompt { refused_by, text: cut(prompt) }) }
}

fn judged(call: &ToolCall<'_>, situation: &Situation<'_>, form: fn(Permission) -> Answer) -> Response {
    let Some(parsed) = situation.call else {
        // A caller that forgets to parse the call must not let it through.
        return Response {
            answer: form(Permission::Deny { reason: "the call was not parsed".to_owned() }),
            ..silent(Record::Seen)
        };
    };
    let mut decision = evaluate(parsed, situation.context, situation.rules);
    if decision.verdict < PolicyVerdict::Deny
        && let Some(target) = situation.target.filter(|target| target.exists && !target.known)
    {
        decision = unread(&target.path);
    }
    let permission = match (decision.verdict, situation.context.mode) {
        (PolicyVerdict::Allow, Mode::Run) => Some(Permission::Allow),
        // A run denies calls that need a question, because no person is there to answer. In a session, the client asks by its own rules.
        (PolicyVerdict::Deny, _) | (PolicyVerdict::Ask, Mode::Run) => Some(Permission::Deny { reason: said(&decision) }),
        (PolicyVerdict::Allow | PolicyVerdict::Ask, Mode::Interactive) => None,
    };
    // The calls of one message are judged concurrently: a write to a file that is being read right now need not wait for the next message.
    let reads_it = kind_of(&parsed.tool) == ToolKind::Read && decision.verdict < PolicyVerdict::Deny;
    let reading = if reads_it { reads(parsed, situation.context) } else { Vec::new() };
    let answer = permission.map_or(Answer::Silent, form);
    Response { answer, reading, ..silent(Record::decided(call, &decision)) }
}

fn unread(path: &str) -> Decision {
    Decision {
        verdict: PolicyVerdict::Deny,
        rule: Some((READ_BEFORE_EDIT.to_owned(), Source::BuiltIn)),
        command: None,
        path: Some(path.to_owned()),
        reason: "the file exists and this session has not read it".to_owned(),
        alternative: "read it first, then change it".to_owned(),
        unknown: None,
        needs_human: false,
    }
}

/// The denial shown to the agent: the rule, what it matched, the reason, and what to do instead.
fn said(decision: &Decision) -> String {
    let mut text = match &decision.rule {
        Some((name, _)) => format!("Denied by Verdone's rule `{name}`"),
        None => "Denied by Verdone".to_owned(),
    };
    let about = decision.command.as_ref().map(|found| &found.text).filter(|text| !text.is_empty()).or(decision.path.as_ref());
    if let Some(about) = about {
        text.push_str(&format!(" (`{}`)", cut(about)));
    }
    text.push_str(&format!(": {}.", decision.reason));
    if !decision.alternative.is_empty() {
        text.push_str(&format!(" Instead: {}.", decision.alternative));
    }
    text
}

fn settings_changed(source: &str, file: Option<&str>, mode: Mode) -> Response {
    let record = |refused| Record::Settings { source: cut(source), file: file.map(cut), refused };
    match mode {
        Mode::Run => {
            let reason = "Settings are fixed when the run starts; the change applies after it.".to_owned();
            Response { answer: Answer::Block { reason }, ..silent(record(true)) }
        }
        Mode::Interactive => silent(record(false)),
    }
}
