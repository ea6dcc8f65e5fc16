//! A process that uses the user's terminal: a shell in a workspace.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus};

use super::environment::is_removed;
use super::{EnvPlan, stop_adopting_orphans};
use crate::launcher::{Inside, LaunchReport};

/// Starts a program on our own standard streams and waits for it.
pub fn run_attached(argv: &[OsString], cwd: &Path, inside: Option<&Inside>, env: &EnvPlan) -> io::Result<ExitStatus> {
    stop_adopting_orphans();
    let (line, place, report) = match inside {
        None => (argv.to_vec(), cwd, None),
        Some(inside) => {
            let (report, line) = LaunchReport::begin(inside, argv, cwd)?;
            (line, Path::new("/"), Some(report))
        }
    };
    let (program, arguments) = line.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(place);
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_removed(name)) {
        command.env_remove(name);
    }
    for name in &env.unset {
        command.env_remove(name);
    }
    command.envs(env.set.iter().map(|(name, value)| (name, value)));
    let status = command.status()?;
    match report.and_then(|report| report.failure(status)) {
        Some(failure) => Err(io::Error::other(failure.to_string())),
        None => Ok(status),
    }
}
