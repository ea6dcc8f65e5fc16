//! The one place that starts processes (git has its own): a group of its own, deadlines, bounded output, and nobody left behind.
//!
//! Threads read the pipes and wait for the exit; everything is decided in one loop that also serves the caller while a
//! process is being ended. The exit is seen without reaping, so that the group's id stays ours until the group is gone.

mod attached;
mod background;
mod companion;
mod detached;
mod environment;
mod flow;
mod launch;
pub mod output;
mod program;
pub mod signal;
mod spared;
pub(crate) mod standstill;
mod supervise;
mod tree;
pub mod watchdog;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use verdone_core::base::finish::StopSignal;
use verdone_core::base::id::RunId;
use verdone_core::base::redact::Redactor;
use verdone_core::check::CommandSpec;

use crate::process::output::{Captured, Stream};
use crate::process::signal::Signals;
use crate::workspace::Inside;

pub use attached::run_attached;
pub use background::Background;
pub use companion::{Companion, Heard};
pub(crate) use detached::{own_session, start_detached};
pub(crate) use environment::inherited;
pub use environment::{EnvPlan, redactor_from_environment};
pub(crate) use flow::Flow;
pub use program::{check_program, own_program, program_exists};
pub(crate) use spared::{forget_spared, start_spared};
pub use supervise::{Sweep, run, run_beside, run_beside_others};
pub use tree::{adopt_orphans, let_orphans_go, let_orphans_go_of};

/// Set for everything that a run starts; a run inside a run is refused by it.
pub const RUN_VARIABLE: &str = "VERDONE_RUN";
/// Set for everything that a verification without a run starts: it is ended by it when its Verdone is killed.
pub const VERIFY_VARIABLE: &str = "VERDONE_VERIFY";
/// Long enough for a process to get from its start to its own environment.
const SECOND_LOOK: Duration = Duration::from_millis(100);

/// Where `sh -c` finds its shell, whatever PATH says.
pub const SHELL: &str = "/bin/sh";

/// What to start and how long to bear it.
#[derive(Debug)]
pub struct Spawn<'a> {
    /// The workspace that it runs in; nothing: right here. The thread that starts it there must live as long as it: the kernel ends it
    /// with that thread.
    pub inside: Option<Inside>,
    pub argv: Vec<OsString>,
    pub cwd: PathBuf,
    pub env: EnvPlan,
    pub stdin: Stdin,
    /// Time until it is ended.
    pub wall: Option<Duration>,
    /// Silence until it is ended.
    pub idle: Option<Duration>,
    /// Time between TERM and KILL.
    pub grace: Duration,
    /// Bytes of output that are kept, half of them from the beginning.
    pub cap: u64,
    /// The file for the redacted, capped output. Made anew.
    pub keep: Option<PathBuf>,
    pub redactor: &'a Redactor,
}

#[derive(Debug, Clone, Default)]
pub enum Stdin {
    #[default]
    Null,
    Bytes(Vec<u8>),
}

/// What the caller of [`run`] hears while it waits.
#[derive(Debug)]
pub enum Moment<'a> {
    /// A line of output: redacted, without its end. Not made safe for a terminal.
    Line { stream: Stream, text: &'a str },
    /// Comes several times a second: time to redraw.
    Tick,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    /// A signal that we did not send.
    Signal(i32),
    /// Ended by us: the wall time was over.
    Wall,
    /// Ended by us: silent for too long.
    Idle,
    /// Ended by us: it was stopped because it wanted to use the terminal, and would have waited for ever.
    Terminal,
    /// Ended by us, or not started: the run is being stopped.
    Interrupted(StopSignal),
}

#[derive(Debug)]
pub struct Ended {
    pub exit: Exit,
    pub output: Captured,
    /// Without the time in which this program itself was stopped or asleep.
    pub duration: Duration,
    /// Processes that it left behind and that were ended.
    pub leftovers: u32,
}

#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    #[error("{program}: not found")]
    NotFound { program: String },
    #[error("{program}: not executable")]
    Denied { program: String },
    #[error("{}: not a directory to work in", path.display())]
    NoDirectory { path: PathBuf },
    #[error("the command is empty")]
    Empty,
    #[error("{program}: could not be started: {source}")]
    Failed { program: String, source: io::Error },
    #[error("{}: could not be written: {source}", path.display())]
    Keep { path: PathBuf, source: io::Error },
}

/// The words to execute for a command of the config or a plan.
pub fn argv(command: &CommandSpec) -> Vec<OsString> {
    match command {
        CommandSpec::Shell(text) => vec![SHELL.into(), "-c".into(), text.into()],
        CommandSpec::Argv(words) => words.iter().map(OsString::from).collect(),
    }
}

/// Ends every process that descends from this one, escapees of earlier commands included, but not the processes in `keep`.
/// Says how many there were. A second signal cuts the grace short.
///
/// It also reaps children: no other thread may be waiting for one of its own at the same time.
pub fn end_leftovers(keep: &[u32], grace: Duration, signals: &Signals) -> u32 {
    tree::end_leftovers(&tree::Spared { alone: keep.to_vec(), families: Vec::new() }, grace, signals)
}

/// Ends the processes of a run whose Verdone was killed and could not do it. They are known by `VERDONE_RUN`.
/// Says how many there were.
pub fn end_strays(runs: &[&RunId], grace: Duration, signals: &Signals) -> u32 {
    let marks: Vec<(&str, &str)> = runs.iter().map(|run| (RUN_VARIABLE, run.as_str())).collect();
    end_marked(&marks, grace, signals)
}

/// Ends every process that has one of these variables in its environment. Says how many there were.
pub(crate) fn end_marked(marks: &[(&str, &str)], grace: Duration, signals: &Signals) -> u32 {
    let end = || marks.iter().map(|(name, value)| tree::end_marked(name, value, grace, signals)).sum::<u32>();
    let found = end();
    // A process that was only just started shows no environment for a moment, so it is not found at the first look.
    std::thread::sleep(SECOND_LOOK);
    found + end()
}

/// Whether a process is left below us that may still do something. Helpers do not count.
pub(crate) fn has_descendants() -> bool {
    tree::descendants().iter().any(|process| !process.zombie)
}
