//! Turns a [`Spawn`] into a running process: directly, or through the launcher of a workspace.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::Duration;

use super::{Spawn, SpawnError, environment, job_control, tree};
use crate::launcher::LaunchReport;
use crate::launcher::{Failure, Step};

/// A command with arguments, directory, group and environment. The caller sets its streams.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) command: Command,
    /// Where the launcher reports why it failed, if there is a launcher.
    pub(super) report: Option<LaunchReport>,
}

/// A process that was started, possibly by the launcher.
#[derive(Debug)]
pub(super) struct Launched {
    pub(super) child: Child,
    pub(super) report: Option<LaunchReport>,
}

pub(super) fn prepare(spawn: &Spawn<'_>) -> Result<Prepared, SpawnError> {
    let program = spawn.argv.first().ok_or(SpawnError::Empty)?;
    let (argv, cwd, report) = match &spawn.inside {
        // Otherwise a missing directory would be reported as a missing program.
        None if !spawn.cwd.is_dir() => return Err(SpawnError::NoDirectory { path: spawn.cwd.clone() }),
        None => (spawn.argv.clone(), spawn.cwd.as_path(), None),
        Some(inside) => {
            // If the launcher is killed, we adopt the process that it started and can wait for it.
            tree::adopt_orphans();
            let (report, line) = LaunchReport::begin(inside, &spawn.argv, &spawn.cwd)
                .map_err(|source| SpawnError::Failed { program: program.to_string_lossy().into_owned(), source })?;
            (line, Path::new("/"), Some(report))
        }
    };
    let (program, arguments): (&OsString, &[OsString]) = argv.split_first().ok_or(SpawnError::Empty)?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(cwd).process_group(0);
    for (name, _) in std::env::vars_os().filter(|(name, _)| environment::is_removed(name)) {
        command.env_remove(name);
    }
    for name in &spawn.env.unset {
        command.env_remove(name);
    }
    command.envs(spawn.env.set.iter().map(|(name, value)| (name, value)));
    Ok(Prepared { command, report })
}

pub(super) fn spawn(command: &mut Command) -> Result<Child, SpawnError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |source: io::Error| {
        let program = program.clone();
        match source.kind() {
            io::ErrorKind::NotFound => SpawnError::NotFound { program },
            io::ErrorKind::PermissionDenied => SpawnError::Denied { program },
            _ => SpawnError::Failed { program, source },
        }
    };
    for _ in 0..10 {
        let gate = job_control::gate();
        let started = command.spawn();
        drop(gate);
        match started {
            // A script written a moment ago may still be open in a child that another thread is starting.
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => thread::sleep(Duration::from_millis(20)),
            started => return started.map_err(failed),
        }
    }
    command.spawn().map_err(failed)
}

/// The error for a program that the launcher could not start.
pub(super) fn error(report: &LaunchReport, status: ExitStatus, spawn: &Spawn<'_>) -> Option<SpawnError> {
    let failure = report.failure(status)?;
    let program = spawn.argv.first().map(|program| program.to_string_lossy().into_owned()).unwrap_or_default();
    Some(from_failure(failure, program, &spawn.cwd))
}

fn from_failure(failure: Failure, program: String, cwd: &Path) -> SpawnError {
    let kind = failure.system_error().kind();
    match (failure.step, kind) {
        (Step::Exec, io::ErrorKind::NotFound) => SpawnError::NotFound { program },
        (Step::Exec, io::ErrorKind::PermissionDenied) => SpawnError::Denied { program },
        (Step::Exec, _) => SpawnError::Failed { program, source: failure.system_error() },
        (Step::WorkingFolder, _) => SpawnError::NoDirectory { path: PathBuf::from(cwd) },
        _ => SpawnError::Failed { program, source: io::Error::other(failure) },
    }
}
