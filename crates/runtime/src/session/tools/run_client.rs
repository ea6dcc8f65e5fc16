//! Asks the run: one connection for each query, one line there and one line back.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use verdone_core::journal::agent_tools::{Answer, Query};

use crate::process::signal::Signals;

/// How often a call that waits for its answer looks whether it was cancelled.
const PATIENCE: Duration = Duration::from_millis(100);
/// Longer answers are not ours.
const LONGEST: usize = 4 * 1024 * 1024;

pub(super) fn ask(socket: &Path, query: &Query, signals: &Signals) -> Answer {
    match exchange(socket, query, signals) {
        Ok(answer) => answer,
        Err(error) => Answer::error(
            &format!("the run does not answer: {error}"),
            "continue with the story and end your turn: the run verifies it then",
        ),
    }
}

fn exchange(socket: &Path, query: &Query, signals: &Signals) -> io::Result<Answer> {
    let mut stream = connect(socket)?;
    let mut line = serde_json::to_vec(query)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    stream.shutdown(Shutdown::Write)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut answer = Vec::new();
    let mut part = [0; 16 * 1024];
    loop {
        match stream.read(&mut part) {
            Ok(0) => return Ok(serde_json::from_slice(&answer)?),
            Ok(length) => answer.extend_from_slice(&part[..length]),
            Err(error) if is_waiting(&error) => {}
            Err(error) => return Err(error),
        }
        if answer.len() > LONGEST {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "its answer is too long"));
        }
        if signals.stop().is_some() {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "the call was cancelled"));
        }
    }
}

/// A socket's path may have at most 107 bytes; through its folder, it is always short enough.
fn connect(socket: &Path) -> io::Result<UnixStream> {
    let (Some(folder), Some(name)) = (socket.parent(), socket.file_name()) else { return UnixStream::connect(socket) };
    let folder = File::open(folder)?;
    UnixStream::connect(Path::new(&format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name))
}

fn is_waiting(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}
