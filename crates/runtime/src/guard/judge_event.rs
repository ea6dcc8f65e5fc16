//! Judges one event. Hook processes and callbacks of a run share this code: it gets facts from the disk, asks the core for the answer, and
//! records the result in the session.

use std::fmt;
use std::path::Path;

use verdone_core::check::lessons::user_text;
use verdone_core::config::Config;
use verdone_core::done::Lessons;
use verdone_core::hook::{
    Answer, HookEvent, HookInput, Permission, Record, Response, Situation, StartSource, Target, respond, target,
};
use verdone_core::policy::{Mode, PolicyContext, Rule, ToolCall};

use super::after_tool::{self, Concurrency};
use super::facts::{CallContext, facts};
use super::run_dirs::HookProject;
use super::session_log::{SessionLog, redactor};
use super::story::StoryFile;
use super::{Fault, ralph_logs, transcript, watch};
use crate::process::signal::Signals;
use crate::project::lessons::guardrails_text;

/// The context in which events are judged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventJudge<'a> {
    pub(crate) home: &'a HookProject,
    pub(crate) mode: Mode,
    pub(crate) config: &'a Config,
    pub(crate) rules: &'a [Rule],
    pub(crate) story: &'a StoryFile,
    /// The Stop gate of a user's own session.
    pub(crate) gate: Option<&'a dyn SessionGate>,
}

/// Decides whether a session that Verdone did not start may end its turn.
pub(crate) trait SessionGate: fmt::Debug {
    /// Sees a command that is about to run.
    fn sees_command(&self, command: &str);

    fn holds(&self) -> bool;

    /// What an agent must know when its session starts.
    fn begins(&self, source: StartSource) -> Result<Option<String>, String>;

    /// The answer to an event that asks whether something may end; `None` for other events. Calls `judging` before anything that can
    /// take longer than a normal answer.
    fn answer(&self, input: &HookInput<'_>, judging: &mut dyn FnMut() -> Signals) -> Result<Option<GateAnswer>, String>;
}

/// The gate's answer to an event.
#[derive(Debug, Default)]
pub(crate) struct GateAnswer {
    pub(crate) answer: Answer,
    pub(crate) records: Vec<Record>,
}

/// The result of an event.
#[derive(Debug)]
pub(crate) enum Answered {
    Now(Box<Response>),
    /// The answer comes after the user's commands have run, which have their own deadlines.
    After(Box<PostToolJob>),
}

/// Commands to run after a tool, with everything that they and the answer need: the event itself may be gone by then.
#[derive(Debug)]
pub(crate) struct PostToolJob {
    home: HookProject,
    session: SessionLog,
    event: String,
    agent: Option<String>,
    response: Response,
}

impl PostToolJob {
    /// The answer without the commands.
    pub(crate) fn answer(&self) -> &Answer {
        &self.response.answer
    }

    pub(crate) fn event(&self) -> &str {
        &self.event
    }

    pub(crate) fn home(&self) -> &HookProject {
        &self.home
    }

    /// Runs the commands. The answer includes their results.
    pub(crate) fn run(&self, signals: &Signals, concurrency: Concurrency) -> Result<Response, Fault> {
        let commands = &self.response.commands;
        let ends = after_tool::run(commands, &self.home, &redactor(), signals, concurrency);
        let records: Vec<Record> = commands.iter().zip(&ends).map(|(command, end)| command.record(end)).collect();
        self.session.append_records((&self.event, self.agent.as_deref()), &records).map_err(lost)?;
        Ok(self.response.clone().after(&self.event, &ends))
    }
}

fn lost(source: std::io::Error) -> Fault {
    Fault::Files { what: "the session's files", source }
}

impl EventJudge<'_> {
    /// `judging` is called if the answer must wait for a verification. From then on the hook's own deadline is off.
    pub(crate) fn answer(&self, input: &HookInput<'_>, judging: &mut dyn FnMut() -> Signals) -> Result<Answered, Fault> {
        let Self { home, mode, config, rules, story, gate } = *self;
        let policy = &config.policy;
        let call = input.call().map(|call| call.for_policy(&input.common.event_name)).transpose();
        // A call that has already run may be understood only in part; one that is about to run must be understood fully.
        let call = if is_guard(&input.event) { call? } else { call.unwrap_or_default() };
        let deciding = is_guard(&input.event);
        let asked = CallContext { mode, cwd: &input.common.cwd, call: call.as_ref(), deciding, story };
        let mut context = facts(home, config, &asked);
        if let (Some(gate), HookEvent::PreToolUse(_), Some(call)) = (gate, &input.event, &call)
            && let Some(command) = call.input.get("command").and_then(serde_json::Value::as_str)
        {
            gate.sees_command(command);
            context.held = gate.holds();
        }
        let session = SessionLog::new(home, &input.common.session);
        let watch = watch::observe(home, config, input, &session, story);
        let target = match &call {
            Some(call) if policy.read_before_edit() && deciding => look_at(home, call, &context, &session)?,
            Some(_) | None => None,
        };
        let briefing = match &input.event {
            HookEvent::SessionStart { source } => home.briefing(mode, config, story, *source),
            _ => None,
        };
        let briefing = match (gate, &input.event) {
            (Some(gate), HookEvent::SessionStart { source }) => joined(gate.begins(*source).map_err(Fault::Stop)?, briefing),
            _ => briefing,
        };
        if let Some(cause) = story.fault() {
            return Err(Fault::Story(cause.to_owned()));
        }
        let situation = Situation {
            rules,
            context: &context,
            call: call.as_ref(),
            target: target.as_ref(),
            briefing: briefing.as_deref(),
            tests: is_after(&input.event).then(|| home.test_runs(policy)).flatten(),
            after_tool: &config.after_tool,
            watch: watch.as_ref(),
        };
        let mut response = respond(input, &situation);
        if let Some(said) = gate.map(|gate| gate.answer(input, judging)).transpose().map_err(Fault::Stop)?.flatten() {
            if said.answer != Answer::Silent {
                response.answer = said.answer;
            }
            response.records.retain(|record| *record != Record::Seen);
            // A refused event did not happen, and a denied call was not allowed.
            if let Answer::Refuse { .. } | Answer::ToolUse(Permission::Deny { .. }) = response.answer {
                response.records.retain(|record| !matches!(record, Record::TaskClosed { .. } | Record::Decided { .. }));
            }
            response.records.extend(said.records);
        }
        response.records.splice(0..0, transcript::spent(input));
        if let HookEvent::SessionStart { .. } = input.event {
            let text = guardrails_text(&home.root).unwrap_or_default();
            let (lines, digest) = Lessons::stamp(&user_text(&text));
            let told = !home.guardrails(mode, config).trim().is_empty();
            response.records.extend(watch::head_commit(&home.top).map(|head| Record::Began { head }));
            response.records.push(Record::Lessons { lines, digest, told });
        }
        session.keep(input, &response).map_err(lost)?;
        if mode == Mode::Interactive {
            let event = &input.common.event_name;
            ralph_logs::append(&home.root, &input.common.session, event, &response.records, redactor)
                .map_err(|source| Fault::Files { what: "the logs in .ralph", source })?;
        }
        if response.commands.is_empty() {
            return Ok(Answered::Now(Box::new(response)));
        }
        let (event, agent) = (input.common.event_name.to_string(), input.common.agent_id.as_deref().map(str::to_owned));
        Ok(Answered::After(Box::new(PostToolJob { home: home.clone(), session, event, agent, response })))
    }
}

fn joined(first: Option<String>, second: Option<String>) -> Option<String> {
    match (first, second) {
        (Some(first), Some(second)) => Some(format!("{first}\n\n{second}")),
        (one, None) | (None, one) => one,
    }
}

/// Whether a tool has run.
pub(crate) fn is_after(event: &HookEvent<'_>) -> bool {
    matches!(event, HookEvent::PostToolUse { .. } | HookEvent::PostToolUseFailure { .. })
}

fn is_guard(event: &HookEvent<'_>) -> bool {
    matches!(event, HookEvent::PreToolUse(_) | HookEvent::PermissionRequest(_))
}

/// What the session knows about the file that a call would change.
fn look_at(home: &HookProject, call: &ToolCall, context: &PolicyContext, session: &SessionLog) -> Result<Option<Target>, Fault> {
    let Some(path) = target(call, context) else { return Ok(None) };
    // Folders and devices cannot be read first; the tool itself refuses them.
    let exists = std::fs::metadata(home.outside(Path::new(&path))).is_ok_and(|meta| meta.is_file());
    let known = exists && session.knows(&path).map_err(|source| Fault::Files { what: "the session's memory", source })?;
    Ok(Some(Target { path, exists, known }))
}
