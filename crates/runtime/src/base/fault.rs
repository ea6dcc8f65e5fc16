//! Fault injection for tests: `VERDONE_FAULT` names a point in the code and what happens there.
//!
//! There is a point between every two writes that matter, in a run and in its recovery. `land`, `undo` and id allocation have no points
//! themselves, only those of the functions they call. When off, which it always is for users, a point costs one relaxed load. The variable
//! is not passed on to children. Grammar, parts separated by commas:
//!
//! - `trace=FILE`: append the name of each point that is reached, one per line, and `# EFFECT` when an effect starts
//! - `kill@POINT:N`: send SIGKILL to this process when POINT is reached for the N-th time
//! - `fail=ERROR@POINT:N`: that point fails with ENOSPC, EIO or EACCES; `N+` means that from then on every point that can fail does
//! - `git-deadline=MILLISECONDS`: the time limit for a git process
//! - `any-room`: start even if the disk is nearly full

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Signal, getpid, kill_process};

/// The variable that enables faults.
pub const VARIABLE: &str = "VERDONE_FAULT";

macro_rules! points {
    ($($point:ident = $name:literal $kind:ident,)*) => {
        /// A place in the code where a fault can be injected.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Point { $($point,)* }

        impl Point {
            pub const ALL: &'static [Self] = &[$(Self::$point,)*];

            pub fn name(self) -> &'static str {
                match self { $(Self::$point => $name,)* }
            }

            /// Whether the code at this point can fail. Otherwise it can only be killed there.
            pub fn can_fail(self) -> bool {
                match self { $(Self::$point => points!(@$kind),)* }
            }
        }
    };
    (@fails) => { true };
    (@passes) => { false };
}

points! {
    LockTake = "lock-take" fails,
    LockTell = "lock-tell" fails,
    RunDir = "run-dir" fails,
    RunDirMade = "run-dir-made" passes,
    JournalCreate = "journal-create" fails,
    JournalCreated = "journal-created" passes,
    JournalReopen = "journal-reopen" fails,
    JournalAppend = "journal-append" fails,
    JournalTorn = "journal-torn" fails,
    JournalWritten = "journal-written" fails,
    JournalSynced = "journal-synced" passes,
    StepBegin = "step-begin" passes,
    StepDone = "step-done" passes,
    RefSet = "ref-set" fails,
    RefWasSet = "ref-was-set" passes,
    LandFiles = "land-files" fails,
    LandFilesMoved = "land-files-moved" passes,
    LandBranch = "land-branch" fails,
    LandBranchMoved = "land-branch-moved" passes,
    AtomicWrite = "atomic-write" fails,
    AtomicRename = "atomic-rename" fails,
    AtomicRenamed = "atomic-renamed" fails,
    PlanWrite = "plan-write" fails,
    PlanRename = "plan-rename" fails,
    PlanRenamed = "plan-renamed" fails,
    OutputCreate = "output-create" fails,
    PromptWrite = "prompt-write" fails,
    InboxTaken = "inbox-taken" fails,
    ScriptBegin = "script-begin" passes,
    ScriptDone = "script-done" passes,
    ChainAppend = "chain-append" fails,
    ChainAppended = "chain-appended" passes,
    IndexCopy = "index-copy" fails,
    IndexWrite = "index-write" fails,
    IndexLocked = "index-locked" fails,
    IndexInstalled = "index-installed" passes,
    CommitBegin = "commit-begin" fails,
    CommitDone = "commit-done" passes,
    Uncommit = "uncommit" fails,
    NoteWrite = "note-write" fails,
    NoteWritten = "note-written" passes,
    RecoverBegin = "recover-begin" passes,
    RecoverSettled = "recover-settled" passes,
}

/// An invalid value of the variable. Ignoring it would let a test pass without testing anything.
#[derive(Debug, thiserror::Error)]
pub enum FaultError {
    #[error("{VARIABLE}: cannot understand {0:?}")]
    Grammar(String),
    #[error("{VARIABLE}: unknown point {0:?}")]
    NoSuchPoint(String),
    #[error("{VARIABLE}: {0:?} cannot fail, only be killed")]
    CannotFail(&'static str),
    #[error("{VARIABLE}: cannot write {0:?}: {1}")]
    Trace(String, io::Error),
}

static ON: AtomicBool = AtomicBool::new(false);
static ARMED: OnceLock<Armed> = OnceLock::new();
static REACHED: [AtomicU32; Point::ALL.len()] = [const { AtomicU32::new(0) }; Point::ALL.len()];
/// Set by a lasting fault: from now on every point fails.
static LASTING: AtomicBool = AtomicBool::new(false);

#[derive(Debug, Default)]
struct Armed {
    trace: Option<File>,
    git_deadline: Option<Duration>,
    any_room: bool,
    faults: Vec<Fault>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fault {
    action: Action,
    point: Point,
    nth: u32,
    lasting: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Kill,
    Fail(Errno),
}

/// Parses the variable's value, once at program start.
pub fn arm(value: &str) -> Result<(), FaultError> {
    let mut armed = Armed::default();
    for part in value.split(',') {
        match part.split_once('=') {
            Some(("trace", path)) => {
                let opened = OpenOptions::new().create(true).append(true).open(path);
                armed.trace = Some(opened.map_err(|error| FaultError::Trace(path.to_owned(), error))?);
            }
            Some(("git-deadline", text)) => {
                let millis = text.parse().map_err(|_| FaultError::Grammar(part.to_owned()))?;
                armed.git_deadline = Some(Duration::from_millis(millis));
            }
            None if part == "any-room" => armed.any_room = true,
            Some(_) | None => armed.faults.push(part.parse()?),
        }
    }
    if ARMED.set(armed).is_ok() {
        ON.store(true, Ordering::Relaxed);
    }
    Ok(())
}

/// A point between two effects, where nothing can fail.
pub fn pass(point: Point) {
    if ON.load(Ordering::Relaxed) {
        // A lasting fault affects only points that can fail.
        let _ = reach(point);
    }
}

/// A point at which the code can fail.
pub fn point(point: Point) -> io::Result<()> {
    if ON.load(Ordering::Relaxed) { reach(point) } else { Ok(()) }
}

/// The time limit for git processes, for tests that cannot wait as long as users would.
pub fn git_deadline() -> Option<Duration> {
    if ON.load(Ordering::Relaxed) { ARMED.get()?.git_deadline } else { None }
}

/// Whether a run may start on a disk that is nearly full.
pub fn any_room() -> bool {
    ON.load(Ordering::Relaxed) && ARMED.get().is_some_and(|armed| armed.any_room)
}

/// Writes the current effect to the trace, as a line `# …`.
pub fn trace(what: &dyn std::fmt::Debug) {
    if ON.load(Ordering::Relaxed)
        && let Some(mut trace) = ARMED.get().and_then(|armed| armed.trace.as_ref())
    {
        // If this fails, the trace lacks a line.
        let _ = trace.write_all(format!("# {what:?}\n").as_bytes());
    }
}

/// If faults are enabled, writes the bytes with a point in the middle, so that a write can be torn.
pub fn write_torn(file: &mut impl io::Write, bytes: &[u8], between: Point) -> io::Result<()> {
    if !ON.load(Ordering::Relaxed) || bytes.is_empty() {
        return file.write_all(bytes);
    }
    let (first, rest) = bytes.split_at(bytes.len() / 2);
    file.write_all(first)?;
    point(between)?;
    file.write_all(rest)
}

#[cold]
fn reach(point: Point) -> io::Result<()> {
    let Some(armed) = ARMED.get() else { return Ok(()) };
    let count = REACHED[point as usize].fetch_add(1, Ordering::Relaxed) + 1;
    if let Some(mut trace) = armed.trace.as_ref() {
        // A single write, so that threads do not mix their lines.
        trace.write_all(format!("{}\n", point.name()).as_bytes())?;
    }
    for fault in &armed.faults {
        let hit = fault.point == point && fault.nth == count;
        match fault.action {
            Action::Kill if hit => {
                let _ = kill_process(getpid(), Signal::KILL);
                loop {
                    std::thread::park();
                }
            }
            Action::Fail(errno) if point.can_fail() && (hit || LASTING.load(Ordering::Relaxed)) => {
                LASTING.fetch_or(fault.lasting, Ordering::Relaxed);
                return Err(errno.into());
            }
            Action::Kill | Action::Fail(_) => {}
        }
    }
    Ok(())
}

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let grammar = || FaultError::Grammar(text.to_owned());
        let (action, place) = text.split_once('@').ok_or_else(grammar)?;
        let (name, nth) = place.split_once(':').ok_or_else(grammar)?;
        let action = match action {
            "kill" => Action::Kill,
            "fail=ENOSPC" => Action::Fail(Errno::NOSPC),
            "fail=EIO" => Action::Fail(Errno::IO),
            "fail=EACCES" => Action::Fail(Errno::ACCESS),
            _ => return Err(grammar()),
        };
        let point = Point::ALL.iter().find(|point| point.name() == name);
        let point = *point.ok_or_else(|| FaultError::NoSuchPoint(name.to_owned()))?;
        let lasting = nth.ends_with('+');
        let nth = nth.trim_end_matches('+').parse().ok().filter(|nth| *nth > 0).ok_or_else(grammar)?;
        match action {
            Action::Kill if lasting => return Err(grammar()),
            Action::Fail(_) if !point.can_fail() => return Err(FaultError::CannotFail(point.name())),
            Action::Kill | Action::Fail(_) => {}
        }
        Ok(Self { action, point, nth, lasting })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_understood_and_what_is_refused() {
        let fault: Fault = "fail=ENOSPC@journal-append:3+".parse().unwrap();
        let expected = Fault { action: Action::Fail(Errno::NOSPC), point: Point::JournalAppend, nth: 3, lasting: true };
        assert_eq!(fault, expected);
        assert_eq!("kill@step-begin:1".parse::<Fault>().unwrap().action, Action::Kill);
        for refused in [
            "",
            "kill",
            "kill@",
            "kill@nowhere:1",
            "kill@step-begin",
            "kill@step-begin:0",
            "kill@step-begin:x",
            "kill@step-begin:1+",
            "fail=EPIPE@journal-append:1",
            "fail=EIO@step-begin:1",
            "explode@journal-append:1",
        ] {
            assert!(refused.parse::<Fault>().is_err(), "{refused}");
        }
    }

    #[test]
    fn names_are_unique() {
        let names: std::collections::BTreeSet<_> = Point::ALL.iter().map(|point| point.name()).collect();
        assert_eq!(names.len(), Point::ALL.len());
    }
}
