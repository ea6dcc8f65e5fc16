//! A run on disk and the information in its journal.

use std::path::PathBuf;

use verdone_core::base::id::RunId;
use verdone_core::engine::run::{State, apply};
use verdone_core::journal::event::partial::kind;
use verdone_core::journal::event::{Event, Recorded};
use verdone_core::journal::view::{Brief, RunView};

use super::inbox::Inbox;
use super::{JournalError, JournalReader, reader};

/// A run on disk. Its journal may be long, so it is read only on demand.
#[derive(Debug, Clone)]
pub struct StoredRun {
    pub id: RunId,
    pub dir: PathBuf,
}

impl StoredRun {
    pub fn journal(&self) -> PathBuf {
        self.dir.join("journal.jsonl")
    }

    /// What a detached run printed after its start: notices, and the error that ended it.
    pub fn output(&self) -> PathBuf {
        self.dir.join("output.txt")
    }

    /// The whole run, and a description of damage at the journal's end, if any.
    pub fn view(&self) -> Result<(RunView, Option<String>), JournalError> {
        let mut reader = JournalReader::open(&self.journal())?;
        let mut view = RunView::default();
        for recorded in reader.by_ref() {
            view.apply(&recorded?);
        }
        Ok((view, reader.damage()?))
    }

    /// The same view without details of ended attempts: far less to read and to hold in memory.
    pub fn brief_view(&self) -> Result<(RunView, Option<String>), JournalError> {
        let mut reader = JournalReader::open(&self.journal())?;
        let mut brief = Brief::default();
        while let Some(line) = reader.line()? {
            if brief.push(line).is_none() {
                return self.view();
            }
        }
        match brief.finish() {
            Some(view) => Ok((view, reader.damage()?)),
            None => self.view(),
        }
    }

    /// Adds the requests that the run has not recorded yet.
    pub fn add_pending_requests(&self, view: &mut RunView) {
        view.ask_all(&Inbox::new(&self.dir).pending());
    }

    /// Whether it is a session loop. If the beginning is unreadable, it counts as a run.
    pub fn is_loop(&self) -> bool {
        let begin = JournalReader::open(&self.journal()).ok().and_then(|mut reader| reader.next()?.ok());
        matches!(begin, Some(Recorded { event: Event::RunStarted { session: Some(_), .. }, .. }))
    }

    /// Whether it is a run of this plan. A run whose beginning is unreadable is a run of no plan.
    pub fn is_run_of(&self, plan: &str) -> bool {
        let begin = JournalReader::open(&self.journal()).ok().and_then(|mut reader| reader.next()?.ok());
        matches!(begin, Some(Recorded { event: Event::RunStarted { plan: of, session: None, .. }, .. }) if of == plan)
    }

    /// The state of the run: its phase and last attempt, without earlier history.
    pub fn last_state(&self) -> Result<State, JournalError> {
        let mut began = State::default();
        self.beginning()?.iter().for_each(|recorded| apply(&mut began, recorded));
        let state = self.find_from_end(|events| {
            let begins = |recorded: &Recorded| matches!(recorded.event, Event::RunStarted { .. } | Event::StorySelected { .. });
            let at = events.iter().rposition(begins)?;
            let mut state = State { run: Some(self.id.clone()), started_at: began.started_at, ..State::default() };
            events[at..].iter().for_each(|recorded| apply(&mut state, recorded));
            Some(state)
        })?;
        Ok(state.unwrap_or_default())
    }

    /// Whether unreadable lines were removed from the journal. The original is stored next to it.
    pub fn was_repaired(&self) -> bool {
        self.dir.join("journal-broken-1.jsonl").exists()
    }

    /// Whether the journal has a line of this kind for which `look` returns true.
    pub fn has(&self, name: &[u8], look: impl Fn(&[u8]) -> bool) -> Result<bool, JournalError> {
        let mut reader = JournalReader::open(&self.journal())?;
        while let Some(line) = reader.line()? {
            if kind(line) == Some(name) && look(line) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The events before the first story was selected.
    pub fn beginning(&self) -> Result<Vec<Recorded>, JournalError> {
        let before = |recorded: &Result<Recorded, JournalError>| {
            !matches!(recorded, Ok(Recorded { event: Event::StorySelected { .. }, .. }))
        };
        JournalReader::open(&self.journal())?.take_while(before).collect()
    }

    /// The run's branch and the user's. `None` for runs of the first edition, which worked on the user's branch.
    pub fn branches(&self) -> Result<Option<(String, Option<String>)>, JournalError> {
        Ok(self.beginning()?.into_iter().find_map(|line| match line.event {
            Event::RunStarted { branch, target, .. } => {
                let own = branch.filter(|branch| target.is_some() || branch.starts_with("verdone/"))?;
                Some((own, target))
            }
            _ => None,
        }))
    }

    /// Reads more and more of the journal's end until `find` returns something.
    pub fn find_from_end<T>(&self, find: impl Fn(&[Recorded]) -> Option<T>) -> Result<Option<T>, JournalError> {
        reader::find_from_end(&self.journal(), |events, _| find(events))
    }
}
