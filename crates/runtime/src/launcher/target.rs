//! The program that the launcher executes in the end, and where to report a failure to do so.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use super::failure::{Failure, Step};
use super::{failure, sys};

/// A program to execute, from the launcher's command line.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) argv: Vec<OsString>,
    pub(super) cwd: PathBuf,
    /// Opened first, because its path may be hidden inside a view.
    pub(super) failure: File,
    /// The process that requested the launch.
    pub(super) parent: Option<Pid>,
}

impl Target {
    /// Parses `--cwd DIR --failure FILE [--parent PID] -- PROGRAM…`.
    pub(super) fn parse(arguments: &[OsString]) -> io::Result<Self> {
        let wrong = |text: &str| io::Error::new(io::ErrorKind::InvalidInput, text.to_owned());
        let (mut cwd, mut failure, mut parent) = (None, None, None);
        let mut rest = arguments.iter();
        loop {
            let Some(name) = rest.next() else { return Err(wrong("-- is missing")) };
            if name == "--" {
                break;
            }
            let value = rest.next().ok_or_else(|| wrong("an option has no value"))?;
            match name.to_str() {
                Some("--cwd") => cwd = Some(PathBuf::from(value)),
                Some("--failure") => failure = Some(open_and_unlink(Path::new(value))?),
                Some("--parent") => parent = value.to_str().and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw),
                _ => return Err(wrong("unknown option")),
            }
        }
        let argv: Vec<OsString> = rest.cloned().collect();
        if argv.is_empty() {
            return Err(wrong("no program to execute"));
        }
        Ok(Self {
            argv,
            cwd: cwd.ok_or_else(|| wrong("--cwd is missing"))?,
            failure: failure.ok_or_else(|| wrong("--failure is missing"))?,
            parent,
        })
    }

    /// Lets the kernel kill this process when its parent dies, and checks that the parent is still alive. A change of credentials
    /// clears the signal, so this comes after the last one.
    pub(super) fn die_with_parent(&self) -> Result<(), Failure> {
        let step = |error: rustix::io::Errno| Failure::new(Step::Parent, &error.into());
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(step)?;
        if self.parent.is_some() && getppid() != self.parent { Err(step(rustix::io::Errno::SRCH)) } else { Ok(()) }
    }

    /// Enters the folder by name. A descriptor or an inherited working folder would still refer to what a mount covers.
    pub(super) fn enter_folder(&self) -> Result<(), Failure> {
        std::env::set_current_dir(&self.cwd).map_err(|error| Failure::at(Step::WorkingFolder, &self.cwd, &error))
    }

    /// Replaces this process with the program. Returns only if that failed.
    pub(super) fn execute(&self) -> Failure {
        let (program, arguments) = self.argv.split_first().expect("parse refuses an empty command");
        let error = Command::new(program).args(arguments).exec();
        Failure { path: Some(program.to_string_lossy().into_owned()), ..Failure::new(Step::Exec, &error) }
    }

    /// Reports the failure and returns its exit code.
    pub(super) fn report(&self, failure: &Failure) -> u8 {
        failure.write(&self.failure);
        failure::EXIT
    }
}

/// Whoever started this process reads through its own descriptor. Without a name, the file cannot be left behind.
fn open_and_unlink(path: &Path) -> io::Result<File> {
    let file = File::options().write(true).truncate(true).open(path)?;
    fs::remove_file(path)?;
    Ok(file)
}

/// Blocks privileges from set-user-id programs, and everything inherited from the caller except the three standard streams: other
/// descriptors, session keys, the terminal.
pub(super) fn give_up_inheritance() -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::new(Step::Privileges, &error);
    rustix::thread::set_no_new_privs(true).map_err(|error| failed(error.into()))?;
    sys::leave_session_keyring().map_err(failed)?;
    leave_terminal().map_err(failed)?;
    sys::close_on_exec_from(3).map_err(failed)
}

/// A program that can open the user's terminal could type commands into the shell outside. It keeps the terminal only if its
/// standard input is one, because then the user works with it. Even then, it cannot insert input.
fn leave_terminal() -> io::Result<()> {
    if io::stdin().is_terminal() {
        return sys::refuse_typing();
    }
    match File::options().read(true).write(true).open("/dev/tty") {
        Ok(terminal) => sys::leave_terminal(terminal.as_fd()),
        // There is no terminal, or it cannot be opened.
        Err(_) => Ok(()),
    }
}
