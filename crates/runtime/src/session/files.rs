//! The sessions of a project from the gate's point of view: their loops and the gate's small files. Next to the sessions' folders are
//! `asked.json` (who ran `verdone loop start`) and `incomplete.json` (what the last session left open). In a session's folder are
//! `tasks.jsonl`, `gate-faults`, `agents/`, and `loop.json` of a loop that has ended.

use std::fs::{self, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use verdone_core::base::id::{Oid, RunId, StoryId, encode_component};
use verdone_core::engine::run::State;
use verdone_core::engine::session::{Finding, HeldLoop, Incomplete, LOOP_VERSION, LoopStatus, MOST_FAULTS};
use verdone_core::hook::SessionFold;

use crate::base::atomic::replace_for_good;
use crate::base::plain_file::{open_regular, read_regular};
use crate::project::HOME;

use super::StopError;
use super::journal::LoopJournal;
use super::memory::Memory;
use super::sealed_copy::{self, Durable, FINDING, LOOP, SealedCopy};

const STARTING_LOOP: &str = "asked.json";
const INCOMPLETE: &str = "incomplete.json";
const TASKS: &str = "tasks.jsonl";
const FAULTS: &str = "gate-faults";
/// Enough for a plan of a hundred thousand stories.
pub(super) const LARGEST: u64 = 64 * 1024 * 1024;
/// Far more than the hook of a session's start records.
const FIRST_RECORDS: u64 = 64 * 1024;
/// How long a command that a hook saw start counts as running.
const STARTING_LOOP_COUNTS: Duration = Duration::from_mins(1);

/// The sessions of a project from the gate's point of view.
#[derive(Debug, Clone)]
pub struct Loops {
    root: PathBuf,
    sessions: PathBuf,
    sealed_copy: Option<SealedCopy>,
}

impl Loops {
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), sessions: crate::store::sessions::own_sessions(root), sealed_copy: SealedCopy::find(root) }
    }

    pub(crate) fn session(&self, id: &str) -> SessionFiles {
        let encoded = encode_component(id);
        // Lists show folder names, so accept these as well.
        let is_there =
            || self.sessions.join(id).is_dir() || self.sealed_copy.as_ref().is_some_and(|sealed_copy| sealed_copy.has(id));
        let is_name = id.contains('%') && !id.contains('/') && is_there();
        self.named(if is_name { id } else { &encoded })
    }

    /// The session with this folder name.
    pub(crate) fn named(&self, name: &str) -> SessionFiles {
        let sealed_copy = self.sealed_copy.clone().map(|sealed_copy| (sealed_copy, name.to_owned()));
        SessionFiles { root: self.root.clone(), dir: self.sessions.join(name), sealed_copy }
    }

    pub fn all(&self) -> Result<Vec<SessionLoop>, StopError> {
        let listed = crate::store::sessions::sessions(&self.sessions).map_err(|source| file_error(&self.sessions, source))?;
        let mut names: Vec<String> = listed.into_iter().map(|session| session.name).collect();
        // A session whose folder was deleted is still held.
        let kept = self.sealed_copy.as_ref().map(SealedCopy::names).unwrap_or_default();
        names.extend(kept.into_iter().filter(|name| !names.contains(name)).collect::<Vec<_>>());
        let one = |session: String| Some(SessionLoop { seen: self.named(&session).seen().transpose()?, session });
        Ok(names.into_iter().filter_map(one).collect())
    }

    /// Whether an active loop works on this plan.
    pub fn are_about(&self, plan: &Path) -> Result<bool, StopError> {
        let name = plan.display().to_string();
        let is_meant = |held: &HeldLoop| held.is_active() && held.plan.as_ref() == Some(&name);
        let waits = self.next()?.is_some_and(|seen| is_meant(&seen.held));
        Ok(waits || self.all()?.iter().any(|found| found.seen.as_ref().is_ok_and(|seen| is_meant(&seen.held))))
    }

    /// The loop of a session, ended or not.
    pub fn of_session(&self, id: &str) -> Result<Option<SeenLoop>, StopError> {
        self.session(id).seen()
    }

    /// Whether this loop holds a session or waits for one.
    pub fn hold(&self, run: &RunId) -> bool {
        let names = self.sealed_copy.as_ref().map(SealedCopy::names).unwrap_or_default();
        let all = names.iter().map(String::as_str).chain([sealed_copy::NEXT]);
        all.filter_map(|name| self.named(name).held().ok()?).any(|held| held.run == *run)
    }

    /// The loop that the next session will take.
    pub fn next(&self) -> Result<Option<SeenLoop>, StopError> {
        self.named(sealed_copy::NEXT).seen()
    }

    pub fn remove_next(&self) -> Result<(), StopError> {
        self.sealed_copy.as_ref().map_or(Ok(()), |sealed_copy| sealed_copy.remove(sealed_copy::NEXT))
    }

    /// Gives the waiting loop to a session. The rename is atomic, so only one of two starting sessions gets it.
    pub(super) fn claim(&self, session: &SessionFiles) -> Result<bool, StopError> {
        let Some((sealed_copy, name)) =
            session.sealed_copy.as_ref().filter(|(sealed_copy, _)| sealed_copy.has(sealed_copy::NEXT))
        else {
            return Ok(false);
        };
        // An unreadable loop would break the session that takes it.
        if self.named(sealed_copy::NEXT).held()?.is_none() || session.is_held() {
            return Ok(false);
        }
        sealed_copy.remove(name)?;
        sealed_copy.hand_over(name)
    }

    /// Remembers which session runs `verdone loop start`.
    pub(super) fn remember_starting_loop(&self, session: &str) {
        let asked = StartRequest { session: session.to_owned(), at: Timestamp::now() };
        // If this fails, the client's variable identifies the session.
        let _ = make(&self.sessions).and_then(|()| write(&self.sessions.join(STARTING_LOOP), &asked));
    }

    /// The session that is running `verdone loop start` right now, as seen by a hook.
    pub fn session_starting_loop(&self) -> Option<String> {
        let asked: StartRequest = read(&self.sessions.join(STARTING_LOOP)).ok()??;
        let age = Timestamp::now().duration_since(asked.at).unsigned_abs();
        (age < STARTING_LOOP_COUNTS).then_some(asked.session)
    }

    pub fn incomplete(&self) -> Option<Incomplete> {
        read(&self.sessions.join(INCOMPLETE)).ok()?
    }

    pub(super) fn keep_incomplete(&self, found: &Incomplete) -> Result<(), StopError> {
        make(&self.sessions)?;
        write(&self.sessions.join(INCOMPLETE), found)
    }

    pub fn forget_incomplete(&self) -> Result<(), StopError> {
        remove(&self.sessions.join(INCOMPLETE))
    }
}

/// The loop of one session, ended or not.
#[derive(Debug)]
pub struct SessionLoop {
    /// The name of the session's folder.
    pub session: String,
    /// An unreadable loop holds its session.
    pub seen: Result<SeenLoop, StopError>,
}

impl SessionLoop {
    pub fn holds(&self) -> bool {
        self.seen.as_ref().map_or(true, |seen| seen.held.is_active())
    }
}

/// A loop and the state from its journal.
#[derive(Debug)]
pub struct SeenLoop {
    pub held: HeldLoop,
    pub state: State,
    /// Stories added later whose commands the user has not approved.
    pub unaccepted: Vec<StoryId>,
}

/// The folder of one session.
#[derive(Debug, Clone)]
pub(crate) struct SessionFiles {
    root: PathBuf,
    pub(super) dir: PathBuf,
    /// Where its loop is stored, and its name there.
    pub(super) sealed_copy: Option<(SealedCopy, String)>,
}

impl SessionFiles {
    /// Whether there ever was a loop, judging by the files.
    pub(crate) fn has_loop(&self) -> bool {
        fs::symlink_metadata(self.dir.join(LOOP)).is_ok() || self.is_held()
    }

    /// Whether a loop holds the session.
    pub(crate) fn is_held(&self) -> bool {
        self.sealed_copy.as_ref().is_some_and(|(sealed_copy, name)| sealed_copy.has(name))
    }

    /// The loop that holds the session.
    pub(super) fn held(&self) -> Result<Option<HeldLoop>, StopError> {
        let Some((sealed_copy, name)) = &self.sealed_copy else { return Ok(None) };
        let Some(body) = sealed_copy.get_bytes(name, LOOP)? else { return Ok(None) };
        parse_loop(&sealed_copy.path(name, LOOP), &body).map(Some)
    }

    /// The same, or the last loop that ended. Anyone could write that an ended one is still active.
    pub(super) fn last(&self) -> Result<Option<HeldLoop>, StopError> {
        if let Some(held) = self.held()? {
            return Ok(Some(held));
        }
        let path = self.dir.join(LOOP);
        let ended = read_regular(&path, LARGEST).ok().and_then(|bytes| parse_loop(&path, &bytes).ok());
        Ok(ended.filter(|ended| !ended.is_active()))
    }

    /// Whether an earlier version started a loop here, which this version cannot continue. Removes that loop.
    pub(super) fn had_old_loop(&self) -> bool {
        self.sealed_copy.as_ref().is_some_and(|(sealed_copy, name)| sealed_copy.forget_old(name))
    }

    /// The last finding of the loop, ended or not.
    pub(super) fn finding(&self) -> Result<Option<Finding>, StopError> {
        let Some((sealed_copy, name)) = &self.sealed_copy else { return Ok(None) };
        let held = sealed_copy.get(name, FINDING)?;
        Ok(held.or_else(|| sealed_copy.read_sealed(&self.dir.join(FINDING), FINDING)))
    }

    pub(super) fn journal(&self, held: &HeldLoop) -> Result<Option<LoopJournal>, StopError> {
        self.sealed_copy
            .as_ref()
            .map_or(Ok(None), |(sealed_copy, name)| LoopJournal::open(sealed_copy, name, &self.root, &held.run))
    }

    /// The loop with the state from its journal.
    pub(crate) fn seen(&self) -> Result<Option<SeenLoop>, StopError> {
        let Some(held) = self.last()? else { return Ok(None) };
        let state = match self.journal(&held)? {
            Some(journal) => journal.state().clone(),
            None => state_in(&self.root, &held),
        };
        let memory = self.sealed_copy.as_ref().map_or(Ok(None), |(sealed_copy, name)| Memory::read(sealed_copy, name))?;
        let unaccepted = memory.map(|memory| memory.unaccepted()).unwrap_or_default();
        Ok(Some(SeenLoop { held, state, unaccepted }))
    }

    /// Saves the gate's counters. If a crash loses them, a session is held no longer than the limit allows. Failing to write them is an
    /// error, because a loop that cannot count would hold forever.
    pub(super) fn count(&self, held: &HeldLoop) -> Result<(), StopError> {
        let (sealed_copy, name) = self.sealed_copy.as_ref().ok_or(StopError::NoSecret)?;
        sealed_copy.put(name, LOOP, held, Durable::No)
    }

    /// Ends the loop: what is left of it moves to the session's folder, and its journal to the runs.
    pub(super) fn release(&self, held: &HeldLoop, status: LoopStatus) -> Result<(), StopError> {
        if self.root.join(HOME).is_dir() {
            let path = self.dir.join(LOOP);
            let over = HeldLoop { status, ..held.clone() };
            let text = serde_json::to_vec(&over).map_err(|source| StopError::Broken { path: path.clone(), source })?;
            self.make_folder()?;
            write_bytes(&path, &text)?;
            // Keep the last verification for as long as the files stay the same. It is only a shortcut.
            if let Some((sealed_copy, name)) = &self.sealed_copy {
                let _ = fs::copy(sealed_copy.path(name, FINDING), self.dir.join(FINDING));
            }
        }
        self.forget_loop()
    }

    /// Makes the session known, even if its hooks have recorded nothing.
    pub(super) fn make_folder(&self) -> Result<(), StopError> {
        self.dir.parent().map_or(Ok(()), make)?;
        fs::create_dir_all(&self.dir).map_err(|source| file_error(&self.dir, source))
    }

    pub(super) fn forget_loop(&self) -> Result<(), StopError> {
        self.sealed_copy.as_ref().map_or(Ok(()), |(sealed_copy, name)| sealed_copy.remove(name))
    }

    /// Counts a failure with as few dependencies as possible. Returns the number of failures in a row.
    pub(crate) fn count_fault(&self, active: bool) -> u32 {
        let count = |path: &Path| {
            open_regular(path, OpenOptions::new().append(true).create(true)).and_then(|mut file| {
                file.write_all(b".")?;
                Ok(file.metadata()?.len())
            })
        };
        // Outside the project, out of reach of whoever broke the folder.
        let outside = self.sealed_copy.as_ref().map(|(sealed_copy, name)| count(&sealed_copy.faults(name)));
        let counted = outside.filter(Result::is_ok).unwrap_or_else(|| count(&self.dir.join(FAULTS)));
        match counted {
            Ok(count) => u32::try_from(count).unwrap_or(u32::MAX),
            // If counting fails, hold the turn only once.
            Err(_) if active => MOST_FAULTS + 1,
            Err(_) => 1,
        }
    }

    pub(super) fn forget_faults(&self) {
        // A leftover file makes the gate release sooner, never later.
        let _ = fs::remove_file(self.dir.join(FAULTS));
        if let Some((sealed_copy, name)) = &self.sealed_copy {
            let _ = fs::remove_file(sealed_copy.faults(name));
        }
    }

    /// The commit at which the session started, if a hook saw it. Only the first records are read, however long the session is.
    pub(super) fn head_at_start(&self) -> Option<Oid> {
        let file = open_regular(&self.dir.join("events.jsonl"), OpenOptions::new().read(true)).ok()?;
        let mut fold = SessionFold::default();
        BufReader::new(file.take(FIRST_RECORDS)).lines().map_while(Result::ok).for_each(|line| fold.add_line(&line));
        fold.head
    }

    /// Records a task on the agent's list: created, completed or removed.
    pub(super) fn note_task(&self, task: &Task) -> Result<(), StopError> {
        let path = self.dir.join(TASKS);
        let line = serde_json::to_string(task).map_err(|source| StopError::Broken { path: path.clone(), source })?;
        self.dir.parent().map_or(Ok(()), make)?;
        let append = || {
            fs::create_dir_all(&self.dir)?;
            open_regular(&path, OpenOptions::new().append(true).create(true))?.write_all(format!("{line}\n").as_bytes())
        };
        append().map_err(|source| file_error(&path, source))
    }

    /// Open tasks in order of creation, of one subagent or all.
    pub(super) fn open_tasks(&self, agent: Option<&str>) -> Vec<String> {
        let Ok(bytes) = read_regular(&self.dir.join(TASKS), LARGEST) else { return Vec::new() };
        let mut open: Vec<Task> = Vec::new();
        for line in bytes.split(|byte| *byte == b'\n') {
            let Ok(task) = serde_json::from_slice::<Task>(line) else { continue };
            match task.open {
                true if open.iter().any(|known| known.id == task.id) => {}
                true => open.push(task),
                false => open.retain(|known| known.id != task.id),
            }
        }
        let is_meant = |task: &Task| agent.is_none_or(|agent| task.agent.as_deref() == Some(agent));
        open.into_iter().filter(is_meant).map(|task| task.subject).collect()
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Task {
    pub(super) id: String,
    #[serde(default)]
    pub(super) subject: String,
    pub(super) open: bool,
    #[serde(default)]
    pub(super) agent: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct StartRequest {
    session: String,
    at: Timestamp,
}

pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, StopError> {
    match read_regular(path, LARGEST) {
        Ok(bytes) => {
            serde_json::from_slice(&bytes).map(Some).map_err(|source| StopError::Broken { path: path.to_owned(), source })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(file_error(path, source)),
    }
}

/// Replaces a link instead of following it. The write must survive a crash, because a loop has to.
pub(super) fn write(path: &Path, value: &impl Serialize) -> Result<(), StopError> {
    let text = serde_json::to_vec(value).map_err(|source| StopError::Broken { path: path.to_owned(), source })?;
    write_bytes(path, &text)
}

fn write_bytes(path: &Path, text: &[u8]) -> Result<(), StopError> {
    replace_for_good(path, text).map_err(|source| file_error(path, source))
}

pub(super) fn remove(path: &Path) -> Result<(), StopError> {
    match fs::remove_file(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(file_error(path, source)),
    }
}

pub(super) fn make(sessions: &Path) -> Result<(), StopError> {
    crate::guard::make_sessions(sessions).map_err(|source| file_error(sessions, source))
}

pub(super) fn file_error(path: &Path, source: io::Error) -> StopError {
    StopError::File { path: path.to_owned(), source }
}

fn parse_loop(path: &Path, bytes: &[u8]) -> Result<HeldLoop, StopError> {
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let broken = |source| StopError::Broken { path: path.to_owned(), source };
    let Version { version } = serde_json::from_slice(bytes).map_err(broken)?;
    if version > LOOP_VERSION {
        return Err(StopError::Newer { path: path.to_owned(), version });
    }
    serde_json::from_slice(bytes).map_err(broken)
}

/// The state of an ended loop, from its journal among the runs.
fn state_in(root: &Path, held: &HeldLoop) -> State {
    let mut state = State::default();
    let journal = crate::store::Store::new(root).run(held.run.clone()).journal();
    if let Ok(reader) = crate::store::JournalReader::open(&journal) {
        reader.map_while(Result::ok).for_each(|recorded| verdone_core::engine::run::apply(&mut state, &recorded));
    }
    state
}
