//! The journal of a loop, with the same events as a run's. The sealed copy outside the work tree is authoritative. The one in
//! `.verdone/runs/`, which all other commands read, is written from it.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use verdone_core::base::finish::Finish;
use verdone_core::base::id::{Oid, RunId};
use verdone_core::engine::run::{Phase, State, apply};
use verdone_core::journal::event::{Event, Recorded, SCHEMA_VERSION};

use crate::base::atomic::replace_for_good;
use crate::base::plain_file::{open_regular, read_regular};
use crate::store::Store;

use super::StopError;
use super::files::{LARGEST, file_error};
use super::sealed_copy::{Durable, JOURNAL, SealedCopy};

#[derive(Debug)]
pub(super) struct LoopJournal {
    sealed_copy: SealedCopy,
    name: String,
    store: Store,
    run_dir: PathBuf,
    /// All lines.
    text: Vec<u8>,
    events: Vec<Recorded>,
    state: State,
}

impl LoopJournal {
    /// An empty journal for a loop that starts.
    pub(super) fn create(sealed_copy: &SealedCopy, name: &str, store: Store, run: &RunId) -> Self {
        let (sealed_copy, name, run_dir) = (sealed_copy.clone(), name.to_owned(), store.dir(run));
        Self { sealed_copy, name, store, run_dir, text: Vec::new(), events: Vec::new(), state: State::default() }
    }

    /// The journal of a loop that holds a session. `None` if there is none.
    pub(super) fn open(sealed_copy: &SealedCopy, name: &str, root: &Path, run: &RunId) -> Result<Option<Self>, StopError> {
        let Some(text) = sealed_copy.get_bytes(name, JOURNAL)? else { return Ok(None) };
        let mut journal = Self::create(sealed_copy, name, Store::new(root), run);
        let broken = |source| StopError::Broken { path: sealed_copy.path(name, JOURNAL), source };
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            journal.apply(serde_json::from_slice(line).map_err(broken)?);
        }
        journal.text = text;
        Ok(Some(journal))
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }

    pub(super) fn run_dir(&self) -> &Path {
        &self.run_dir
    }

    pub(super) fn events(&self) -> &[Recorded] {
        &self.events
    }

    pub(super) fn append(&mut self, events: Vec<Event>) -> Result<(), StopError> {
        if events.is_empty() {
            return Ok(());
        }
        let before = self.text.len();
        let at = Timestamp::now();
        let active_ms = Some(self.elapsed_ms(at));
        for event in events {
            let recorded = Recorded { v: SCHEMA_VERSION, seq: self.events.len() as u64 + 1, at, active_ms, event };
            self.write_line(&recorded)?;
            self.apply(recorded);
        }
        self.sealed_copy.put_bytes(&self.name, JOURNAL, &self.text, Durable::Yes)?;
        self.show(before)
    }

    /// Sets the session of a loop that waited for one.
    pub(super) fn belongs_to(&mut self, session: &str) -> Result<(), StopError> {
        if self.state.session.as_deref() == Some(session) {
            return Ok(());
        }
        if let Some(Recorded { event: Event::RunStarted { session: of, .. }, .. }) = self.events.first_mut() {
            *of = Some(session.to_owned());
        }
        let events = std::mem::take(&mut self.events);
        self.text.clear();
        self.state = State::default();
        for recorded in events {
            self.write_line(&recorded)?;
            self.apply(recorded);
        }
        self.sealed_copy.put_bytes(&self.name, JOURNAL, &self.text, Durable::Yes)?;
        self.show(0)
    }

    /// Ends a loop by someone else's decision: the user's, or a limit of the gate.
    pub(super) fn end(&mut self, finish: Finish, reason: &str) -> Result<(), StopError> {
        let mut events = Vec::new();
        if matches!(self.state.phase, Phase::Stopped { .. }) {
            return Ok(());
        }
        if !matches!(self.state.phase, Phase::Stopping { .. }) {
            events.push(Event::RunStopping { finish, reason: reason.to_owned() });
        }
        let duration_ms = self.elapsed_ms(Timestamp::now());
        events.push(Event::RunStopped { finish, exit_code: finish.exit_code(), duration_ms });
        self.append(events)
    }

    pub(super) fn elapsed_ms(&self, now: Timestamp) -> u64 {
        let began = self.state.started_at.unwrap_or(now);
        u64::try_from(now.duration_since(began).as_millis()).unwrap_or(0)
    }

    /// The time of the last event.
    pub(super) fn last_at(&self) -> Option<Timestamp> {
        self.events.last().map(|recorded| recorded.at)
    }

    /// The tree when the loop started.
    pub(super) fn first_tree(&self) -> Option<&Oid> {
        self.events.iter().find_map(|recorded| match &recorded.event {
            Event::AttemptStarted { tree, .. } => tree.as_ref(),
            _ => None,
        })
    }

    /// The tree that was verified last.
    pub(super) fn last_verified(&self) -> Option<&Oid> {
        self.events.iter().rev().find_map(|recorded| match &recorded.event {
            Event::Verified(verified) => Some(&verified.report.trees.attempt),
            _ => None,
        })
    }

    /// Why the loop ended.
    pub(super) fn end_reason(&self) -> Option<String> {
        self.events.iter().rev().find_map(|recorded| match &recorded.event {
            Event::RunStopping { reason, .. } => Some(reason.clone()),
            _ => None,
        })
    }

    fn write_line(&mut self, recorded: &Recorded) -> Result<(), StopError> {
        let broken = |source| StopError::Broken { path: self.sealed_copy.path(&self.name, JOURNAL), source };
        serde_json::to_writer(&mut self.text, recorded).map_err(broken)?;
        self.text.push(b'\n');
        Ok(())
    }

    fn apply(&mut self, recorded: Recorded) {
        apply(&mut self.state, &recorded);
        self.events.push(recorded);
    }

    /// Writes the copy for others. Rewrites it if somebody changed or deleted it.
    fn show(&self, before: usize) -> Result<(), StopError> {
        let path = self.run_dir.join("journal.jsonl");
        let failed = |source| file_error(&path, source);
        self.store.hide().and_then(|()| fs::create_dir_all(&self.run_dir)).map_err(failed)?;
        let is_known = before > 0 && read_regular(&path, LARGEST).is_ok_and(|bytes| bytes == self.text[..before]);
        if !is_known {
            return replace_for_good(&path, &self.text).map_err(failed);
        }
        let append = || {
            let mut file = open_regular(&path, OpenOptions::new().append(true))?;
            file.write_all(&self.text[before..])?;
            file.sync_data()
        };
        append().map_err(failed)
    }
}
