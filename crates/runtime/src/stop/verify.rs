//! One verification for the gate: started as a process of its own that outlives the hook, waited for as long as the client has
//! patience, answered from its verdict where the tree and the checks are the same.
//!
//! The folder holds `request.json`, `verdict.json` and `verifying.lock`, which the worker has locked as long as it lives. Both files
//! carry a seal: one without it counts as not there.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use verdone_core::check::{Check, CheckRun, GateSettings, Where, all_green};
use verdone_core::config::Config;
use verdone_core::finish::StopSignal;
use verdone_core::id::{Oid, digest};
use verdone_core::span::Span;
use verdone_core::tamper::{Alarm, Response};

use crate::check_runner::{CheckContext, CleanPlaces, Guarded, Ways, run_checks};
use crate::clean_tree::CleanSettings;
use crate::git::Git;
use crate::known_files::KnownFiles;
use crate::process::{own_session, redactor_from_environment, start_detached};
use crate::regular::{open_regular, read_regular};
use crate::seal::Seal;
use crate::signal::Signals;
use crate::site;

use super::alarms::AlarmAsk;
use super::commit::{self, CommitAsk, Committed, Worker, commit};
use super::files::{LARGEST, file_error, write_bytes};
use super::{StopError, tree};

/// The hidden first argument of the binary.
pub const ARGUMENT: &str = "stop-verify";
const REQUEST: &str = "request.json";
const VERDICT: &str = "verdict.json";
const LOCK: &str = "verifying.lock";
/// Checks may change what they check this often before they have to settle.
const ROUNDS: usize = 3;
/// How long a worker whose tree is out of date gets to end its checks.
const PATIENCE: Duration = Duration::from_secs(8);
const NAP: Duration = Duration::from_millis(10);
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
    /// The checks of the story that comes next, to be seen red before anybody works on it.
    #[serde(default)]
    pub(super) next: Vec<Check>,
}

/// What was seen.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Verdict {
    /// The request that it answers.
    asked: String,
    /// The tree that the checks ran on, and its request.
    id: String,
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
    compared: Option<Oid>,
    #[serde(default)]
    pub(super) work: Option<Oid>,
    /// Files that the story's own checks run and that the work changed.
    #[serde(default)]
    pub(super) own_files: Vec<String>,
    /// What the checks of the next story said.
    #[serde(default)]
    pub(super) next: Vec<CheckRun>,
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
    let answered = |dir: &Path| Ok::<_, StopError>(answered(dir, &seal, &id)?.filter(|verdict| verdict.compares_like(ask)));
    if let Some(verdict) = answered(dir)? {
        if (verdict.green && !matches!(verdict.commit, Some(Committed::Refused(_)))) || !renew {
            return Ok(Seen::Ended { verdict: Box::new(verdict), cached: true });
        }
        let old = dir.join(VERDICT);
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
    fn compares_like(&self, ask: &Ask) -> bool {
        !self.green || ask.alarms.as_ref().is_none_or(|alarms| self.compared.as_ref() == Some(&alarms.base))
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
            largest_file: config.limits.snapshot_file_bytes,
            commit: None,
            alarms: None,
            next: Vec::new(),
        }
    }

    /// The same for the same checks on the same tree.
    fn id(&self) -> String {
        self.id_on(&self.tree)
    }

    fn id_on(&self, tree: &str) -> String {
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
    let verdict = answered(dir, seal, &question(tree, checks, "")).ok()?;
    let verdict = verdict.or_else(|| answered(dir, seal, &question(tree, checks, story)).ok()?)?;
    (verdict.tree == tree && verdict.settled && !verdict.timed_out).then_some(verdict)
}

fn answered(dir: &Path, seal: &Seal, id: &str) -> Result<Option<Verdict>, StopError> {
    let found: Option<Verdict> =
        sealed(&dir.join(VERDICT))?.and_then(|bytes| serde_json::from_slice(seal.checked(VERDICT, &bytes)?).ok());
    Ok(found.filter(|verdict| verdict.asked == id || (verdict.id == id && verdict.settled)))
}

/// The request, if a hook of ours wrote it: it says where its project is, and the seal is bound to that.
fn requested(dir: &Path) -> Result<Option<(Ask, Seal)>, StopError> {
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

fn put(path: &Path, seal: &Seal, purpose: &str, value: &impl Serialize) -> Result<(), StopError> {
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

/// A verification of a tree that is gone is of no use.
pub(super) fn end_worker(dir: &Path) {
    let pid = fs::read_to_string(dir.join(LOCK)).ok().and_then(|text| text.trim().parse().ok()).and_then(Pid::from_raw);
    let Some(pid) = pid else { return };
    let _ = kill_process(pid, Signal::TERM);
    let began = Instant::now();
    while is_locked(dir) && began.elapsed() < PATIENCE {
        thread::sleep(NAP);
    }
}

fn lock_file(dir: &Path) -> std::io::Result<File> {
    open_regular(&dir.join(LOCK), OpenOptions::new().read(true).write(true).create(true))
}

fn is_locked(dir: &Path) -> bool {
    lock_file(dir).is_ok_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

fn age(dir: &Path) -> u64 {
    let made = fs::metadata(dir.join(REQUEST)).and_then(|meta| meta.modified());
    made.ok().and_then(|made| made.elapsed().ok()).map_or(0, |age| age.as_secs())
}

/// What the binary does when its first argument is [`ARGUMENT`]; gets the arguments after it.
pub fn main(arguments: &[OsString]) -> ExitCode {
    own_session();
    let [dir] = arguments else { return ExitCode::from(2) };
    match work(Path::new(dir)) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever waits sees that there is no verdict.
        Err(_) => ExitCode::FAILURE,
    }
}

fn work(dir: &Path) -> Result<(), StopError> {
    let lock = lock_file(dir).map_err(|source| file_error(dir, source))?;
    // A look at the lock takes it for a moment.
    let began = Instant::now();
    while lock.try_lock().is_err() {
        if began.elapsed() > PATIENCE {
            return Ok(());
        }
        thread::sleep(NAP);
    }
    fs::write(dir.join(LOCK), std::process::id().to_string()).map_err(|source| file_error(dir, source))?;
    let Some((ask, seal)) = requested(dir)? else { return Ok(()) };
    let signals = Signals::install().unwrap_or_else(|_| Signals::none());
    let overdue = deadline(&ask, &signals);
    let Some(verdict) = run(dir, (&ask, &seal), &signals, &overdue)? else { return Ok(()) };
    put(&dir.join(VERDICT), &seal, VERDICT, &verdict)
}

/// When all of it has to be over, the checks are ended like by a signal.
fn deadline(ask: &Ask, signals: &Signals) -> std::sync::Arc<std::sync::atomic::AtomicBool> {
    let overdue = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    if let Some(limit) = ask.deadline.limit() {
        let (signals, flag) = (signals.clone(), std::sync::Arc::clone(&overdue));
        // Without the thread every check still has its own limit.
        let _ = thread::Builder::new().name("deadline".to_owned()).spawn(move || {
            thread::sleep(limit);
            flag.store(true, std::sync::atomic::Ordering::SeqCst);
            signals.raise(StopSignal::Sigterm);
        });
    }
    overdue
}

/// Nothing where somebody called it off.
fn run(
    dir: &Path,
    (ask, seal): (&Ask, &Seal),
    signals: &Signals,
    overdue: &std::sync::atomic::AtomicBool,
) -> Result<Option<Verdict>, StopError> {
    let began = Instant::now();
    let redactor = redactor_from_environment(&[]);
    fs::create_dir_all(dir.join("checks")).map_err(|source| file_error(dir, source))?;
    let guarded = Guarded::begin(ask.grace.duration());
    let git = guarded.git(Git::open(&ask.root)?);
    let worker = Worker { dir, git: &git, seal };
    worker.pay_owed();
    let plain = |number: u32| CheckContext {
        cwd: &ask.root,
        run_dir: dir,
        number,
        env: guarded.env(),
        cap: ask.output_bytes,
        grace: ask.grace.duration(),
        redactor: &redactor,
        ways: site::ways(&ask.gates),
    };
    let look = || tree::look(&ask.root, &ask.top, &ask.ours);
    let mut before = look()?.key;
    let mut verdict = Verdict {
        // Of a tree that is another one already, nothing is said.
        asked: if before == ask.tree { ask.id() } else { String::new() },
        id: String::new(),
        tree: String::new(),
        runs: Vec::new(),
        settled: false,
        timed_out: false,
        green: false,
        ms: 0,
        commit: None,
        alarms: Vec::new(),
        compared: None,
        work: None,
        own_files: Vec::new(),
        next: Vec::new(),
    };
    for _ in 0..ROUNDS {
        // What the work tree is, as a tree of git, is asked only for gates that want a clean one.
        let clean = ask.checks.iter().any(|check| check.terms.place == Where::Clean);
        let now = clean.then(|| git.tree_now(ask.largest_file, &mut KnownFiles::of(&ask.root, &ask.top))).transpose()?;
        let places = now.as_ref().map(|now| CleanPlaces::of(&git, &now.tree, &ask.root, &ask.clean, signals));
        let place_of = places.as_ref().map(|places| |check: &Check| places.place_of(check));
        let ways = Ways { place_of: place_of.as_ref().map(|place_of| place_of as _), ..site::ways(&ask.gates) };
        let context = CheckContext { ways, ..plain(1) };
        verdict.runs = run_checks(&ask.checks, &context, signals, &mut |_| {}).map_err(|source| file_error(dir, source))?;
        let after = look()?.key;
        verdict.settled = after == before;
        before = after;
        let passed = verdict.runs.len() == ask.checks.len() && all_green(&verdict.runs);
        verdict.green = passed && verdict.settled;
        if verdict.settled || !passed || signals.requested().is_some() {
            break;
        }
    }
    verdict.timed_out = overdue.load(std::sync::atomic::Ordering::SeqCst);
    if signals.requested().is_some() && !verdict.timed_out {
        return Ok(None);
    }
    verdict.id = ask.id_on(&before);
    verdict.tree = before;
    let mut response = Response::Report;
    if let Some(alarms) = ask.alarms.as_ref().filter(|_| verdict.green) {
        let found = alarms.look(ask, &git);
        (verdict.alarms, verdict.work, verdict.own_files) = (found.alarms, found.work, found.own_files);
        verdict.compared = Some(alarms.base.clone());
        response = alarms.settings.gravest(&verdict.alarms).0;
    }
    // What a human should look at first is not for us to commit.
    if let Some(story) = ask.commit.as_ref().filter(|_| verdict.green && response == Response::Report) {
        let capped = !verdict.own_files.is_empty();
        let env = guarded.env();
        let seen = commit::Seen { env: &env, key: &verdict.tree, runs: &verdict.runs, alarms: &verdict.alarms, capped };
        verdict.commit = Some(commit(ask, story, worker, seen, signals));
    }
    if verdict.green && response < Response::Refuse && !ask.next.is_empty() {
        let runs = run_checks(&ask.next, &plain(1 + verdict.runs.len() as u32), signals, &mut |_| {});
        verdict.next = runs.map_err(|source| file_error(dir, source))?;
    }
    verdict.ms = began.elapsed().as_millis() as u64;
    Ok(Some(verdict))
}
