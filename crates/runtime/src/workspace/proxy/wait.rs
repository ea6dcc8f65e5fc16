//! Waiting for a socket, but not longer than the proxy serves or a deadline allows.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Waits for one of the events. Fails when the deadline passes or the proxy ends.
pub(super) fn wait<'a>(mut events: Vec<PollFd<'a>>, ended: &'a UnixStream, until: Instant) -> io::Result<()> {
    events.push(PollFd::new(ended, PollFlags::IN));
    let ready = loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        match poll(&mut events, Some(&timeout)) {
            Ok(ready) => break ready,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    };
    match ready {
        0 => Err(io::ErrorKind::TimedOut.into()),
        _ if events.last().is_some_and(|event| !event.revents().is_empty()) => Err(io::ErrorKind::ConnectionAborted.into()),
        _ => Ok(()),
    }
}

/// Reads some bytes from a socket that does not block; 0 at its end.
pub(super) fn read_some(mut socket: &TcpStream, into: &mut [u8], ended: &UnixStream, until: Instant) -> io::Result<usize> {
    loop {
        match socket.read(into) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait(vec![PollFd::new(&socket, PollFlags::IN)], ended, until)?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Writes everything to a socket that does not block.
pub(super) fn write_all(mut socket: &TcpStream, mut bytes: &[u8], ended: &UnixStream, until: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        match socket.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait(vec![PollFd::new(&socket, PollFlags::OUT)], ended, until)?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
