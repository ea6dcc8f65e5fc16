//! Keeps the machine awake while a run is active. A helper of the system holds the inhibition for as long as its command runs: `cat`, whose
//! input is a pipe that we keep open. If this process ends in any way, even by SIGKILL, the kernel closes the pipe, and both end.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use verdone_core::base::id::RunId;
use verdone_core::base::sanitise::sanitise_line;

use super::{Exit, forget_spared, probe, program_exists, start_spared};
use crate::base::finding::Finding;

#[cfg(target_os = "macos")]
const PROGRAM: &str = "caffeinate";
#[cfg(not(target_os = "macos"))]
const PROGRAM: &str = "systemd-inhibit";

/// How long `doctor` waits for the helper.
const PATIENCE: Duration = Duration::from_secs(5);

/// Keeps the machine awake until it is dropped.
#[derive(Debug)]
pub struct SleepInhibitor {
    helper: Child,
    /// Closing it ends the helper.
    _open: Option<ChildStdin>,
}

impl SleepInhibitor {
    /// `None` if this machine has no such helper. A helper that does not work ends by itself, and nothing else depends on it.
    pub fn start(run: &RunId) -> Option<Self> {
        let mut command = Command::new(PROGRAM);
        command.args(arguments(&format!("run {run}"), "cat"));
        command.current_dir("/").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut helper = start_spared(&mut command).ok()?;
        let open = helper.stdin.take();
        Some(Self { helper, _open: open })
    }
}

impl Drop for SleepInhibitor {
    fn drop(&mut self) {
        // Only before it is reaped: until then its id cannot be reused.
        if matches!(self.helper.try_wait(), Ok(None))
            && let Some(group) = i32::try_from(self.helper.id()).ok().and_then(Pid::from_raw)
        {
            let _ = kill_process_group(group, Signal::KILL);
            let _ = self.helper.wait();
        }
        forget_spared(self.helper.id());
    }
}

fn arguments(why: &str, program: &str) -> Vec<OsString> {
    let options = if cfg!(target_os = "macos") {
        vec!["-i".to_owned(), "-s".to_owned()]
    } else {
        let why = format!("--why={why}");
        vec!["--what=idle:sleep".to_owned(), "--mode=block".to_owned(), "--who=verdone".to_owned(), why]
    };
    options.into_iter().chain([program.to_owned()]).map(OsString::from).collect()
}

/// Whether a run keeps this machine awake, found by trying it.
pub fn examine(wanted: bool) -> Finding {
    let found = |text: String| Finding::good("sleep", text);
    if !wanted {
        return found("a run does not keep the machine awake (run.inhibit_sleep = false)".to_owned());
    }
    if !program_exists(PROGRAM, std::env::var_os("PATH").as_deref(), Path::new("/")) {
        return Finding::neutral("sleep", format!("a run does not keep the machine awake: {PROGRAM} is not installed"));
    }
    match try_helper() {
        Ok(()) => found(format!("a run keeps the machine awake ({PROGRAM})")),
        Err(said) => {
            let message = format!("a run does not keep the machine awake: {PROGRAM} does not work here ({said})");
            let hints = vec!["if that is fine, set inhibit_sleep = false in [run]".to_owned()];
            Finding { hints, ..Finding::warning("sleep", message) }
        }
    }
}

fn try_helper() -> Result<(), String> {
    let argv = [OsString::from(PROGRAM)].into_iter().chain(arguments("verdone doctor", "true")).collect();
    let ended = probe(argv, Path::new("/"), PATIENCE).map_err(|error| error.to_string())?;
    match ended.exit {
        Exit::Code(0) => Ok(()),
        Exit::Wall => Err("no answer".to_owned()),
        Exit::Code(_) | Exit::Signal(_) | Exit::Idle | Exit::Terminal | Exit::Interrupted(_) => {
            let said = sanitise_line(ended.output.tail(200).lines().next_back().unwrap_or_default()).trim().to_owned();
            Err(if said.is_empty() { "it fails".to_owned() } else { said })
        }
    }
}
