//! The one module that starts processes (git has its own): each in its own process group,
//! with deadlines and bounded output, and nothing left running afterwards.
//!
//! Threads read the pipes and wait for the exit. All decisions are made in one loop, which also serves the caller while a process is being
//! ended. The exit is detected without reaping, so that the group id stays ours until the group is gone.

mod attached;
mod background;
mod detached;
mod environment;
mod flood_limit;
mod held_up;
mod helper_program;
mod helpers_spared;
pub(crate) mod job_control;
mod launch;
mod line_process;
pub mod notify;
pub mod output;
mod probe;
mod program;
pub mod signal;
pub mod sleep_inhibitor;
mod supervise;
mod tree;
pub mod watchdog;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::{Pid, test_kill_process};
use verdone_core::base::finish::StopSignal;
use verdone_core::base::id::RunId;
use verdone_core::base::redact::Redactor;
use verdone_core::check::CommandSpec;

use crate::launcher::Inside;
use crate::process::output::{Captured, Stream};
use crate::process::signal::Signals;

pub use crate::base::own_program::own_program;
pub use attached::run_attached;
pub use background::Background;
pub use detached::{interrupt_process, own_session, redirect_output, start_detached_piped};
pub(crate) use detached::{start_detached, start_detached_with};
pub(crate) use environment::inherited;
pub use environment::{EnvPlan, redactor_from_environment};
pub(crate) use flood_limit::FloodLimit;
pub use held_up::HeldUp;
pub(crate) use helper_program::HelperProgram;
pub(crate) use helpers_spared::{forget_spared, start_spared};
pub use line_process::{LineProcess, Received};
pub(crate) use probe::probe;
pub use program::{check_program, find_program, missing_program, program_exists};
pub use supervise::{Sweep, run, run_and_end_marked, run_excusing, run_without_sweep};
pub use tree::{adopt_orphans, let_orphans_go_of, stop_adopting_orphans};

/// Whether a process has not ended. One that ended, but was not collected by its parent, is not alive: where the first process of a
/// container collects nothing, it stays like that.
pub(crate) fn is_alive(pid: u32) -> bool {
    let exists = i32::try_from(pid).ok().and_then(Pid::from_raw).is_some_and(|pid| test_kill_process(pid).is_ok());
    exists && !tree::is_zombie(pid)
}

/// Set for everything that a run starts. It prevents a run inside a run.
pub const RUN_VARIABLE: &str = "VERDONE_RUN";
/// Set for everything that a verification without a run starts, so that it can be ended if its Verdone is killed.
pub const VERIFY_VARIABLE: &str = "VERDONE_VERIFY";
/// Long enough for a started process to get its own environment.
const SECOND_LOOK: Duration = Duration::from_millis(100);

/// The shell for `sh -c`, independent of PATH.
pub const SHELL: &str = "/bin/sh";

/// What to start, and its limits.
#[derive(Debug)]
pub struct Spawn<'a> {
    /// The workspace to run in. `None`: the current directory tree, without a workspace. The thread that starts the process must outlive
    /// it: the kernel ends the process together with that thread.
    pub inside: Option<Inside>,
    pub argv: Vec<OsString>,
    pub cwd: PathBuf,
    pub env: EnvPlan,
    pub stdin: Stdin,
    /// The time limit.
    pub wall: Option<Duration>,
    /// How long it may be silent.
    pub idle: Option<Duration>,
    /// Time between TERM and KILL.
    pub grace: Duration,
    /// How many bytes of output to keep, half of them from the beginning.
    pub cap: u64,
    /// The file for the redacted, capped output. Created anew.
    pub keep: Option<PathBuf>,
    pub redactor: &'a Redactor,
}

#[derive(Debug, Clone, Default)]
pub enum Stdin {
    #[default]
    Null,
    Bytes(Vec<u8>),
}

/// Progress for the caller of [`run`] while it waits.
#[derive(Debug)]
pub enum Moment<'a> {
    /// A line of output: redacted, without its line end. Not sanitised for a terminal.
    Line { stream: Stream, text: &'a str },
    /// Comes several times a second: time to redraw.
    Tick,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    /// A signal that we did not send.
    Signal(i32),
    /// We ended it: the time limit was reached.
    Wall,
    /// We ended it: it was silent for too long.
    Idle,
    /// We ended it: it was stopped because it tried to use the terminal, and would have waited forever.
    Terminal,
    /// We ended it or did not start it: the run is stopping.
    Interrupted(StopSignal),
}

#[derive(Debug)]
pub struct Ended {
    pub exit: Exit,
    pub output: Captured,
    /// Excludes time during which this program was stopped or asleep.
    pub duration: Duration,
    /// How many processes it left behind, which were ended.
    pub leftovers: u32,
}

#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    #[error("{program}: not found")]
    NotFound { program: String },
    #[error("{program}: not executable")]
    Denied { program: String },
    #[error("{}: not a usable working directory", path.display())]
    NoDirectory { path: PathBuf },
    #[error("the command is empty")]
    Empty,
    #[error("{program}: could not be started: {source}")]
    Failed { program: String, source: io::Error },
    #[error("{}: could not be written: {source}", path.display())]
    Keep { path: PathBuf, source: io::Error },
}

/// The argument list for a command from the config or a plan.
pub fn argv(command: &CommandSpec) -> Vec<OsString> {
    match command {
        CommandSpec::Shell(text) => vec![SHELL.into(), "-c".into(), text.into()],
        CommandSpec::Argv(words) => words.iter().map(OsString::from).collect(),
    }
}

/// The same with one more argument, which is `$1` for the shell.
pub(crate) fn argv_with(command: &CommandSpec, argument: OsString) -> Vec<OsString> {
    match command {
        CommandSpec::Argv(_) => argv(command).into_iter().chain([argument]).collect(),
        CommandSpec::Shell(text) => {
            // If the command itself says where the argument goes, do not append it.
            let places_it = ["$1", "${1", "$@", "${@", "$*", "${*"].iter().any(|word| text.contains(word));
            let text = if places_it { text.clone() } else { format!("{} \"$@\"", text.trim_end()) };
            vec![SHELL.into(), "-c".into(), text.into(), "verdone".into(), argument]
        }
    }
}

/// Ends all descendants of this process, including those that escaped from earlier commands, except the processes in `keep`. Returns how
/// many there were. A second signal cuts the grace period short.
///
/// This also reaps children, so no other thread may be waiting for a child at the same time.
pub fn end_leftovers(keep: &[u32], grace: Duration, signals: &Signals) -> u32 {
    tree::end_leftovers(&tree::Spared { alone: keep.to_vec(), families: Vec::new() }, grace, signals)
}

/// Ends the processes of runs whose Verdone was killed and could not end them. They are
/// recognised by `VERDONE_RUN`. Returns how many there were.
pub fn end_strays(runs: &[&RunId], grace: Duration, signals: &Signals) -> u32 {
    let marks: Vec<(&str, &str)> = runs.iter().map(|run| (RUN_VARIABLE, run.as_str())).collect();
    end_marked(&marks, grace, signals)
}

/// Ends every process that has one of these variables in its environment. Returns how many there were.
pub(crate) fn end_marked(marks: &[(&str, &str)], grace: Duration, signals: &Signals) -> u32 {
    let end = || marks.iter().map(|(name, value)| tree::end_marked(name, value, grace, signals)).sum::<u32>();
    let found = end();
    // A process that has only just started briefly shows no environment, so the first search misses it.
    std::thread::sleep(SECOND_LOOK);
    found + end()
}

/// Whether a live descendant is left. Spared helper processes do not count.
pub(crate) fn has_descendants() -> bool {
    tree::descendants().iter().any(|process| !process.zombie)
}
