//! This program again, as a helper beside whatever else we run. Sweeps spare it, and the terminal's signals do not reach it. It ends by itself
//! when we close its input, so it never outlives us for long.

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use super::environment::is_removed;
use super::{forget_spared, start_spared};
use crate::base::own_program::own_program;

/// A running helper. Dropping it asks it to end.
#[derive(Debug)]
pub(crate) struct HelperProgram {
    _input: ChildStdin,
    answer: Receiver<String>,
}

impl HelperProgram {
    /// Starts it with this line as its input, which stays open.
    pub(crate) fn start(arguments: &[OsString], line: &[u8]) -> io::Result<Self> {
        let mut command = Command::new(own_program()?);
        command.args(arguments).current_dir("/").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_removed(name)) {
            command.env_remove(name);
        }
        let mut child = start_spared(&mut command)?;
        let Some(mut input) = child.stdin.take() else { return Err(io::ErrorKind::BrokenPipe.into()) };
        let (sender, answer) = channel();
        thread::Builder::new().name("helper".to_owned()).spawn(move || {
            // If nobody waits for the answer any more, it is not needed.
            let _ = sender.send(read_answer(child));
        })?;
        input.write_all(line)?;
        input.write_all(b"\n")?;
        Ok(Self { _input: input, answer })
    }

    /// What it printed, once it has ended. `None` if that takes longer than `patience`.
    pub(crate) fn answer(&self, patience: Duration) -> Option<String> {
        self.answer.recv_timeout(patience).ok()
    }
}

fn read_answer(mut child: Child) -> String {
    let mut text = String::new();
    if let Some(mut pipe) = child.stdout.take() {
        let _ = pipe.read_to_string(&mut text);
    }
    let _ = child.wait();
    forget_spared(child.id());
    text
}
