//! Hidden entry points of the binary: one process that builds a view and holds it, others that enter it and become a program.
//!
//! Namespaces can only be changed by a process with a single thread, so this happens in processes of their own, before anything else
//! in `main`. Unsafe code is confined to `launcher/sys.rs`.

#[cfg(target_os = "linux")]
mod confine;
#[cfg(target_os = "linux")]
mod enter;
mod failure;
mod fault;
#[cfg(target_os = "linux")]
mod hold;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod signals;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(target_os = "linux")]
mod system;
#[cfg(target_os = "linux")]
mod target;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;

use super::plan::Inside;
use crate::process::own_program;

pub use failure::{EXIT as EXIT_FAILED, Failure, Step};
pub use fault::VARIABLE as FAULT_VARIABLE;

/// The hidden first argument of the binary.
pub const ARGUMENT: &str = "launch";

pub(super) const HOLD: &str = "hold";
const ENTER: &str = "enter";
const LANDLOCK: &str = "landlock";
/// Says what a process inside of a view can see: for the probe.
pub(super) const LOOK: &str = "look";
/// Workspaces whose costs a benchmark wants to know.
const MEASURE: &str = "measure";
pub(super) const OWN_PROC: &str = "own proc";
/// What a holder says when its view can be entered; otherwise it says a [`Failure`].
pub(super) const READY: &str = "ready";
/// The empty file beside the plan, which hidden files become.
pub(super) const EMPTY_FILE: &str = "empty";

static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Names the binary whose [`main`] is the launcher's, for test binaries, which are not Verdone. Counts once a process.
pub fn set_program(path: impl Into<PathBuf>) {
    let _ = PROGRAM.set(path.into());
}

/// The binary to start as the launcher.
pub(super) fn program() -> PathBuf {
    // What the kernel calls us is right as long as nobody replaced the file.
    PROGRAM.get().cloned().or_else(|| own_program().ok()).unwrap_or_else(|| PathBuf::from("/proc/self/exe"))
}

pub(super) fn command_line(inside: &Inside, argv: &[OsString], cwd: &Path, failure: &Path) -> Vec<OsString> {
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

/// The Landlock version of the kernel; nothing where it is missing or switched off.
pub(super) fn landlock_version() -> Option<u32> {
    #[cfg(target_os = "linux")]
    {
        sys::landlock_version()
    }
    #[cfg(not(target_os = "linux"))]
    None
}

/// What the binary does when its first argument is [`ARGUMENT`]; gets the arguments after it.
#[cfg(target_os = "linux")]
pub fn main(arguments: &[OsString]) -> ExitCode {
    use std::io::Write as _;
    let mode = arguments.first().and_then(|mode| mode.to_str()).unwrap_or_default();
    let target = |rest| target::Target::parse(rest).inspect_err(|error| drop(writeln!(std::io::stderr(), "launch: {error}")));
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
            let _ = writeln!(std::io::stdout(), "{seen}");
            return ExitCode::SUCCESS;
        }
        (MEASURE, []) => return super::measure::run(),
        _ => {}
    }
    ExitCode::from(EXIT_FAILED)
}

/// Views exist on Linux only.
#[cfg(not(target_os = "linux"))]
pub fn main(_: &[OsString]) -> ExitCode {
    ExitCode::from(EXIT_FAILED)
}
