//! The process that verifies for the gate: it outlives the hook that asked, runs the checks, looks for tampering, commits where that is
//! asked for, and leaves a sealed verdict.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use verdone_core::check::{Check, Where, all_green};
use verdone_core::finish::StopSignal;
use verdone_core::tamper::Response;

use crate::check_runner::{CheckContext, CleanPlaces, Guarded, Ways, run_checks};
use crate::git::Git;
use crate::known_files::KnownFiles;
use crate::process::{own_session, redactor_from_environment};
use crate::signal::Signals;
use crate::site;

use super::commit::{self, commit};
use super::files::file_error;
use super::verify::{Ask, LOCK, NAP, PATIENCE, VERDICT, Verdict, lock_file, put, requested};
use super::{StopError, tree};

/// The hidden first argument of the binary.
pub const ARGUMENT: &str = "stop-verify";
/// Checks may change what they check this often before they have to settle.
const ROUNDS: usize = 3;

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
    let Some(verdict) = run(dir, &ask, &signals, &overdue)? else { return Ok(()) };
    put(&dir.join(VERDICT), &seal, VERDICT, &verdict)
}

/// When all of it has to be over, the checks are ended like by a signal.
fn deadline(ask: &Ask, signals: &Signals) -> Arc<AtomicBool> {
    let overdue = Arc::new(AtomicBool::new(false));
    if let Some(limit) = ask.deadline.limit() {
        let (signals, flag) = (signals.clone(), Arc::clone(&overdue));
        // Without the thread every check still has its own limit.
        let _ = thread::Builder::new().name("deadline".to_owned()).spawn(move || {
            thread::sleep(limit);
            flag.store(true, Ordering::SeqCst);
            signals.raise(StopSignal::Sigterm);
        });
    }
    overdue
}

/// Nothing where somebody called it off.
fn run(dir: &Path, ask: &Ask, signals: &Signals, overdue: &AtomicBool) -> Result<Option<Verdict>, StopError> {
    let began = Instant::now();
    let redactor = redactor_from_environment(&[]);
    fs::create_dir_all(dir.join("checks")).map_err(|source| file_error(dir, source))?;
    let guarded = Guarded::begin(ask.grace.duration());
    let git = guarded.git(Git::open(&ask.root)?);
    commit::pay_owed(dir, &git);
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
    verdict.timed_out = overdue.load(Ordering::SeqCst);
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
        let seen = commit::Seen { dir, env: &env, key: &verdict.tree, runs: &verdict.runs, alarms: &verdict.alarms, capped };
        verdict.commit = Some(commit(ask, story, seen, signals));
    }
    if verdict.green && response < Response::Refuse && !ask.next.is_empty() {
        let runs = run_checks(&ask.next, &plain(1 + verdict.runs.len() as u32), signals, &mut |_| {});
        verdict.next = runs.map_err(|source| file_error(dir, source))?;
    }
    verdict.ms = began.elapsed().as_millis() as u64;
    Ok(Some(verdict))
}
