//! Judges one event. Hook processes and callbacks of a run share this code: it gets facts from the disk, asks the core for the answer, and
//! records the result in the session.

use std::path::Path;

use verdone_core::config::Config;
use verdone_core::done::Lessons;
use verdone_core::hook::{Answer, HookEvent, HookInput, Record, Response, Situation, Target, respond, target};
use verdone_core::policy::{Mode, PolicyContext, Rule, ToolCall};

use super::after_tool::{self, Company};
use super::facts::{Asked, facts};
use super::home::{Home, lessons};
use super::session::{Session, redactor};
use super::story::StoryFile;
use super::{Fault, look, transcript};
use crate::process::signal::Signals;
use crate::session::Gate;

/// The context in which events are judged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Court<'a> {
    pub(super) home: &'a Home,
    pub(super) mode: Mode,
    pub(super) config: &'a Config,
    /// Why the settings cannot be read, if the event is judged anyway.
    pub(super) unreadable: Option<&'a str>,
    pub(super) rules: &'a [Rule],
    pub(super) story: &'a StoryFile,
}

/// The result of an event.
#[derive(Debug)]
pub(super) enum Answered {
    Now(Box<Response>),
    /// The answer comes after the user's commands have run, which have their own deadlines.
    After(Box<Errand>),
}

/// Commands to run after a tool, with everything that they and the answer need: the event itself may be gone by then.
#[derive(Debug)]
pub(super) struct Errand {
    home: Home,
    session: Session,
    event: String,
    agent: Option<String>,
    response: Response,
}

impl Errand {
    /// The answer without the commands.
    pub(super) fn answer(&self) -> &Answer {
        &self.response.answer
    }

    pub(super) fn event(&self) -> &str {
        &self.event
    }

    pub(super) fn home(&self) -> &Home {
        &self.home
    }

    /// Runs the commands. The answer includes their results.
    pub(super) fn run(&self, signals: &Signals, company: Company) -> Result<Response, Fault> {
        let commands = &self.response.commands;
        let ends = after_tool::run(commands, &self.home, &redactor(), signals, company);
        let records: Vec<Record> = commands.iter().zip(&ends).map(|(command, end)| command.record(end)).collect();
        self.session.append_records((&self.event, self.agent.as_deref()), &records).map_err(lost)?;
        Ok(self.response.clone().after(&self.event, &ends))
    }
}

fn lost(source: std::io::Error) -> Fault {
    Fault::Files { what: "the session's files", source }
}

impl Court<'_> {
    /// `judging` is called if the answer must wait for a verification. From then on the hook's own deadline is off.
    pub(super) fn answer(&self, input: &HookInput<'_>, judging: &mut dyn FnMut() -> Signals) -> Result<Answered, Fault> {
        let Self { home, mode, config, unreadable, rules, story } = *self;
        let policy = &config.policy;
        let call = input.call().map(|call| call.for_policy(&input.common.event_name)).transpose();
        // A call that has already run may be understood only in part; one that is about to run must be understood fully.
        let call = if is_guard(&input.event) { call? } else { call.unwrap_or_default() };
        let deciding = is_guard(&input.event);
        let asked = Asked { mode, cwd: &input.common.cwd, call: call.as_ref(), deciding, story };
        let mut context = facts(home, config, &asked);
        // Runs need no Stop gate: the driver verifies their work.
        let gate =
            (mode == Mode::Interactive).then(|| Gate::of(&home.root, &home.top, config, unreadable, &input.common.session));
        if let (Some(gate), HookEvent::PreToolUse(_), Some(call)) = (&gate, &input.event, &call)
            && let Some(command) = call.input.get("command").and_then(serde_json::Value::as_str)
        {
            gate.sees_command(command);
            context.held = gate.holds();
        }
        let session = Session::of(home, &input.common.session);
        let watch = look::look(home, config, input, &session, story);
        let target = match &call {
            Some(call) if policy.read_before_edit() && deciding => look_at(home, call, &context, &session)?,
            Some(_) | None => None,
        };
        let briefing = matches!(input.event, HookEvent::SessionStart { .. }).then(|| home.briefing(mode, story)).flatten();
        let briefing = match (&gate, &input.event) {
            (Some(gate), HookEvent::SessionStart { source }) => joined(gate.begins(*source)?, briefing),
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
        if let Some(said) = gate.map(|gate| gate.answer(input, judging)).transpose()?.flatten() {
            if said.answer != Answer::Silent {
                response.answer = said.answer;
            }
            response.records.retain(|record| *record != Record::Seen);
            // A refused event did not happen.
            if let Answer::Refuse { .. } = response.answer {
                response.records.retain(|record| !matches!(record, Record::TaskClosed { .. }));
            }
            response.records.extend(said.records);
        }
        response.records.splice(0..0, transcript::spent(input));
        if let HookEvent::SessionStart { .. } = input.event {
            let text = lessons(&home.root).unwrap_or_default();
            let (lines, digest) = Lessons::stamp(&text);
            response.records.extend(look::head_commit(&home.top).map(|head| Record::Began { head }));
            response.records.push(Record::Lessons { lines, digest, told: lines > 0 });
        }
        session.keep(input, &response).map_err(lost)?;
        if response.commands.is_empty() {
            return Ok(Answered::Now(Box::new(response)));
        }
        let (event, agent) = (input.common.event_name.to_string(), input.common.agent_id.as_deref().map(str::to_owned));
        Ok(Answered::After(Box::new(Errand { home: home.clone(), session, event, agent, response })))
    }
}

fn joined(first: Option<String>, second: Option<String>) -> Option<String> {
    match (first, second) {
        (Some(first), Some(second)) => Some(format!("{first}\n\n{second}")),
        (one, None) | (None, one) => one,
    }
}

/// Whether a tool has run.
pub(super) fn is_after(event: &HookEvent<'_>) -> bool {
    matches!(event, HookEvent::PostToolUse { .. } | HookEvent::PostToolUseFailure { .. })
}

fn is_guard(event: &HookEvent<'_>) -> bool {
    matches!(event, HookEvent::PreToolUse(_) | HookEvent::PermissionRequest(_))
}

/// What the session knows about the file that a call would change.
fn look_at(home: &Home, call: &ToolCall, context: &PolicyContext, session: &Session) -> Result<Option<Target>, Fault> {
    let Some(path) = target(call, context) else { return Ok(None) };
    // Folders and devices cannot be read first; the tool itself refuses them.
    let exists = std::fs::metadata(home.outside(Path::new(&path))).is_ok_and(|meta| meta.is_file());
    let known = exists && session.knows(&path).map_err(|source| Fault::Files { what: "the session's memory", source })?;
    Ok(Some(Target { path, exists, known }))
}
