//! Where runs live: `.verdone/runs/<run-id>/`, one directory a run, its journal the only truth.

mod given;
mod journal;
mod lock;
mod reader;
mod truth;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use verdone_core::event::light::{Light, kind, light};
use verdone_core::event::{Event, Recorded};
use verdone_core::id::{RunId, StoryId};
use verdone_core::machine::{State, apply, stash_command};
use verdone_core::verdict::StoryVerdict;
use verdone_core::view::{Brief, RunView};

use crate::atomic::write_atomically;
use crate::fault::{self, Point};
use crate::git::Git;
use crate::regular::read_regular;

use given::{Given, is_id};

pub use journal::{Journal, JournalError, When};
pub use lock::{Holder, LockError, RunLock};
pub use reader::{JournalReader, read_journal, readable_lines};

/// All runs of a project.
#[derive(Debug, Clone)]
pub struct Store {
    runs: PathBuf,
}

/// A run that is on disk. Its journal may be long: nothing of it is read before it is asked for.
#[derive(Debug)]
pub struct StoredRun {
    pub id: RunId,
    pub dir: PathBuf,
}

impl StoredRun {
    pub fn journal(&self) -> PathBuf {
        self.dir.join("journal.jsonl")
    }

    /// The whole run, and what is wrong with the journal's end, where something is.
    pub fn view(&self) -> Result<(RunView, Option<String>), JournalError> {
        let mut reader = JournalReader::open(&self.journal())?;
        let mut view = RunView::default();
        for recorded in reader.by_ref() {
            view.apply(&recorded?);
        }
        Ok((view, reader.damage()?))
    }

    /// The same view without the details of attempts that have ended: much less to read and to keep.
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

    /// Where the run stands: its phase, the attempt that was begun last, and the user's changes that are set aside. What led there
    /// is not part of it.
    pub fn last_state(&self) -> Result<State, JournalError> {
        let mut began = State::default();
        self.beginning()?.iter().for_each(|recorded| apply(&mut began, recorded));
        let state = self.find_from_end(|events| {
            let begins = |recorded: &Recorded| matches!(recorded.event, Event::RunStarted { .. } | Event::StorySelected { .. });
            let at = events.iter().rposition(begins)?;
            let (started_at, aside) = (began.started_at, began.aside.clone());
            let mut state = State { run: Some(self.id.clone()), started_at, aside, ..State::default() };
            events[at..].iter().for_each(|recorded| apply(&mut state, recorded));
            Some(state)
        })?;
        Ok(state.unwrap_or_default())
    }

    /// Whether the run could not put the user's changes back: then they are nowhere but under its ref.
    pub fn owes_changes(&self) -> Result<bool, JournalError> {
        match self.settled_changes()? {
            Some(kept) => Ok(kept),
            None => Ok(self.set_changes_aside()?),
        }
    }

    /// Whether the journal may have said that the user's changes were set aside, and does not any more.
    pub fn forgot_changes(&self) -> Result<bool, JournalError> {
        Ok(self.was_mended() && !self.set_changes_aside()? && self.settled_changes()?.is_none())
    }

    /// Whether the journal has a hole: lines of it could not be read, and the whole lies beside it.
    pub fn was_mended(&self) -> bool {
        self.dir.join("journal-broken-1.jsonl").exists()
    }

    fn set_changes_aside(&self) -> Result<bool, JournalError> {
        Ok(self.beginning()?.iter().any(|recorded| matches!(recorded.event, Event::ChangesSetAside { .. })))
    }

    /// What became of the user's changes, as far as the journal says: whether they are still only kept.
    fn settled_changes(&self) -> Result<Option<bool>, JournalError> {
        let settled = |events: &[Recorded]| {
            events.iter().rev().find_map(|recorded| match recorded.event {
                Event::ChangesKept { .. } => Some(true),
                Event::ChangesPutBack { .. } => Some(false),
                _ => None,
            })
        };
        self.find_from_end(settled)
    }

    /// Whether a line of this kind is in the journal, by what `look` says about the line itself.
    pub fn has(&self, name: &[u8], look: impl Fn(&[u8]) -> bool) -> Result<bool, JournalError> {
        let mut reader = JournalReader::open(&self.journal())?;
        while let Some(line) = reader.line()? {
            if kind(line) == Some(name) && look(line) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What happened before the first story was chosen.
    pub fn beginning(&self) -> Result<Vec<Recorded>, JournalError> {
        let before = |recorded: &Result<Recorded, JournalError>| {
            !matches!(recorded, Ok(Recorded { event: Event::StorySelected { .. }, .. }))
        };
        JournalReader::open(&self.journal())?.take_while(before).collect()
    }

    /// Looks at more and more of the journal's end until `find` finds something in it.
    pub fn find_from_end<T>(&self, find: impl Fn(&[Recorded]) -> Option<T>) -> Result<Option<T>, JournalError> {
        reader::find_from_end(&self.journal(), |events, _| find(events))
    }
}

impl Store {
    /// The store of the project whose `.verdone/` lies in `root`.
    pub fn of(root: &Path) -> Self {
        Self { runs: root.join(".verdone").join("runs") }
    }

    /// The directory of all runs.
    pub fn path(&self) -> &Path {
        &self.runs
    }

    pub fn dir(&self, run: &RunId) -> PathBuf {
        self.runs.join(run.as_str())
    }

    /// Makes the runs directory ignore itself, so that it never shows up in the user's git status.
    pub fn hide(&self) -> io::Result<()> {
        let ignore = self.runs.join(".gitignore");
        if read_regular(&ignore, 2).is_ok_and(|bytes| bytes == b"*\n") {
            return Ok(());
        }
        fs::create_dir_all(&self.runs)?;
        write_atomically(&ignore, b"*\n")
    }

    /// Makes the directory of a new run. Its id is new for the whole repository: linked work trees share its refs.
    pub fn create(&self, common_dir: &Path, now: Timestamp) -> io::Result<(RunId, PathBuf)> {
        self.hide()?;
        let mut given = Given::take(common_dir)?;
        let (id, dir) = self.make_dir(now, given.last(now).max(self.ids()?.pop()).as_ref())?;
        given.remember(&id)?;
        Ok((id, dir))
    }

    fn make_dir(&self, now: Timestamp, last: Option<&RunId>) -> io::Result<(RunId, PathBuf)> {
        loop {
            let id = new_id(now, last)?;
            let dir = self.dir(&id);
            fault::point(Point::RunDir)?;
            match fs::create_dir(&dir) {
                Ok(()) => {
                    fault::pass(Point::RunDirMade);
                    return Ok((id, dir));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Names of everything that looks like a run's directory, with a journal or without.
    pub fn directories(&self) -> io::Result<BTreeSet<OsString>> {
        let mut names = BTreeSet::new();
        for entry in fs::read_dir(&self.runs)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                names.insert(entry.file_name());
            }
        }
        Ok(names)
    }

    /// Moves directories that are not among the `known` ones into `aside`: only a run of ours makes one, and others would pass
    /// for evidence. Answers with their names.
    pub fn put_back(&self, known: &BTreeSet<OsString>, aside: &Path) -> io::Result<Vec<String>> {
        let mut moved = Vec::new();
        for name in self.directories()?.difference(known) {
            fs::create_dir_all(aside)?;
            // Whatever its name is, its new place is ours to choose.
            let place = tempfile::Builder::new().prefix("run-").tempdir_in(aside)?.keep();
            fs::rename(self.runs.join(name), place)?;
            moved.push(format!(".verdone/runs/{}", name.display()));
        }
        Ok(moved)
    }

    /// Ids of all runs, oldest first. A folder of another name is none of ours, whatever is in it.
    pub fn ids(&self) -> io::Result<Vec<RunId>> {
        let entries = match fs::read_dir(&self.runs) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut ids = Vec::new();
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_dir()
                && let Ok(name) = entry.file_name().into_string()
                && is_id(&name)
                && fs::symlink_metadata(entry.path().join("journal.jsonl")).is_ok_and(|meta| meta.is_file())
            {
                ids.push(RunId(name));
            }
        }
        ids.sort();
        Ok(ids)
    }

    /// Whether there is something of this run, with a journal or without.
    pub fn has(&self, run: &RunId) -> bool {
        is_id(run.as_str()) && fs::symlink_metadata(self.dir(run)).is_ok()
    }

    pub fn run(&self, id: RunId) -> StoredRun {
        StoredRun { dir: self.dir(&id), id }
    }

    /// The run that was started last.
    pub fn latest(&self) -> Result<Option<StoredRun>, JournalError> {
        let mut ids = self.ids().map_err(|source| JournalError::Io { path: self.runs.clone(), source })?;
        Ok(ids.pop().map(|id| self.run(id)))
    }
}

/// The runs that could not put the user's changes back, and what brings each of them back by hand. Told until the run's ref is gone.
pub fn owed(git: &Git, store: &Store) -> Result<Vec<(RunId, String)>, JournalError> {
    let ids = store.ids().map_err(|source| JournalError::Io { path: store.runs.clone(), source })?;
    let mut owed = Vec::new();
    for stored in ids.into_iter().map(|id| store.run(id)) {
        // A broken journal of an old run is no reason to say nothing about the others.
        let keeps = stored.set_changes_aside().unwrap_or(false) && stored.owes_changes().unwrap_or(false);
        if keeps && let Ok(Some(stash)) = git.stash_of(&stored.id) {
            owed.push((stored.id, stash_command(&stash)));
        }
    }
    Ok(owed)
}

/// What the journals know about a plan's stories: the best verdict of each that a run committed.
pub fn proven(store: &Store, plan: &str) -> Result<BTreeMap<StoryId, StoryVerdict>, JournalError> {
    let mut proven = BTreeMap::new();
    for id in store.ids().map_err(|source| JournalError::Io { path: store.runs.clone(), source })? {
        let mut of_plan = false;
        let mut committed = BTreeMap::new();
        let mut reader = JournalReader::open(&store.run(id).journal())?;
        // Every journal of the project is read at every start, so nothing is parsed that is not about this.
        while let Some(line) = reader.line()? {
            let seen = match kind(line) {
                Some(b"committed") => light(line),
                Some(b"run_started") | None => None,
                Some(_) => continue,
            };
            let event = match seen {
                Some(Light::Counted(recorded)) => recorded.event,
                Some(Light::Nothing) | None => match reader.event() {
                    Ok(Some(recorded)) => recorded.event,
                    Ok(None) => break,
                    // An old run with a broken line must not stop a new one; the line proves nothing.
                    Err(JournalError::Broken { .. }) => continue,
                    Err(error @ (JournalError::Io { .. } | JournalError::Newer { .. })) => return Err(error),
                },
            };
            if let Event::RunStarted { plan: of, .. } = &event {
                of_plan |= of == plan;
            } else if let Event::Committed { place, verdict, .. } = event {
                keep_best(&mut committed, place.story, verdict);
            }
        }
        if of_plan {
            for (story, verdict) in committed {
                keep_best(&mut proven, story, verdict);
            }
        }
    }
    Ok(proven)
}

fn keep_best(known: &mut BTreeMap<StoryId, StoryVerdict>, story: StoryId, verdict: StoryVerdict) {
    let best = known.entry(story).or_insert(verdict);
    *best = (*best).max(verdict);
}

/// Sortable by start time; the last part tells apart runs of the same second. Always after the last run, whatever the clock says:
/// recovery and undo look at the latest one.
fn new_id(now: Timestamp, last: Option<&RunId>) -> io::Result<RunId> {
    let mut random = [0_u8; 2];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    let time = now.strftime("%Y%m%d-%H%M%S");
    // Half of the numbers are left for those who come later.
    random[0] &= 0x7f;
    let id = RunId(format!("{time}-{}", verdone_core::id::hex(&random)));
    match last {
        Some(last) if *last >= id => Ok(after(last).unwrap_or(id)),
        Some(_) | None => Ok(id),
    }
}

fn after(last: &RunId) -> Option<RunId> {
    let (time, number) = last.as_str().rsplit_once('-')?;
    let next = u16::from_str_radix(number, 16).ok()?.checked_add(1)?;
    Some(RunId(format!("{time}-{next:04x}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use verdone_core::check::{CheckOrigin, CheckOutcome, CheckRun, CommandSpec};
    use verdone_core::event::{Checkpoint, Place, VerifyOutcome};
    use verdone_core::evidence::Evidence;
    use verdone_core::id::Oid;
    use verdone_core::machine::Phase;
    use verdone_core::verdict::Red;

    fn place(story: &str) -> Place {
        Place { story: StoryId::from(story), attempt: 1, turn: 1 }
    }

    fn started(plan: &str) -> Event {
        let text = |text: &str| text.to_owned();
        Event::RunStarted {
            run: RunId::from("r"),
            version: text("0"),
            plan: text(plan),
            format: text("plan_md"),
            agent: text("agent"),
            mode: text("building"),
            stories: 9,
            open: 9,
            branch: None,
            head: None,
            frozen: text(""),
            max_iterations: 0,
            unverified: false,
        }
    }

    fn attempt(story: &str, verdict: StoryVerdict) -> Vec<Event> {
        let (place, tree) = (place(story), Oid::from("tree"));
        let checkpoint = Checkpoint { id: Oid::from(story), head: None, branch: None };
        let title = "Title".to_owned();
        let (commit, base) = (Oid::from("commit"), None);
        vec![
            Event::StorySelected { iteration: 1, place: place.clone(), title, number: 1, of: 9, open: 9 },
            Event::Checkpointed { place: place.clone(), checkpoint },
            Event::RedChecked { place: place.clone(), red: Red::Red, runs: vec![check(&format!("red {story}"))] },
            Event::TurnStarted { place: place.clone() },
            Event::Verified {
                place: place.clone(),
                outcome: VerifyOutcome::Passed,
                tree: Some(tree.clone()),
                changed: 1,
                runs: vec![check(story)],
                reason: None,
                restored: Vec::new(),
                debris: Vec::new(),
                left_out: Vec::new(),
                refs_moved: Vec::new(),
            },
            Event::CommitStarted { place: place.clone(), tree: tree.clone(), verdict },
            Event::Committed { place, commit, tree, verdict, base, files: 1, noted: true },
        ]
    }

    fn check(digest: &str) -> CheckRun {
        CheckRun {
            name: "tests".to_owned(),
            origin: CheckOrigin::Story,
            command: CommandSpec::Shell("true".to_owned()),
            outcome: CheckOutcome::Passed,
            duration_ms: 1,
            output_digest: digest.to_owned(),
            output: None,
            tail: String::new(),
        }
    }

    /// The evidence of the commit that is being made.
    fn evidence(state: &State) -> Option<Evidence> {
        let (Phase::Committing { tree, verdict }, Some(attempt)) = (&state.phase, &state.attempt) else { return None };
        Some(Evidence::of(state, attempt, *verdict, tree, &attempt.proof))
    }

    fn run_of(store: &Store, events: Vec<Event>) -> StoredRun {
        let (id, dir) = store.create(&store.runs, Timestamp::UNIX_EPOCH).unwrap();
        let when = When { at: Timestamp::UNIX_EPOCH, active_ms: Some(7) };
        let mut events = events;
        if let Some(Event::RunStarted { run, .. }) = events.first_mut() {
            *run = id.clone();
        }
        Journal::create(&dir).unwrap().append(events, when).unwrap();
        store.run(id)
    }

    fn set_aside() -> Event {
        let checkpoint = Checkpoint { id: Oid::from("all"), head: None, branch: None };
        let clean = Checkpoint { id: Oid::from("clean"), ..checkpoint.clone() };
        Event::ChangesSetAside { checkpoint, clean, stash: Oid::from("stash"), files: vec!["mine".to_owned()] }
    }

    #[test]
    fn where_a_run_stands_is_known_from_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::of(dir.path());
        let stories: Vec<String> = (0..200).map(|n| format!("US-{n}")).collect();
        let mut events = vec![started("plan.md"), set_aside()];
        for story in &stories {
            events.extend(attempt(story, StoryVerdict::Verified));
        }
        events.push(Event::ChangesPutBack { files: 1 });
        let mut committing = 0;
        for cut in (0..=9).chain([900]).chain(events.len() - 9..=events.len()) {
            let run = run_of(&store, events[..cut].to_vec());
            let mut whole = State::default();
            read_journal(&run.journal()).unwrap().0.iter().for_each(|recorded| apply(&mut whole, recorded));
            let found = run.last_state().unwrap();
            assert_eq!((&found.phase, &found.attempt), (&whole.phase, &whole.attempt), "{cut}");
            assert_eq!(found.aside, whole.aside, "{cut}: what the user is owed is never forgotten");
            assert_eq!(evidence(&found), evidence(&whole), "{cut}: a commit names the digest of this");
            committing += usize::from(evidence(&whole).is_some_and(|found| !found.before.is_empty() && !found.after.is_empty()));
            let (brief, damage) = run.brief_view().unwrap();
            let whole = run.view().unwrap().0;
            assert_eq!((brief.phase, brief.counts, brief.current, damage), (whole.phase, whole.counts, whole.current, None));
        }
        assert!(committing >= 2, "a first and a last commit was being made");
    }

    #[test]
    fn what_is_proven_is_the_best_that_a_run_of_the_plan_committed() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::of(dir.path());
        let run = |plan: &str, attempts: Vec<Vec<Event>>| {
            run_of(&store, std::iter::once(started(plan)).chain(attempts.into_iter().flatten()).collect())
        };
        run("plan.md", vec![attempt("A", StoryVerdict::Verified), attempt("B", StoryVerdict::Unproven)]);
        run("plan.md", vec![attempt("A", StoryVerdict::Unverified), attempt("B", StoryVerdict::Verified)]);
        run("other.md", vec![attempt("C", StoryVerdict::Verified)]);
        let odd = run("plan.md", vec![attempt("D", StoryVerdict::Unproven)]).journal();
        let spaced = fs::read_to_string(&odd).unwrap().replace("{\"v\":1,", "{ \"v\" : 1, ");
        fs::write(&odd, spaced).unwrap();
        let expected = [("A", StoryVerdict::Verified), ("B", StoryVerdict::Verified), ("D", StoryVerdict::Unproven)]
            .map(|(id, verdict)| (StoryId::from(id), verdict));
        assert_eq!(proven(&store, "plan.md").unwrap(), BTreeMap::from(expected));
        assert!(proven(&store, "none.md").unwrap().is_empty());
    }

    #[test]
    fn a_new_run_is_always_the_latest() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::of(dir.path());
        let noon: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
        let before: Timestamp = "2026-01-01T11:00:00Z".parse().unwrap();
        for now in [noon, noon, before, noon, noon] {
            let (id, run_dir) = store.create(dir.path(), now).unwrap();
            Journal::create(&run_dir).unwrap();
            assert_eq!(store.latest().unwrap().unwrap().id, id);
        }
    }

    #[test]
    fn work_trees_of_one_repository_never_give_the_same_id() {
        let repository = tempfile::tempdir().unwrap();
        let trees = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let noon: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
        let before: Timestamp = "2026-01-01T11:00:00Z".parse().unwrap();
        let mut seen = BTreeSet::new();
        for now in [noon, noon, before, noon, before] {
            let ids = std::thread::scope(|scope| {
                let starts = trees.each_ref().map(|tree| scope.spawn(|| Store::of(tree.path()).create(repository.path(), now)));
                starts.map(|start| start.join().unwrap().unwrap().0)
            });
            for id in ids {
                assert!(seen.insert(id.clone()), "{id} was given twice");
            }
        }
    }

    #[test]
    fn what_others_wrote_where_the_last_id_is_kept_does_no_harm() {
        let noon: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
        for text in ["", "garbage", "../../x", "99999999-999999-7fff", "20260101-120000", "\u{1b}[2J"] {
            let dir = tempfile::tempdir().unwrap();
            fs::write(dir.path().join("verdone-last-run"), text).unwrap();
            let (id, _) = Store::of(dir.path()).create(dir.path(), noon).unwrap();
            assert!(id.as_str().starts_with("20260101-120000-"), "{text:?} gave {id}");
        }
    }
}
