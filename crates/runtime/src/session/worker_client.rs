//! Asks the worker, a process that outlives the hook. The hook waits as long as the client allows. A later finding answers the question if
//! files and plan are still the same.
//!
//! The folder contains `request.json`, `finding.json` and `working.lock`, which the worker keeps locked while it runs.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use verdone_core::base::span::Span;
use verdone_core::check::Stage;
use verdone_core::engine::session::{Finding, LoopStatus};

use crate::base::plain_file::open_regular;
use crate::process::signal::Signals;
use crate::process::start_detached;

use super::StopError;
use super::files::file_error;
use super::sealed_copy::{Durable, FINDING, SealedCopy};
use super::worker::ARGUMENT;

pub(super) const REQUEST: &str = "request.json";
pub(super) const LOCK: &str = "working.lock";
/// How long a worker with an outdated tree may take to end its checks.
pub(super) const PATIENCE: Duration = Duration::from_secs(8);
pub(super) const NAP: Duration = Duration::from_millis(10);
const LONGEST_NAP: Duration = Duration::from_millis(100);

/// A request to the worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Request {
    /// Equal for equal questions.
    pub(super) question: String,
    pub(super) session: String,
    /// The folder of the loop.
    pub(super) name: String,
    pub(super) what: Wanted,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Wanted {
    /// A turn has ended: verify the current story and continue with the plan.
    Turn {
        /// Something else is open, so the loop does not end yet.
        held_open: bool,
    },
    /// The quick gates, for a subagent. Nothing is recorded.
    QuickGates,
    /// The gates of a session without a loop, or those of one stage. Nothing is recorded.
    Checkout { stage: Option<Stage>, deadline: Span },
    /// End the loop.
    End { status: LoopStatus, reason: String },
}

/// Which worker to ask: a loop has one, and each of its subagents another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Worker<'a> {
    pub(super) root: &'a Path,
    pub(super) sealed_copy: &'a SealedCopy,
    /// The name below the project's loops folder.
    pub(super) folder: &'a str,
}

#[derive(Debug)]
pub(super) enum Answered {
    Found { finding: Box<Finding>, cached: bool },
    Running { seconds: u64 },
}

impl Worker<'_> {
    pub(super) fn dir(&self) -> PathBuf {
        self.sealed_copy.dir().join(self.folder)
    }

    /// The finding about this question. Asks the worker if `is_enough` rejects the last finding.
    pub(super) fn ask(
        &self,
        request: &Request,
        is_enough: impl Fn(&Finding) -> bool,
        wait: Duration,
        signals: &Signals,
    ) -> Result<Answered, StopError> {
        let last: Option<Finding> = self.sealed_copy.get(self.folder, FINDING)?;
        let before = last.as_ref().map(|finding| finding.at.clone());
        if let Some(finding) = last.filter(|finding| finding.answers(&request.question) && is_enough(finding)) {
            return Ok(Answered::Found { finding: Box::new(finding), cached: true });
        }
        let dir = self.dir();
        fs::create_dir_all(&dir).map_err(|source| file_error(&dir, source))?;
        let began = Instant::now();
        let mut child = self.join_or_start(request)?;
        let mut nap = NAP;
        loop {
            // Checked before looking for the finding, because the worker writes it before it exits.
            let over = match &mut child {
                Some(child) => child.try_wait().map_err(|source| file_error(&dir, source))?.is_some(),
                None => !is_locked(&dir),
            };
            let found: Option<Finding> = self.sealed_copy.get(self.folder, FINDING)?;
            if let Some(finding) = found.filter(|finding| Some(&finding.at) != before.as_ref()) {
                return Ok(Answered::Found { finding: Box::new(finding), cached: false });
            }
            if over {
                // A worker that we joined had already answered someone else and was only cleaning up.
                child = match child {
                    Some(_) => return Err(StopError::NoVerdict),
                    None => self.join_or_start(request)?,
                };
            }
            if began.elapsed() >= wait || signals.requested().is_some() {
                return Ok(Answered::Running { seconds: age(&dir) });
            }
            thread::sleep(nap);
            nap = (nap * 2).min(LONGEST_NAP);
        }
    }

    /// Makes the worker end the loop, and waits for that.
    pub(super) fn end(&self, request: &Request) -> Result<(), StopError> {
        let dir = self.dir();
        end_worker(&dir);
        if let Some(mut child) = self.join_or_start(request)? {
            child.wait().map_err(|source| file_error(&dir, source))?;
        }
        Ok(())
    }

    /// Joins a running worker, which is then waited for through its lock, or starts one.
    fn join_or_start(&self, request: &Request) -> Result<Option<Child>, StopError> {
        let dir = self.dir();
        if is_locked(&dir) {
            let running: Option<Request> = self.sealed_copy.get(self.folder, REQUEST)?;
            if running.as_ref() == Some(request) {
                return Ok(None);
            }
            end_worker(&dir);
        }
        self.sealed_copy.put(self.folder, REQUEST, request, Durable::No)?;
        let arguments = [OsString::from(ARGUMENT), self.root.as_os_str().to_owned(), OsString::from(self.folder)];
        let child = start_detached(&arguments, self.root, None).map_err(|source| file_error(&dir.join(LOCK), source))?;
        Ok(Some(child))
    }
}

/// A verification of outdated files is useless. The stored pid is valid only while the worker holds the lock.
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
