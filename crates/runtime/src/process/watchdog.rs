//! A second process that briefly outlives a killed run. It ends the run's agents, checks and scripts, so that none of them keeps working
//! and costing money in vain. A verification without a run has one, too.
//!
//! It reads from a pipe and first learns which run to watch: the variable set for everything that the run starts. A run that ends properly
//! says so; if the pipe closes without that, the run was killed. The watchdog cleans up nothing else; the next run does that.

use std::ffi::OsString;
use std::io::{self, PipeWriter, Read as _, Write as _};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use verdone_core::base::id::RunId;

use crate::process;
use crate::process::signal::Signals;

/// The hidden first argument of the binary.
pub const ARGUMENT: &str = "watchdog";
/// The second process of the start. It is not our child, so that no sweep of the run ends it.
const LOOSE: &str = "--loose";
/// Where a build with coverage writes its profile. Without it, the file would end up in an arbitrary place.
const PROFILE: &str = "LLVM_PROFILE_FILE";
/// The last byte that a run sends. It never occurs in a mark.
const DISMISSED: u8 = b'\n';

/// A watchdog that is starting. That takes two processes and a moment, during which the caller can do other work.
#[derive(Debug)]
pub struct Starting {
    child: Child,
    pipe: PipeWriter,
}

/// Watches until it is dismissed or dropped. If dropped, it ends what the run left behind.
#[derive(Debug)]
pub struct Watchdog(PipeWriter);

impl Watchdog {
    pub fn start(grace: Duration) -> io::Result<Starting> {
        process::stop_adopting_orphans();
        let (reader, pipe) = io::pipe()?;
        let mut command = Command::new(process::own_program()?);
        command.arg(ARGUMENT).arg(grace.as_millis().to_string());
        // It needs no environment, and with ours it would look like a leftover of the run.
        command.current_dir("/").env_clear().envs(std::env::var_os(PROFILE).map(|file| (PROFILE, file)));
        command.stdin(reader).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn()?;
        process::let_orphans_go_of(&child);
        Ok(Starting { child, pipe })
    }

    /// Reports that the run has ended properly.
    pub fn dismiss(mut self) {
        // If it is gone, there is no one to notify.
        let _ = self.0.write_all(&[DISMISSED]);
    }
}

impl Starting {
    /// Call this before adopting orphans, or the watchdog would become one of them.
    pub fn watch(self, run: &RunId) -> io::Result<Watchdog> {
        self.watch_marked(process::RUN_VARIABLE, run.as_str())
    }

    /// The same for all processes with this variable in their environment.
    pub(crate) fn watch_marked(mut self, name: &str, value: &str) -> io::Result<Watchdog> {
        let status = self.child.wait()?;
        if !status.success() {
            return Err(io::Error::other(status.to_string()));
        }
        self.pipe.write_all(format!("{name}={value}").as_bytes())?;
        Ok(Watchdog(self.pipe))
    }
}

/// The entry point if the first argument is [`ARGUMENT`]. Gets the arguments after it.
pub fn main(arguments: &[OsString]) -> ExitCode {
    match arguments {
        [loose, grace] if loose == LOOSE => watch(grace),
        [grace] => let_loose(grace),
        _ => ExitCode::from(2),
    }
}

/// Starts a new session, so that signals from the terminal do not reach the watchdog.
fn let_loose(grace: &OsString) -> ExitCode {
    let _ = rustix::process::setsid();
    let started = std::env::current_exe().and_then(|exe| Command::new(exe).args([ARGUMENT, LOOSE]).arg(grace).spawn());
    if started.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn watch(grace: &OsString) -> ExitCode {
    let mut said = Vec::new();
    let heard = io::stdin().read_to_end(&mut said);
    if heard.is_ok() && !said.is_empty() && said.last() != Some(&DISMISSED) {
        let said = String::from_utf8_lossy(&said);
        let grace = Duration::from_millis(grace.to_str().and_then(|grace| grace.parse().ok()).unwrap_or(0));
        if let Some(mark) = said.split_once('=') {
            process::end_marked(&[mark], grace, &Signals::none());
        }
    }
    ExitCode::SUCCESS
}
