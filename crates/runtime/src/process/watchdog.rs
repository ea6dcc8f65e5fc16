//! A second process that outlives a killed run by a moment: it ends the run's agents, checks and scripts, so that none of them goes
//! on working, and costing money, for nobody. A verification without a run has one, too.
//!
//! It holds one end of a pipe, and hears there which run it is: the variable that is set for all that the run starts. A run that ends
//! says so; a pipe that closes without that means that the run was killed. Nothing else is put in order here: the next run does that.

use std::ffi::OsString;
use std::io::{self, PipeWriter, Read as _, Write as _};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use verdone_core::base::id::RunId;

use crate::process;
use crate::process::signal::Signals;

/// The hidden first argument of the binary.
pub const ARGUMENT: &str = "watchdog";
/// The second process of the start: it is nobody's child, so that no sweep of the run ends it.
const LOOSE: &str = "--loose";
/// Where a build that measures its coverage writes; without it the file would land anywhere.
const PROFILE: &str = "LLVM_PROFILE_FILE";
/// What a run says last; no part of a mark.
const DISMISSED: u8 = b'\n';

/// One that is being started: it takes two processes and a moment, in which others can be busy.
#[derive(Debug)]
pub struct Starting {
    child: Child,
    pipe: PipeWriter,
}

/// Watches until it is dismissed or dropped. Dropped means: ends what the run left behind.
#[derive(Debug)]
pub struct Watchdog(PipeWriter);

impl Watchdog {
    pub fn start(grace: Duration) -> io::Result<Starting> {
        process::let_orphans_go();
        let (reader, pipe) = io::pipe()?;
        let mut command = Command::new(process::own_program()?);
        command.arg(ARGUMENT).arg(grace.as_millis().to_string());
        // It needs nothing, and with our environment it would look like something that the run left behind.
        command.current_dir("/").env_clear().envs(std::env::var_os(PROFILE).map(|file| (PROFILE, file)));
        command.stdin(reader).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn()?;
        process::let_orphans_go_of(&child);
        Ok(Starting { child, pipe })
    }

    /// The run has ended in order.
    pub fn dismiss(mut self) {
        // One that is gone does not have to be told.
        let _ = self.0.write_all(&[DISMISSED]);
    }
}

impl Starting {
    /// Comes before orphans are adopted, or the watchdog would be one of them.
    pub fn watch(self, run: &RunId) -> io::Result<Watchdog> {
        self.watch_marked(process::RUN_VARIABLE, run.as_str())
    }

    /// The same for whatever has this variable in its environment.
    pub(crate) fn watch_marked(mut self, name: &str, value: &str) -> io::Result<Watchdog> {
        let status = self.child.wait()?;
        if !status.success() {
            return Err(io::Error::other(status.to_string()));
        }
        self.pipe.write_all(format!("{name}={value}").as_bytes())?;
        Ok(Watchdog(self.pipe))
    }
}

/// What the binary does when its first argument is [`ARGUMENT`]; gets the arguments after it.
pub fn main(arguments: &[OsString]) -> ExitCode {
    match arguments {
        [loose, grace] if loose == LOOSE => watch(grace),
        [grace] => let_loose(grace),
        _ => ExitCode::from(2),
    }
}

/// A session of its own: what the terminal sends to the run is not for the watchdog.
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
