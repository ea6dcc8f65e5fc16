//! Copies bytes between two sockets in both directions until both are done.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};

use super::wait::wait;

/// A connection without any traffic for this long is closed. A model that thinks sends something sooner.
const IDLE: Duration = Duration::from_mins(15);
const BUFFER: usize = 16 * 1024;

/// One direction.
#[derive(Debug)]
struct Direction<'a> {
    from: &'a TcpStream,
    to: &'a TcpStream,
    buffer: Vec<u8>,
    /// The part of the buffer that is not written yet.
    pending: std::ops::Range<usize>,
    /// Nothing more comes.
    ended: bool,
    /// And the receiver knows.
    done: bool,
}

/// Sockets must not block.
pub(super) fn relay(client: &TcpStream, server: &TcpStream, ended: &UnixStream) -> io::Result<()> {
    let mut directions = [Direction::new(client, server), Direction::new(server, client)];
    loop {
        for direction in &mut directions {
            direction.advance()?;
        }
        if directions.iter().all(|direction| direction.done) {
            return Ok(());
        }
        wait(directions.iter().filter_map(Direction::event).collect(), ended, Instant::now() + IDLE)?;
    }
}

impl<'a> Direction<'a> {
    fn new(from: &'a TcpStream, to: &'a TcpStream) -> Self {
        Self { from, to, buffer: vec![0; BUFFER], pending: 0..0, ended: false, done: false }
    }

    /// What has to happen before [`Self::advance`] can do something.
    fn event(&self) -> Option<PollFd<'a>> {
        match (self.done, self.pending.is_empty()) {
            (true, _) => None,
            (false, true) => Some(PollFd::new(self.from, PollFlags::IN)),
            (false, false) => Some(PollFd::new(self.to, PollFlags::OUT)),
        }
    }

    /// Copies what is possible without waiting, at most one buffer.
    fn advance(&mut self) -> io::Result<()> {
        if self.pending.is_empty() && !self.ended {
            match ready(self.from.read(&mut self.buffer))? {
                Some(0) => self.ended = true,
                Some(count) => self.pending = 0..count,
                None => return Ok(()),
            }
        }
        if !self.pending.is_empty()
            && let Some(count) = ready(self.to.write(&self.buffer[self.pending.clone()]))?
        {
            self.pending.start += count;
        }
        if self.ended && self.pending.is_empty() && !self.done {
            self.done = true;
            // It may already be closed.
            let _ = self.to.shutdown(Shutdown::Write);
        }
        Ok(())
    }
}

/// `None` if the call would have to wait.
fn ready(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(count) => Ok(Some(count)),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
        Err(error) => Err(error),
    }
}
