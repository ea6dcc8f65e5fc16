//! One verification for the gate: started as a process of its own that outlives the hook, waited for as long as the client has
//! patience, answered from its verdict where the tree and the checks are the same.
//!
//! The folder holds `request.json`, the verdict (`verdict.json`, or `committed.json` where a commit was asked for) and `verifying.lock`,
//! which the worker has locked as long as it lives. Requests and verdicts carry a seal: one without it counts as not there.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use verdone_core::check::{Check, CheckRun, GateSettings};
use verdone_core::config::Config;
use verdone_core::id::{Oid, StoryId, digest};
use verdone_core::proof::AsBefore;
use verdone_core::span::Span;
use verdone_core::tamper::{Alarm, AlarmKind};

use crate::clean_tree::CleanSettings;
use crate::process::start_detached;
use crate::regular::{open_regular, read_regular};
use crate::seal::Seal;
use crate::signal::Signals;

use super::alarms::{AlarmAsk, sight_of};
use super::commit::{CommitAsk, Committed};
use super::files::{LARGEST, file_error, write_bytes};
use super::same::SameAsk;
use super::worker::ARGUMENT;
use super::{StopError, tree};

const REQUEST: &str = "request.json";
/// Two questions can be asked about one tree in turn, and neither takes the answer of the other away.
const VERDICT: &str = "verdict.json";
const COMMITTED: &str = "committed.json";
pub(super) const LOCK: &str = "verifying.lock";
/// How long a worker whose tree is out of date gets to end its checks.
pub(super) const PATIENCE: Duration = Duration::from_secs(8);
pub(super) const NAP: Duration = Duration::from_millis(10);
const LONGEST_NAP: Duration = Duration::from_millis(100);

/// What is to be verified.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Ask {
    pub(super) root: PathBuf,
    pub(super) top: PathBuf,
    /// Files that are ours and no part of the tree.
    pub(super) ours: Vec<PathBuf>,
    pub(super) tree: String,
    pub(super) checks: Vec<Check>,
    pub(super) deadline: Span,
    pub(super) grace: Span,
    pub(super) output_bytes: u64,
    /// How gates run together, and where those run that want a clean tree.
    pub(super) gates: GateSettings,
    pub(super) clean: CleanSettings,
    pub(super) largest_file: u64,
    pub(super) commit: Option<CommitAsk>,
    /// What the work is compared with, when it is green.
    #[serde(default)]
    pub(super) alarms: Option<AlarmAsk>,
    /// Own checks of stories, to be asked once more as they were.
    #[serde(default)]
    pub(super) same: Vec<SameAsk>,
    /// The checks of the story that comes next, to be seen red before anybody works on it.
    #[serde(default)]
    pub(super) next: Option<(StoryId, Vec<Check>)>,
}

/// What was seen.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Verdict {
    /// The request that it answers.
    pub(super) asked: String,
    /// The tree that the checks ran on, and its request.
    pub(super) id: String,
    pub(super) tree: String,
    pub(super) runs: Vec<CheckRun>,
    /// The tree was the same after the checks.
    pub(super) settled: bool,
    /// The deadline ended it.
    pub(super) timed_out: bool,
    pub(super) green: bool,
    pub(super) ms: u64,
    #[serde(default)]
    pub(super) commit: Option<Committed>,
    #[serde(default)]
    pub(super) alarms: Vec<Alarm>,
    /// What the work was compared with, and the tree of git that it was.
    #[serde(default)]
    pub(super) compared: Vec<String>,
    #[serde(default)]
    pub(super) work: Option<Oid>,
    /// How git saw the files then, as a digest.
    #[serde(default)]
    pub(super) sight: Option<String>,
    /// Own checks of stories as they were, where a file that decides them changed.
    #[serde(default)]
    pub(super) as_before: Vec<(StoryId, AsBefore)>,
    /// What the checks of the next story said.
    #[serde(default)]
    pub(super) next: Option<(StoryId, Vec<CheckRun>)>,
}

#[derive(Debug)]
pub(super) enum Seen {
    Ended { verdict: Box<Verdict>, cached: bool },
    Running { seconds: u64 },
}

/// The verdict on this tree; runs what has to be run, and waits for it. With `renew` a verdict that is not green is not good enough.
pub(super) fn verdict(dir: &Path, ask: &Ask, renew: bool, wait: Duration, signals: &Signals) -> Result<Seen, StopError> {
    let id = ask.id();
    let seal = Seal::from_environment(&ask.root, &ask.top).ok_or(StopError::NoSecret)?;
    let answered = |dir: &Path| match answered(dir, &seal, ask.slot(), &id)?.filter(|it| it.compares_like(ask)) {
        Some(verdict) if verdict.has_its_commit(&ask.top)? => Ok(Some(verdict)),
        Some(_) | None => Ok::<_, StopError>(None),
    };
    if let Some(verdict) = answered(dir)? {
        let holds = verdict.green && !matches!(verdict.commit, Some(Committed::Refused(_)));
        if (holds || !renew) && !verdict.is_out_of_date(ask) {
            return Ok(Seen::Ended { verdict: Box::new(verdict), cached: true });
        }
        let old = dir.join(ask.slot());
        fs::remove_file(&old).map_err(|source| file_error(&old, source))?;
    }
    fs::create_dir_all(dir).map_err(|source| file_error(dir, source))?;
    let began = Instant::now();
    let mut child = join_or_start(dir, ask, &seal, &id)?;
    let mut nap = NAP;
    loop {
        // Asked before the verdict is looked for: it is written before the worker ends.
        let over = match &mut child {
            Some(child) => child.try_wait().map_err(|source| file_error(dir, source))?.is_some(),
            None => !is_locked(dir),
        };
        if let Some(verdict) = answered(dir)? {
            return Ok(Seen::Ended { verdict: Box::new(verdict), cached: false });
        }
        if over {
            return Err(StopError::NoVerdict);
        }
        if began.elapsed() >= wait || signals.requested().is_some() {
            return Ok(Seen::Running { seconds: age(dir) });
        }
        thread::sleep(nap);
        nap = (nap * 2).min(LONGEST_NAP);
    }
}

impl Verdict {
    /// What is green was compared with what this request wants it compared with.
    pub(super) fn compares_like(&self, ask: &Ask) -> bool {
        !self.green || ask.comparisons().iter().all(|wanted| self.compared.contains(wanted))
    }

    /// A commit moves HEAD, so the tree before it comes back only where somebody took the commit back.
    fn has_its_commit(&self, top: &Path) -> Result<bool, StopError> {
        let Some(Committed::Commit { id, .. }) = &self.commit else { return Ok(true) };
        Ok(tree::git(top)?.head_commit()?.is_some_and(|(head, _)| head == *id))
    }

    /// An alarm about how git sees the files stands only as long as it sees them so: that can change on the very same tree.
    fn is_out_of_date(&self, ask: &Ask) -> bool {
        let about_git = self.alarms.iter().any(|alarm| matches!(alarm.kind, AlarmKind::GitTouched | AlarmKind::Unread));
        about_git && ask.alarms.is_some() && self.sight != ask.sight()
    }
}

impl Ask {
    pub(super) fn of(
        config: &Config,
        (root, top): (&Path, &Path),
        tree: &tree::Tree,
        checks: &[Check],
        ours: Vec<PathBuf>,
    ) -> Self {
        Self {
            root: root.to_owned(),
            top: top.to_owned(),
            ours,
            tree: tree.key.clone(),
            checks: checks.to_vec(),
            deadline: config.stop.verify_deadline,
            grace: config.limits.grace,
            output_bytes: config.limits.output_bytes,
            gates: config.gates.clone(),
            clean: config.clean.clone(),
            largest_file: config.limits.largest_file(),
            commit: None,
            alarms: None,
            same: Vec::new(),
            next: None,
        }
    }

    /// What the work is to be compared with.
    pub(super) fn comparisons(&self) -> Vec<String> {
        let alarms = self.alarms.iter().map(|alarms| alarms.base.to_string());
        alarms.chain(self.same.iter().map(|same| format!("{} {}", same.story, same.base))).collect()
    }

    /// How git sees the files now, where that is to be compared.
    pub(super) fn sight(&self) -> Option<String> {
        self.alarms.as_ref()?.git.as_ref()?;
        sight_of(self).ok().map(|sight| sight.digest())
    }

    /// The same for the same checks on the same tree.
    pub(super) fn id(&self) -> String {
        self.id_on(&self.tree)
    }

    /// Where the answer is kept.
    pub(super) fn slot(&self) -> &'static str {
        if self.commit.is_some() { COMMITTED } else { VERDICT }
    }

    pub(super) fn id_on(&self, tree: &str) -> String {
        let commits = self.commit.as_ref().map(|commit| commit.story.as_str()).unwrap_or_default();
        question(tree, &self.checks, commits)
    }
}

fn question(tree: &str, checks: &[Check], commits: &str) -> String {
    let checks = serde_json::to_string(checks).unwrap_or_default();
    digest(format!("{tree}\0{checks}\0{commits}").as_bytes())
}

/// What the gate saw of these checks on this very tree, if that was the last thing it saw. Runs nothing.
pub(super) fn seen_before(dir: &Path, seal: &Seal, tree: &str, checks: &[Check], story: &str) -> Option<Verdict> {
    let verdict = answered(dir, seal, VERDICT, &question(tree, checks, "")).ok()?;
    let verdict = verdict.or_else(|| answered(dir, seal, COMMITTED, &question(tree, checks, story)).ok()?)?;
    (verdict.tree == tree && verdict.settled && !verdict.timed_out).then_some(verdict)
}

pub(super) fn answered(dir: &Path, seal: &Seal, slot: &str, id: &str) -> Result<Option<Verdict>, StopError> {
    let found: Option<Verdict> =
        sealed(&dir.join(slot))?.and_then(|bytes| serde_json::from_slice(seal.checked(slot, &bytes)?).ok());
    Ok(found.filter(|verdict| verdict.asked == id || (verdict.id == id && verdict.settled)))
}

/// The request, if a hook of ours wrote it: it says where its project is, and the seal is bound to that.
pub(super) fn requested(dir: &Path) -> Result<Option<(Ask, Seal)>, StopError> {
    Ok(sealed(&dir.join(REQUEST))?.and_then(|bytes| {
        let body = bytes.splitn(2, |byte| *byte == b'\n').nth(1)?;
        let ask: Ask = serde_json::from_slice(body).ok()?;
        let seal = Seal::from_environment(&ask.root, &ask.top)?;
        seal.checked(REQUEST, &bytes)?;
        Some((ask, seal))
    }))
}

fn sealed(path: &Path) -> Result<Option<Vec<u8>>, StopError> {
    match read_regular(path, LARGEST) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(file_error(path, source)),
    }
}

pub(super) fn put(path: &Path, seal: &Seal, purpose: &str, value: &impl Serialize) -> Result<(), StopError> {
    let body = serde_json::to_vec(value).map_err(|source| StopError::Broken { path: path.to_owned(), source })?;
    write_bytes(path, &seal.put_on(purpose, &body))
}

/// Nobody's child is waited for by its lock.
fn join_or_start(dir: &Path, ask: &Ask, seal: &Seal, id: &str) -> Result<Option<Child>, StopError> {
    let lock = dir.join(LOCK);
    if is_locked(dir) {
        if requested(dir)?.is_some_and(|(running, _)| running.id() == id) {
            return Ok(None);
        }
        end_worker(dir);
    }
    put(&dir.join(REQUEST), seal, REQUEST, ask)?;
    let arguments = [OsString::from(ARGUMENT), dir.as_os_str().to_owned()];
    let child = start_detached(&arguments, &ask.root, None).map_err(|source| file_error(&lock, source))?;
    Ok(Some(child))
}

/// A verification of a tree that is gone is of no use. Its number means that process only as long as it holds the lock.
pub(super) fn end_worker(dir: &Path) {
    if !is_locked(dir) {
        return;
    }
    let pid = fs::read_to_string(dir.join(LOCK)).ok().and_then(|text| text.trim().parse().ok()).and_then(Pid::from_raw);
    let Some(pid) = pid else { return };
    let _ = kill_process(pid, Signal::TERM);
    let began = Instant::now();
    while is_locked(dir) && began.elapsed() < PATIENCE {
        thread::sleep(NAP);
    }
}

pub(super) fn lock_file(dir: &Path) -> std::io::Result<File> {
    open_regular(&dir.join(LOCK), OpenOptions::new().read(true).write(true).create(true))
}

fn is_locked(dir: &Path) -> bool {
    lock_file(dir).is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

fn age(dir: &Path) -> u64 {
    let made = fs::metadata(dir.join(REQUEST)).and_then(|meta| meta.modified());
    made.ok().and_then(|made| made.elapsed().ok()).map_or(0, |age| age.as_secs())
}
