//! The guard of a run, inside the run's process: the client asks over its pipe and gets the same answer as from `verdone hook`.
//!
//! It uses the settings from the start of the run. A panic, or anything else that cannot
//! be judged, denies the call and is recorded where the run shows it.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use verdone_core::base::verdict::PolicyVerdict;
use verdone_core::hook::{Answer, Cause, Failed, HookEvent, HookInput, Record, Response, event_in, fail};
use verdone_core::policy::{Mode, OnFailure, READ_BEFORE_EDIT, ReadOnlyReason, Rule, read_only_rule};

use super::Fault;
use super::after_tool::Concurrency;
use super::attempt::TurnOf;
use super::judge_event::{Answered, EventJudge, PostToolJob};
use super::run_dirs::{FileSettings, HookProject};
use super::session_log::{FAULTS, SessionLog, append_fault};
use super::story::StoryFile;
use crate::process::signal::Signals;
use crate::project::config_file::SettingsError;
use crate::workspace::Place;

#[derive(Debug)]
pub struct Guard {
    home: HookProject,
    settings: FileSettings,
    rules: Vec<Rule>,
    /// The session and offset up to which its records were searched for judged calls.
    read: Option<(String, u64)>,
    /// Sessions whose start was seen. Kept here because the agent could delete their files.
    started: Mutex<BTreeSet<String>>,
}

/// The judgement of one event.
#[derive(Debug)]
pub struct Judgement {
    pub answer: Answer,
    /// The id of the judged call.
    pub call: Option<String>,
    /// If set, the turn must end, for this reason.
    pub ends_turn: Option<String>,
    /// If set, the answer must wait for this.
    pub pending: Option<Pending>,
}

/// User commands to run after a tool. Run them in the background: they may take most of a minute.
#[derive(Debug)]
pub struct Pending(Box<PostToolJob>);

impl Pending {
    /// Runs them. Always returns an answer: the tool has already run, so nothing can be denied any more.
    pub fn run(self, signals: &Signals) -> Answer {
        let errand = &self.0;
        let run = catch_unwind(AssertUnwindSafe(|| errand.run(signals, Concurrency::Others)));
        let cause = match run {
            Ok(Ok(response)) => return response.answer,
            Ok(Err(fault)) => fault.to_string(),
            Err(_) => "it panicked".to_owned(),
        };
        let records = [Record::Failed(Failed { cause, denied: false })];
        // If recording fails, there is no other place to report it.
        let _ = append_fault(errand.home().sessions(), Some(errand.event()), &records);
        errand.answer().clone()
    }
}

impl Guard {
    pub fn of_run(root: &Path, top: &Path, run_dir: &Path) -> Result<Self, SettingsError> {
        let home = HookProject::of_run(root, top, run_dir);
        let settings = home.settings()?;
        let rules = settings.rules();
        Ok(Self { home, settings, rules, read: None, started: Mutex::default() })
    }

    /// A guard that allows only reading.
    pub fn of_looking(looking: ReadOnlyReason, root: &Path, top: &Path, run_dir: &Path) -> Result<Self, SettingsError> {
        let mut guard = Self::of_run(root, top, run_dir)?;
        guard.rules.insert(0, read_only_rule(looking));
        Ok(guard)
    }

    /// For a client that reads files without asking: what a session has read is unknown, so no edit can be refused for it.
    #[must_use]
    pub fn without_read_memory(mut self) -> Self {
        self.settings.config.policy.off.push(READ_BEFORE_EDIT.to_owned());
        self
    }

    /// Records a call that was refused before policy could judge it. The refusal stands even if it cannot be recorded.
    pub fn record_refusal(&self, bytes: &[u8], rule: &str, reason: &str) {
        let Ok(input) = HookInput::parse(bytes) else { return };
        let Some(call) = input.call() else { return };
        let record = Record::Decided {
            tool: call.tool.to_string(),
            id: call.id.as_deref().map(str::to_owned),
            verdict: PolicyVerdict::Deny,
            rule: Some(rule.to_owned()),
            place: None,
            about: None,
            reason: reason.to_owned(),
            needs_human: false,
        };
        let response = Response { records: vec![record], ..Response::default() };
        let _ = SessionLog::new(&self.home, &input.common.session).keep(&input, &response);
    }

    /// Sets the agent's workspace: commands after a tool run there, and files are looked up there.
    pub(crate) fn works_in(&mut self, place: &Place) {
        self.home.inside.clone_from(&place.inside);
        self.home.tree = Some(place.tree.clone());
        self.home.temp = place.env.set.iter().rfind(|(name, _)| name == "TMPDIR").map(|(_, folder)| folder.into());
        // Without a view, the agent sees its workspace at a different path.
        if place.cwd != self.home.root {
            (self.home.root, self.home.top) = (place.cwd.clone(), place.tree.clone());
        }
    }

    /// Sets the turn that the next events belong to.
    pub fn begin_turn(&mut self, turn: TurnOf) {
        self.home.turn = Some(turn);
    }

    /// Whether one of our hooks saw the session start.
    pub fn saw_the_start_of(&self, session: &str) -> bool {
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        if !started.contains(session) && SessionLog::new(&self.home, session).has_started() {
            started.insert(session.to_owned());
        }
        started.contains(session)
    }

    /// The calls of a session that our hook processes judged since the last call of this function.
    pub fn judged_in(&mut self, session: &str) -> Vec<String> {
        let from = self.read.take().filter(|(of, _)| of == session).map_or(0, |(_, at)| at);
        // If the records cannot be read, no call counts as judged.
        let (calls, at) = SessionLog::new(&self.home, session).judged(from).unwrap_or_default();
        self.read = Some((session.to_owned(), at));
        calls
    }

    /// Records that a hook process gave no answer: the client denied the call, and the user should know.
    pub fn process_failed(&self, cause: &str) {
        let records = [Record::Failed(Failed { cause: cause.to_owned(), denied: true })];
        // The denial stands even if it cannot be recorded.
        let _ = append_fault(self.home.sessions(), Some("PreToolUse"), &records);
    }

    /// Judges one hook input.
    pub fn judge(&self, bytes: &[u8], run_dir: &Path) -> Judgement {
        let judged = catch_unwind(AssertUnwindSafe(|| self.respond(bytes, run_dir)));
        let (answered, call) = match judged {
            Ok(Ok(judged)) => judged,
            Ok(Err(fault)) => (Answered::Now(Box::new(self.failed(bytes, &fault.to_string()))), None),
            Err(_) => (Answered::Now(Box::new(self.failed(bytes, "it panicked"))), None),
        };
        let (answer, pending) = match answered {
            Answered::Now(response) => (response.answer, None),
            Answered::After(errand) => (errand.answer().clone(), Some(Pending(errand))),
        };
        let ends_turn = match &answer {
            Answer::EndTurn { reason } => Some(reason.clone()),
            Answer::Silent
            | Answer::ToolUse(_)
            | Answer::PermissionRequest(_)
            | Answer::Context { .. }
            | Answer::Block { .. }
            | Answer::Refuse { .. }
            | Answer::Tell { .. } => None,
        };
        Judgement { answer, call, ends_turn, pending }
    }

    fn respond(&self, bytes: &[u8], run_dir: &Path) -> Result<(Answered, Option<String>), Fault> {
        let input = HookInput::parse(bytes)?;
        let story = StoryFile::at(run_dir);
        let config = &self.settings.config;
        let court = EventJudge { home: &self.home, mode: Mode::Run, config, rules: &self.rules, story: &story, gate: None };
        let answered = court.answer(&input, &mut Signals::none)?;
        // Only calls that have not run yet are judged.
        let call = match &input.event {
            HookEvent::PreToolUse(call) => call.id.as_deref().map(str::to_owned),
            _ => None,
        };
        Ok((answered, call))
    }

    fn failed(&self, bytes: &[u8], cause: &str) -> Response {
        let event = event_in(bytes);
        let faults = self.home.sessions().join(FAULTS).display().to_string();
        let response = fail(event.as_deref(), Mode::Run, OnFailure::Deny, &Cause { text: cause, kept: &faults });
        // The call is denied even if the fault cannot be recorded.
        let _ = append_fault(self.home.sessions(), event.as_deref(), &response.records);
        response
    }
}
