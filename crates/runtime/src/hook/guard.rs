//! The guard of a run, in the run's own process: the client asks over its pipe, and gets the answer that `verdone hook` would give.
//!
//! The settings are those of the run's start. A panic or anything that cannot be judged denies, and is kept where the run shows it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use verdone_core::hook::{Answer, Cause, HookEvent, HookInput, Response, event_in, fail};
use verdone_core::policy::{Mode, OnFailure, Rule};

use super::Fault;
use super::attempt::TurnOf;
use super::court::Court;
use super::home::{FileSettings, Home};
use super::session::{FAULTS, Session, append_fault};
use super::story::StoryFile;
use crate::config_file::SettingsError;
use crate::signal::Signals;

/// Judges for a run.
#[derive(Debug)]
pub struct Guard {
    home: Home,
    settings: FileSettings,
    rules: Vec<Rule>,
}

/// What was said about one event.
#[derive(Debug)]
pub struct Judgement {
    pub answer: Answer,
    /// The id of the call, where it was judged.
    pub call: Option<String>,
    /// The turn has to end, for this reason.
    pub ends_turn: Option<String>,
}

impl Guard {
    pub fn of_run(root: &Path, top: &Path, run_dir: &Path) -> Result<Self, SettingsError> {
        let home = Home::of_run(root, top, run_dir);
        let settings = home.settings()?;
        let rules = settings.rules();
        Ok(Self { home, settings, rules })
    }

    /// Which turn the next events belong to.
    pub fn begin_turn(&mut self, turn: TurnOf) {
        self.home.turn = Some(turn);
    }

    /// Whether a session's start reached a hook of ours.
    pub fn saw_the_start_of(&self, session: &str) -> bool {
        Session::of(&self.home, session).has_started()
    }

    /// The calls of a session that hooks of ours judged as processes of their own.
    pub fn judged_in(&self, session: &str) -> Vec<String> {
        Session::of(&self.home, session).judged()
    }

    /// Judges the input of one hook.
    pub fn judge(&self, bytes: &[u8], run_dir: &Path, signals: &Signals) -> Judgement {
        let judged = catch_unwind(AssertUnwindSafe(|| self.respond(bytes, run_dir, signals)));
        let (response, call) = match judged {
            Ok(Ok(judged)) => judged,
            Ok(Err(fault)) => (self.failed(bytes, &fault.to_string()), None),
            Err(_) => (self.failed(bytes, "it panicked"), None),
        };
        let ends_turn = match &response.answer {
            Answer::EndTurn { reason } => Some(reason.clone()),
            Answer::Silent
            | Answer::ToolUse(_)
            | Answer::PermissionRequest(_)
            | Answer::Context { .. }
            | Answer::Block { .. }
            | Answer::Refuse { .. }
            | Answer::Tell { .. } => None,
        };
        Judgement { answer: response.answer, call, ends_turn }
    }

    fn respond(&self, bytes: &[u8], run_dir: &Path, signals: &Signals) -> Result<(Response, Option<String>), Fault> {
        let input = HookInput::parse(bytes)?;
        let story = StoryFile::at(run_dir);
        let court = Court { home: &self.home, mode: Mode::Run, config: &self.settings.config, rules: &self.rules, story: &story };
        let response = court.answer(&input, || signals.clone())?;
        // Only what was asked about before it ran is judged.
        let call = match &input.event {
            HookEvent::PreToolUse(call) => call.id.as_deref().map(str::to_owned),
            _ => None,
        };
        Ok((response, call))
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
