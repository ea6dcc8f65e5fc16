//! The process that verifies for the gate. It outlives the hook that asked, is the only
//! one that writes the loop's journal and to git, and leaves a finding.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use jiff::Timestamp;
use verdone_core::base::finish::StopSignal;
use verdone_core::base::id::{StoryId, encode_component};
use verdone_core::base::span::Span;
use verdone_core::check::{CheckOrigin, Stage};
use verdone_core::engine::run::Phase;
use verdone_core::engine::session::{BlockCause, Finding, HeldLoop, LoopStatus, Open, Work, stands};
use verdone_core::verify::{Outcome, Surface, VerifyJob};

use crate::base::fault;
use crate::process::own_session;
use crate::process::signal::Signals;
use crate::project::{HOME, Project, find_git_top};
use crate::verify::Verification;
use crate::verify::checks::gates;

use super::drive::{Driver, Parts, Quiet, Step};
use super::files::file_error;
use super::journal::LoopJournal;
use super::memory::Memory;
use super::notices::Notices;
use super::plan::LoopPlan;
use super::sealed_copy::{Durable, FINDING, LOOP, SealedCopy};
use super::worker_client::{LOCK, NAP, PATIENCE, REQUEST, Request, Wanted, lock_file};
use super::{StopError, checkout, state_files, turn};

/// The hidden first argument of the binary.
pub const ARGUMENT: &str = "stop-verify";

/// The entry point if the first argument is [`ARGUMENT`]. Gets the arguments after it: the project and the loop's folder.
pub fn main(arguments: &[OsString]) -> ExitCode {
    own_session();
    let [root, folder] = arguments else { return ExitCode::from(2) };
    let Some(folder) = folder.to_str() else { return ExitCode::from(2) };
    if std::env::var(fault::VARIABLE).is_ok_and(|value| fault::arm(&value).is_err()) {
        return ExitCode::from(2);
    }
    match work(Path::new(root), folder) {
        Ok(()) => ExitCode::SUCCESS,
        // The waiting hook sees that there is no finding.
        Err(_) => ExitCode::FAILURE,
    }
}

fn work(root: &Path, folder: &str) -> Result<(), StopError> {
    let sealed_copy = SealedCopy::find(root).ok_or(StopError::NoSecret)?;
    let dir = sealed_copy.dir().join(folder);
    let lock = lock_file(&dir).map_err(|source| file_error(&dir, source))?;
    // Checking whether the lock is free takes it for a moment.
    let began = Instant::now();
    while lock.try_lock().is_err() {
        if began.elapsed() > PATIENCE {
            return Ok(());
        }
        thread::sleep(NAP);
    }
    fs::write(dir.join(LOCK), std::process::id().to_string()).map_err(|source| file_error(&dir, source))?;
    let Some(request) = sealed_copy.get::<Request>(folder, REQUEST)? else { return Ok(()) };
    if let Wanted::Checkout { stage, deadline: limit } = request.what {
        let finding = checkout::verify(root, &request.question, stage, limit)?;
        return sealed_copy.put(folder, FINDING, &finding, Durable::No);
    }
    let Some(held) = sealed_copy.get::<HeldLoop>(&request.name, LOOP)? else { return Ok(()) };
    let name = request.name.clone();
    let mut journal = LoopJournal::open(&sealed_copy, &name, root, &held.run)?.ok_or(StopError::NoVerdict)?;
    let notices = Notices::begin(&held.settings.config, root, &journal);
    if let Wanted::End { status, reason } = &request.what {
        journal.end(status.finish(), reason)?;
        notices.send_new(&journal);
        return Ok(());
    }
    journal.belongs_to(&request.session)?;
    let signals = Signals::install().unwrap_or_else(|_| Signals::none());
    let memory = Memory::read(&sealed_copy, &name)?.unwrap_or_default();
    let git_top = find_git_top(root).map_err(|error| StopError::Settings(error.to_string()))?;
    // Use the root from the start of the loop, even if its `.verdone/` is gone.
    let config_path = root.join(HOME).join("config.toml");
    let project = Project { root: root.to_owned(), git_top, start: root.to_owned(), config_path, ralph_root: None };
    let plan = LoopPlan::open(&held)?;
    let limit = deadline_of(&held, &journal);
    let overdue = deadline(limit, &signals);
    let parts = Parts { project, session: request.session.clone(), held, journal, memory, plan, signals };
    let mut driver = Driver::new(parts)?;
    let finding = match request.what {
        Wanted::QuickGates => quick_gates(&mut driver)?,
        Wanted::Turn { held_open } => {
            let found = one_turn(&mut driver, &request.question, held_open, (&overdue, limit));
            driver.memory.keep(&sealed_copy, &name)?;
            // What was recorded counts, even if there is no finding.
            let mut found = found.inspect_err(|_| notices.send_new(&driver.journal))?;
            found.notes.extend(state_files::record_report(&driver));
            found
        }
        Wanted::Checkout { .. } | Wanted::End { .. } => return Ok(()),
    };
    sealed_copy.put(folder, FINDING, &finding, Durable::Yes)?;
    notices.send_new(&driver.journal);
    Ok(())
}

/// The time limit for each story, multiplied by the number of stories, because the final regression can be due.
fn deadline_of(held: &HeldLoop, journal: &LoopJournal) -> Span {
    let done = u32::try_from(journal.state().results.len()).unwrap_or(u32::MAX);
    held.settings.config.stop.verify_deadline.times(done.saturating_add(1))
}

/// At the deadline, ends the checks as a signal would.
pub(super) fn deadline(limit: Span, signals: &Signals) -> Arc<AtomicBool> {
    let overdue = Arc::new(AtomicBool::new(false));
    if let Some(limit) = limit.limit() {
        let (signals, flag) = (signals.clone(), Arc::clone(&overdue));
        // Without the thread, each check still has its own limit.
        let _ = thread::Builder::new().name("deadline".to_owned()).spawn(move || {
            thread::sleep(limit);
            flag.store(true, Ordering::SeqCst);
            signals.raise(StopSignal::Sigterm);
        });
    }
    overdue
}

fn one_turn(
    driver: &mut Driver,
    asked: &str,
    held_open: bool,
    (overdue, limit): (&AtomicBool, Span),
) -> Result<Finding, StopError> {
    let before = driver.state().results.clone();
    let seen = question(driver)?;
    driver.look_at_plan()?;
    let step = match driver.resume(held_open) {
        Err(StopError::CalledOff) if overdue.load(Ordering::SeqCst) => {
            let why = format!("The verification did not finish within {limit}");
            let open = Open { missing: vec![(BlockCause::CheckFailed, why)], ..driver.open() };
            Some(Step::Hold { work: Work::Open(open), stands: true })
        }
        step => step?,
    };
    driver.refresh()?;
    let (mut work, stands) = match step {
        Some(Step::Hold { work, stands }) => (work, stands),
        Some(Step::Input(_)) | None => current_work(driver),
    };
    if let Work::Open(open) = &mut work {
        let settled = driver.state().results.iter().filter(|(story, result)| before.get(story) != Some(result));
        open.settled = settled.map(|(story, result)| (story.clone(), *result)).collect();
    }
    Ok(Finding {
        at: format!("{} {}", Timestamp::now(), std::process::id()),
        // If files changed since the hook looked, this answers another question.
        asked: if seen == asked { seen } else { String::new() },
        after: question(driver)?,
        tree: driver.key()?,
        stands: stands && !matches!(&work, Work::Open(open) if !open.settled.is_empty()),
        work,
        notes: driver.notes.clone(),
        report: driver.report.clone().map(Box::new),
    })
}

fn question(driver: &Driver) -> Result<String, StopError> {
    Ok(turn::question(&driver.key()?, driver.held.plan.as_deref().map(Path::new)))
}

/// Why the machine waits: the agent must work, or the loop has ended.
fn current_work(driver: &Driver) -> (Work, bool) {
    if let Phase::Stopped { finish, .. } = driver.state().phase {
        let status = LoopStatus::from_finish(finish);
        let work = if status == LoopStatus::Complete { driver.complete() } else { Work::Blocked { status, why: ended(driver) } };
        return (work, true);
    }
    let mut open = driver.open();
    let attempt = driver.state().attempt.as_ref();
    let mut is_final = true;
    if let Some(report) = attempt.and_then(|attempt| attempt.report.as_deref()) {
        open.add_verify_report(report);
        is_final = stands(report);
    }
    let feedback = attempt.and_then(|attempt| attempt.feedback.as_ref());
    match (attempt.and_then(|attempt| attempt.refused.as_ref()), feedback) {
        (Some(_), Some(feedback)) => open.missing.push((BlockCause::CheckFailed, feedback.reason.clone())),
        // Regressions are reported together with the failing checks.
        (None, Some(feedback)) if feedback.regressed => open.failed.extend(feedback.failed.iter().cloned()),
        (Some(_) | None, _) => {}
    }
    (Work::Open(open), is_final)
}

/// Why the loop ended, with the stories that need review.
fn ended(driver: &Driver) -> String {
    let reason = driver.journal.end_reason().unwrap_or_default();
    let waiting: Vec<&str> = driver.state().progress.review.keys().map(StoryId::as_str).collect();
    if waiting.is_empty() { reason } else { format!("{reason}: {} (`verdone review`)", waiting.join(", ")) }
}

/// Runs the gates of the first stage on the current files.
fn quick_gates(driver: &mut Driver) -> Result<Finding, StopError> {
    let asked = question(driver)?;
    let tree = driver.snapshot()?;
    let quick = gates(&driver.config).into_iter().filter(|check| check.origin == CheckOrigin::Gate(Stage::Correctness)).collect();
    let job = VerifyJob::of_gates(Surface::Loop, quick, tree);
    let mut verification = Verification::new(job, None, &driver.memory.results);
    driver.on_bench(|bench, results| verification.advance(bench, results, &mut Quiet))??;
    let report = verification.report();
    if report.was_interrupted() {
        return Err(StopError::CalledOff);
    }
    let mut open = Open::default();
    if report.outcome != Outcome::Done {
        open.add_verify_report(&report);
    }
    let at = format!("{} {}", Timestamp::now(), std::process::id());
    let (work, tree, after) = (Work::Open(open), driver.key()?, question(driver)?);
    Ok(Finding { at, asked, after, tree, work, notes: Vec::new(), stands: true, report: Some(Box::new(report)) })
}

/// The folder of a subagent's worker, below its loop's folder.
pub(super) fn folder_of_agent(name: &str, agent: &str) -> String {
    PathBuf::from(name).join("agents").join(encode_component(agent)).display().to_string()
}
