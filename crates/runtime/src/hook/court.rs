//! One event judged, the same behind a process that the client starts and behind a callback of a run: facts from the disk, the answer
//! of the core, and what the session keeps of it.

use verdone_core::config::Config;
use verdone_core::hook::{Answer, HookEvent, HookInput, Record, Response, Situation, Target, respond, target};
use verdone_core::policy::{Mode, PolicyContext, Rule, ToolCall};

use super::facts::{Asked, facts};
use super::home::Home;
use super::session::{Session, redactor};
use super::story::StoryFile;
use super::{Fault, after_tool, look, transcript};
use crate::signal::Signals;
use crate::stop::Gate;

/// What events are judged by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Court<'a> {
    pub(super) home: &'a Home,
    pub(super) mode: Mode,
    pub(super) config: &'a Config,
    pub(super) rules: &'a [Rule],
    pub(super) story: &'a StoryFile,
}

impl Court<'_> {
    /// The answer. `judged` is called before commands of the user's run, which have deadlines of their own.
    pub(super) fn answer(&self, input: &HookInput<'_>, judged: impl FnOnce() -> Signals) -> Result<Response, Fault> {
        let Self { home, mode, config, rules, story } = *self;
        let policy = &config.policy;
        let call = input.call().map(|call| call.for_policy(&input.common.event_name)).transpose();
        // What has run already can be looked at in part; what is to run cannot.
        let call = if is_guard(&input.event) { call? } else { call.unwrap_or_default() };
        let deciding = is_guard(&input.event);
        let asked = Asked { mode, cwd: &input.common.cwd, call: call.as_ref(), deciding, story };
        let mut context = facts(home, config, &asked);
        // A run needs no such gate: its driver is one.
        let gate = (mode == Mode::Interactive).then(|| Gate::of(&home.root, &home.top, config, &input.common.session));
        if let (Some(gate), HookEvent::PreToolUse(_), Some(call)) = (&gate, &input.event, &call)
            && let Some(command) = call.input.get("command").and_then(serde_json::Value::as_str)
        {
            gate.sees_command(command);
            context.held = gate.holds();
        }
        let session = Session::of(home, &input.common.session);
        let watch = look::look(home, config, input, &session, story);
        let target = match &call {
            Some(call) if policy.read_before_edit() && deciding => look_at(call, &context, &session)?,
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
        let mut judged = Some(judged);
        let mut judging = || judged.take().map_or_else(Signals::none, |judged| judged());
        if let Some(said) = gate.map(|gate| gate.answer(input, &mut judging)).transpose()?.flatten() {
            if said.answer != Answer::Silent {
                response.answer = said.answer;
            }
            response.records.retain(|record| *record != Record::Seen);
            response.records.extend(said.records);
        }
        response.records.splice(0..0, transcript::spent(input));
        let lost = |source| Fault::Files { what: "the session's files", source };
        session.keep(input, &response).map_err(lost)?;
        if response.commands.is_empty() {
            return Ok(response);
        }
        let signals = judging();
        let ends = after_tool::run(&response.commands, home, &redactor(), &signals);
        let records: Vec<Record> = response.commands.iter().zip(&ends).map(|(command, end)| command.record(end)).collect();
        session.append_records(input, &records).map_err(lost)?;
        Ok(response.after(&input.common.event_name, &ends))
    }
}

fn joined(first: Option<String>, second: Option<String>) -> Option<String> {
    match (first, second) {
        (Some(first), Some(second)) => Some(format!("{first}\n\n{second}")),
        (one, None) | (None, one) => one,
    }
}

fn is_after(event: &HookEvent<'_>) -> bool {
    matches!(event, HookEvent::PostToolUse { .. } | HookEvent::PostToolUseFailure { .. })
}

fn is_guard(event: &HookEvent<'_>) -> bool {
    matches!(event, HookEvent::PreToolUse(_) | HookEvent::PermissionRequest(_))
}

/// What the session knows of the file that a call would change.
fn look_at(call: &ToolCall, context: &PolicyContext, session: &Session) -> Result<Option<Target>, Fault> {
    let Some(path) = target(call, context) else { return Ok(None) };
    // A folder or a device is no file to read first; the tool refuses it by itself.
    let exists = std::fs::metadata(&path).is_ok_and(|meta| meta.is_file());
    let known = exists && session.knows(&path).map_err(|source| Fault::Files { what: "the session's memory", source })?;
    Ok(Some(Target { path, exists, known }))
}
