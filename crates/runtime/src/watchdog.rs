//! A second process that outlives a killed run by a moment: it ends the run's agents, checks and scripts, so that none of them goes
//! on working, and costing money, for nobody.
//!
//! It holds one end of a pipe. A run that ends says so; a pipe that closes without a word means that the run was killed. Nothing
//! else is put in order here: the next run does that.

use std::ffi::OsString;
use std::io::{self, PipeWriter, Read as _, Write as _};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use verdone_core::id::RunId;

use crate::process::{self, RUN_VARIABLE};
use crate::signal::Signals;

/// The hidden first argument of the binary.
pub const ARGUMENT: &str = "watchdog";
/// The second process of the start: it is nobody's child, so that no sweep of the run ends it.
const LOOSE: &str = "--loose";
/// A process that was only just started shows no environment for a moment, so it is not found at the first look.
const SECOND_LOOK: Duration = Duration::from_millis(100);

/// Watches until it is dismissed or dropped. Dropped means: ends what the run left behind.
#[derive(Debug)]
pub struct Watchdog(PipeWriter);

impl Watchdog {
    /// Starts it for a run. Comes before orphans are adopted, or it would be one of them.
    pub fn start(run: &RunId, grace: Duration) -> io::Result<Self> {
        process::let_orphans_go();
        let (reader, writer) = io::pipe()?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(ARGUMENT).arg(run.as_str()).arg(grace.as_millis().to_string());
        command.current_dir("/").env_remove(RUN_VARIABLE);
        command.stdin(reader).stdout(Stdio::null()).stderr(Stdio::null());
        let status = command.status()?;
        if status.success() { Ok(Self(writer)) } else { Err(io::Error::other(status.to_string())) }
    }

    /// The run has ended in order.
    pub fn dismiss(mut self) {
        // One that is gone does not have to be told.
        let _ = self.0.write_all(b".");
    }
}

/// What the binary does when its first argument is [`ARGUMENT`]; gets the arguments after it.
pub fn main(arguments: &[OsString]) -> ExitCode {
    match arguments {
        [loose, run, grace] if loose == LOOSE => watch(run, grace),
        [run, grace] => let_loose(run, grace),
        _ => ExitCode::from(2),
    }
}

/// A session of its own: what the terminal sends to the run is not for the watchdog.
fn let_loose(run: &OsString, grace: &OsString) -> ExitCode {
    let _ = rustix::process::setsid();
    let started = std::env::current_exe().and_then(|exe| Command::new(exe).args([ARGUMENT, LOOSE]).arg(run).arg(grace).spawn());
    if started.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn watch(run: &OsString, grace: &OsString) -> ExitCode {
    let mut said = Vec::new();
    let heard = io::stdin().read_to_end(&mut said);
    if heard.is_ok() && said.is_empty() {
        let run = RunId::from(run.to_string_lossy().as_ref());
        let grace = Duration::from_millis(grace.to_str().and_then(|grace| grace.parse().ok()).unwrap_or(0));
        for _ in 0..2 {
            process::end_strays(&run, grace, &Signals::none());
            std::thread::sleep(SECOND_LOOK);
        }
    }
    ExitCode::SUCCESS
}
