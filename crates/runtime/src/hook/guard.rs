//! The guard of a run, in the run's own process: the client asks over its pipe, and gets the answer that `verdone hook` would give.
//!
//! The settings are those of the run's start. A panic or anything that cannot be judged denies, and is kept where the run shows it.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use verdone_core::hook::{Answer, Cause, Failed, HookEvent, HookInput, Record, Response, event_in, fail};
use verdone_core::policy::{Looking, Mode, OnFailure, Rule, look_only};

use super::Fault;
use super::after_tool::Company;
use super::attempt::TurnOf;
use super::court::{Answered, Court, Errand};
use super::home::{FileSettings, Home};
use super::session::{FAULTS, Session, append_fault};
use super::story::StoryFile;
use crate::process::signal::Signals;
use crate::project::config_file::SettingsError;
use crate::workspace::Place;

/// Judges for a run.
#[derive(Debug)]
pub struct Guard {
    home: Home,
    settings: FileSettings,
    rules: Vec<Rule>,
    /// How much of which session's records has been looked at for judged calls.
    read: Option<(String, u64)>,
    /// Sessions whose start was seen. The agent can delete their files later.
    started: Mutex<BTreeSet<String>>,
}

/// What was said about one event.
#[derive(Debug)]
pub struct Judgement {
    pub answer: Answer,
    /// The id of the call, where it was judged.
    pub call: Option<String>,
    /// The turn has to end, for this reason.
    pub ends_turn: Option<String>,
    /// The answer has to wait for this.
    pub pending: Option<Pending>,
}

/// Commands of the user's that are due after a tool. To be run beside everything else: they may take most of a minute.
#[derive(Debug)]
pub struct Pending(Box<Errand>);

impl Pending {
    /// Runs them. The answer is one whatever happens: the tool has run already, so that nothing is denied by it.
    pub fn run(self, signals: &Signals) -> Answer {
        let errand = &self.0;
        let run = catch_unwind(AssertUnwindSafe(|| errand.run(signals, Company::Others)));
        let cause = match run {
            Ok(Ok(response)) => return response.answer,
            Ok(Err(fault)) => fault.to_string(),
            Err(_) => "it panicked".to_owned(),
        };
        let records = [Record::Failed(Failed { cause, denied: false })];
        // There is nobody else to tell.
        let _ = append_fault(errand.home().sessions(), Some(errand.event()), &records);
        errand.answer().clone()
    }
}

impl Guard {
    pub fn of_run(root: &Path, top: &Path, run_dir: &Path) -> Result<Self, SettingsError> {
        let home = Home::of_run(root, top, run_dir);
        let settings = home.settings()?;
        let rules = settings.rules();
        Ok(Self { home, settings, rules, read: None, started: Mutex::default() })
    }

    /// The same for somebody who may only look.
    pub fn of_looking(looking: Looking, root: &Path, top: &Path, run_dir: &Path) -> Result<Self, SettingsError> {
        let mut guard = Self::of_run(root, top, run_dir)?;
        guard.rules.insert(0, look_only(looking));
        Ok(guard)
    }

    /// The agent works in this workspace: commands that are due after a tool run there, and files are looked up there.
    pub(crate) fn works_in(&mut self, place: &Place) {
        self.home.inside.clone_from(&place.inside);
        self.home.tree = Some(place.tree.clone());
        self.home.temp = place.env.set.iter().rfind(|(name, _)| name == "TMPDIR").map(|(_, folder)| folder.into());
        // Without a view the agent knows its workspace by another path.
        if place.cwd != self.home.root {
            (self.home.root, self.home.top) = (place.cwd.clone(), place.tree.clone());
        }
    }

    /// Which turn the next events belong to.
    pub fn begin_turn(&mut self, turn: TurnOf) {
        self.home.turn = Some(turn);
    }

    /// Whether a session's start reached a hook of ours.
    pub fn saw_the_start_of(&self, session: &str) -> bool {
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        if !started.contains(session) && Session::of(&self.home, session).has_started() {
            started.insert(session.to_owned());
        }
        started.contains(session)
    }

    /// The calls of a session that hooks of ours judged as processes of their own, since this was last asked.
    pub fn judged_in(&mut self, session: &str) -> Vec<String> {
        let from = self.read.take().filter(|(of, _)| of == session).map_or(0, |(_, at)| at);
        // What cannot be read was judged by nobody.
        let (calls, at) = Session::of(&self.home, session).judged(from).unwrap_or_default();
        self.read = Some((session.to_owned(), at));
        calls
    }

    /// A hook that was started as a process said nothing: what it was asked about was denied by the client, and somebody has to know.
    pub fn process_failed(&self, cause: &str) {
        let records = [Record::Failed(Failed { cause: cause.to_owned(), denied: true })];
        // The denial stands without it.
        let _ = append_fault(self.home.sessions(), Some("PreToolUse"), &records);
    }

    /// Judges the input of one hook.
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
        let court = Court { home: &self.home, mode: Mode::Run, config, unreadable: None, rules: &self.rules, story: &story };
        let answered = court.answer(&input, &mut Signals::none)?;
        // Only what was asked about before it ran is judged.
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
        // A fault that cannot be kept is a denial all the same.
        let _ = append_fault(self.home.sessions(), event.as_deref(), &response.records);
        response
    }
}
