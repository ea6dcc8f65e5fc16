//! Hidden entry points of the binary: one process builds a view and keeps it open, others enter it and execute a program.
//!
//! Only a single-threaded process can change its namespaces, so this happens in separate processes, before anything else in
//! `main`. Unsafe code is confined to `launcher/sys.rs`.

#[cfg(target_os = "linux")]
mod confine;
#[cfg(target_os = "linux")]
mod enter;
mod failure;
mod fault;
#[cfg(target_os = "linux")]
mod handed_sockets;
#[cfg(target_os = "linux")]
mod hold;
#[cfg(target_os = "linux")]
mod mounts;
mod plan;
mod report;
#[cfg(target_os = "linux")]
mod signals;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(target_os = "linux")]
mod system;
#[cfg(target_os = "linux")]
mod target;

use std::ffi::OsString;
use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;

use crate::base::own_program::own_program;

pub use failure::{EXIT as EXIT_FAILED, Failure, Step};
pub use fault::VARIABLE as FAULT_VARIABLE;
pub use plan::{Inside, Mount, Network, ViewPlan};
pub(crate) use report::LaunchReport;

/// The hidden first argument of the binary.
pub const ARGUMENT: &str = "launch";

pub(crate) const HOLD: &str = "hold";
const ENTER: &str = "enter";
const LANDLOCK: &str = "landlock";
/// Reports what a process inside a view can see, for the probe.
pub(crate) const LOOK: &str = "look";
/// Runs workspaces for a benchmark.
pub const MEASURE: &str = "measure";
pub(crate) const OWN_PROC: &str = "own proc";
/// Printed by a holder once its view can be entered; otherwise it prints a [`Failure`].
pub(crate) const READY: &str = "ready";
/// The empty file beside the plan that is mounted over hidden files.
pub(crate) const EMPTY_FILE: &str = "empty";

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Sets the binary whose [`main`] is the launcher's. Test binaries need it because they are not Verdone. Only the first call has
/// an effect.
pub fn set_program(path: impl Into<PathBuf>) {
    let _ = PROGRAM.set(path.into());
}

/// The binary to start as the launcher.
pub(crate) fn program() -> PathBuf {
    // The path that the kernel reports is right unless the file was replaced.
    PROGRAM.get().cloned().or_else(|| own_program().ok()).unwrap_or_else(|| PathBuf::from("/proc/self/exe"))
}

pub(crate) fn command_line(inside: &Inside, argv: &[OsString], cwd: &Path, failure: &Path) -> Vec<OsString> {
    let mut line: Vec<OsString> = vec![program().into(), ARGUMENT.into()];
    match inside {
        Inside::View { holder } => line.extend([ENTER.into(), holder.to_string().into()]),
        Inside::Landlock { plan } => line.extend([LANDLOCK.into(), plan.into()]),
    }
    line.extend(["--cwd".into(), cwd.into(), "--failure".into(), failure.into()]);
    line.extend(["--parent".into(), std::process::id().to_string().into(), "--".into()]);
    line.extend(argv.iter().cloned());
    line
}

/// The Landlock version of the kernel; `None` if it is missing or disabled.
pub(crate) fn landlock_version() -> Option<u32> {
    #[cfg(target_os = "linux")]
    {
        sys::landlock_version()
    }
    #[cfg(not(target_os = "linux"))]
    None
}

/// The listening sockets of a view, from the other end of its holder's standard input, once the holder is ready.
pub(crate) fn receive_listeners(from: &UnixStream) -> io::Result<Vec<TcpListener>> {
    #[cfg(target_os = "linux")]
    {
        handed_sockets::receive(from)
    }
    #[cfg(not(target_os = "linux"))]
    Err(io::ErrorKind::Unsupported.into())
}

/// Runs if the binary's first argument is [`ARGUMENT`], with the arguments after it.
#[cfg(target_os = "linux")]
pub fn main(arguments: &[OsString]) -> ExitCode {
    use std::io::Write as _;
    let mode = arguments.first().and_then(|mode| mode.to_str()).unwrap_or_default();
    let target = |rest| target::Target::parse(rest).inspect_err(|error| drop(writeln!(io::stderr(), "launch: {error}")));
    match (mode, arguments.get(1..).unwrap_or_default()) {
        (HOLD, [plan]) => return hold::run(Path::new(plan)),
        (ENTER, [holder, rest @ ..]) => {
            let holder = holder.to_str().and_then(|pid| pid.parse().ok()).and_then(rustix::process::Pid::from_raw);
            if let (Some(holder), Ok(target)) = (holder, target(rest)) {
                return enter::run(holder, &target);
            }
        }
        (LANDLOCK, [plan, rest @ ..]) => {
            if let Ok(target) = target(rest) {
                return confine::run(Path::new(plan), &target);
            }
        }
        (LOOK, []) => {
            let seen = if enter::has_own_proc() { OWN_PROC } else { "" };
            let _ = writeln!(io::stdout(), "{seen}");
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    ExitCode::from(EXIT_FAILED)
}

/// Views exist on Linux only.
#[cfg(not(target_os = "linux"))]
pub fn main(_: &[OsString]) -> ExitCode {
    ExitCode::from(EXIT_FAILED)
}
