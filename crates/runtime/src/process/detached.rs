//! A process that outlives us: this program again, in a new session and without any of our file descriptors.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::environment::is_removed;
use crate::base::own_program::own_program;

/// Starts this program with other arguments. Its output goes to the file, or nowhere. It must call [`own_session`] first.
pub(crate) fn start_detached(arguments: &[OsString], cwd: &Path, output: Option<std::fs::File>) -> io::Result<Child> {
    let mut command = Command::new(own_program()?);
    command.args(arguments).current_dir(cwd).stdin(Stdio::null());
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_removed(name)) {
        command.env_remove(name);
    }
    match output {
        Some(file) => command.stdout(file.try_clone()?).stderr(file),
        None => command.stdout(Stdio::null()).stderr(Stdio::null()),
    };
    command.spawn()
}

/// The same for a process that gets its input from us and is not waited for.
pub(crate) fn start_detached_with(arguments: &[OsString], cwd: &Path, input: &[u8]) -> io::Result<()> {
    let mut command = Command::new(own_program()?);
    command.args(arguments).current_dir(cwd).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_removed(name)) {
        command.env_remove(name);
    }
    let mut child = command.spawn()?;
    child.stdin.take().map_or(Ok(()), |mut pipe| pipe.write_all(input))
}

/// The same with our environment and its output in pipes, for as long as it uses them.
pub fn start_detached_piped(arguments: &[OsString]) -> io::Result<Child> {
    let mut command = Command::new(own_program()?);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn()
}

/// Detaches from the terminal and from the group of the process that started us, so that their signals do not reach us.
pub fn own_session() {
    let _ = rustix::process::setsid();
}

/// Asks a process to end, as Ctrl-C in its terminal would.
pub fn interrupt_process(pid: u32) -> io::Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(kill_process(pid, Signal::INT)?)
}

/// Closes our standard output and error for whoever reads them. Later output goes to a new file, or nowhere if that cannot be created.
pub fn redirect_output(path: &Path) -> io::Result<()> {
    let create = OpenOptions::new().create_new(true).append(true).open(path);
    let target = create.or_else(|_| OpenOptions::new().write(true).open("/dev/null"))?;
    rustix::stdio::dup2_stdout(&target)?;
    rustix::stdio::dup2_stderr(&target)?;
    Ok(())
}
