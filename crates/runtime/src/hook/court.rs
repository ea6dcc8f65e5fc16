//! One event judged, the same behind a process that the client starts and behind a callback of a run: facts from the disk, the answer
//! of the core, and what the session keeps of it.

use verdone_core::config::Config;
use verdone_core::done::Lessons;
use verdone_core::hook::{HookEvent, HookInput, Record, Response, Situation, Target, respond, target};
use verdone_core::policy::{Mode, PolicyContext, Rule, ToolCall};

use super::facts::{Asked, facts};
use super::home::{Home, lessons};
use super::session::{Session, redactor};
use super::story::StoryFile;
use super::{Fault, after_tool, look, transcript};
use crate::signal::Signals;

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
        let context = facts(home, config, &asked);
        let session = Session::of(home, &input.common.session);
        let watch = look::look(home, config, input, &session, story);
        let target = match &call {
            Some(call) if policy.read_before_edit() && deciding => look_at(call, &context, &session)?,
            Some(_) | None => None,
        };
        let briefing = matches!(input.event, HookEvent::SessionStart { .. }).then(|| home.briefing(mode, story)).flatten();
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
        response.records.splice(0..0, transcript::spent(input));
        if let HookEvent::SessionStart { .. } = input.event {
            let text = lessons(&home.root).unwrap_or_default();
            let (lines, digest) = Lessons::stamp(&text);
            response.records.push(Record::Lessons { lines, digest, told: lines > 0 });
        }
        let lost = |source| Fault::Files { what: "the session's files", source };
        session.keep(input, &response).map_err(lost)?;
        if response.commands.is_empty() {
            return Ok(response);
        }
        let signals = judged();
        let ends = after_tool::run(&response.commands, home, &redactor(), &signals);
        let records: Vec<Record> = response.commands.iter().zip(&ends).map(|(command, end)| command.record(end)).collect();
        session.append_records(input, &records).map_err(lost)?;
        Ok(response.after(&input.common.event_name, &ends))
    }
}

/// A tool has run.
pub(super) fn is_after(event: &HookEvent<'_>) -> bool {
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
