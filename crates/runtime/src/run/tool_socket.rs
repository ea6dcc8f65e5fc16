//! The socket on which tool calls of the run's agent arrive. It is in a folder of the run's directory that only the agent's view shows.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use verdone_core::journal::agent_tools::{Answer, Query};
use verdone_core::journal::update::{Reporter, Update};

use crate::process::signal::Signals;

/// The folder below the run's directory, and the socket in it.
const FOLDER: &str = "tools";
const SOCKET: &str = "socket";
/// For a whole call, and for the whole answer to it. Our own server writes its line at once, and then waits for the answer.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often a wait looks for signals.
const LOOK: Duration = Duration::from_millis(50);
/// Longer lines are not calls.
const LONGEST: usize = 1024 * 1024;

#[derive(Debug)]
pub struct ToolSocket {
    listener: UnixListener,
    path: PathBuf,
}

/// One call that waits for its answer.
#[derive(Debug)]
pub(super) struct Caller {
    stream: UnixStream,
}

impl ToolSocket {
    /// `None` after saying why the agent has no tools.
    pub(super) fn of_run(run_dir: &Path, reporter: &mut dyn Reporter) -> Option<Self> {
        let say = |error: &io::Error| {
            reporter.report(Update::Notice { text: &format!("the agent's tools are not available: {error}") });
        };
        Self::listen(run_dir).inspect_err(say).ok()
    }

    fn listen(run_dir: &Path) -> io::Result<Self> {
        let folder = run_dir.join(FOLDER);
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let listener = UnixListener::bind(short_path(&File::open(&folder)?))?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, path: folder.join(SOCKET) })
    }

    /// The socket as the agent sees it, in its current folder.
    pub(super) fn seen_from(cwd: &Path, root: &Path, run_dir: &Path) -> PathBuf {
        let below = run_dir.strip_prefix(root).unwrap_or(run_dir);
        cwd.join(below).join(FOLDER).join(SOCKET)
    }

    /// The next call, if one has arrived. Looks at one connection only: whatever else connects waits for the next tick. A call that cannot
    /// be read is answered here.
    pub(super) fn next(&self, signals: &Signals) -> Option<(Query, Caller)> {
        if signals.stop().is_some() {
            return None;
        }
        let (stream, _) = self.listener.accept().ok()?;
        let mut caller = Caller { stream };
        let unreadable = |error| Answer::error(&format!("the call cannot be read: {error}"), "use `verdone mcp`");
        match caller.read(signals).map_err(unreadable).and_then(checked) {
            Ok(query) => Some((query, caller)),
            Err(refusal) => {
                caller.answer(&refusal, signals);
                None
            }
        }
    }
}

fn checked(query: Query) -> Result<Query, Answer> {
    match &query {
        Query::Call(call) => call.check()?,
        Query::Read(_) => {}
    }
    Ok(query)
}

impl Caller {
    fn read(&mut self, signals: &Signals) -> io::Result<Query> {
        self.stream.set_nonblocking(false)?;
        self.stream.set_read_timeout(Some(LOOK))?;
        self.stream.set_write_timeout(Some(LOOK))?;
        let deadline = Deadline::new(signals);
        let mut line = Vec::new();
        let mut part = [0; 16 * 1024];
        while line.last() != Some(&b'\n') && line.len() <= LONGEST {
            match deadline.attempt(|| self.stream.read(&mut part))? {
                0 => break,
                length => line.extend_from_slice(&part[..length]),
            }
        }
        Ok(serde_json::from_slice(&line)?)
    }

    /// A caller that is gone or does not read needs no answer.
    pub(super) fn answer(&mut self, answer: &Answer, signals: &Signals) {
        let Ok(line) = serde_json::to_vec(answer) else { return };
        let deadline = Deadline::new(signals);
        let mut left = line.as_slice();
        while !left.is_empty() {
            match deadline.attempt(|| self.stream.write(left)) {
                Ok(written) if written > 0 => left = &left[written..],
                Ok(_) | Err(_) => return,
            }
        }
    }
}

/// The end of an exchange that has several steps: one byte at a time must not hold up the run.
struct Deadline<'s> {
    until: Instant,
    signals: &'s Signals,
}

impl<'s> Deadline<'s> {
    fn new(signals: &'s Signals) -> Self {
        Self { until: Instant::now() + PATIENCE, signals }
    }

    /// Repeats a step that waits for a short time until it gets something.
    fn attempt(&self, mut step: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
        loop {
            if Instant::now() >= self.until || self.signals.stop().is_some() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            match step() {
                Err(error) if is_early(error.kind()) => {}
                result => return result,
            }
        }
    }
}

fn is_early(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

impl Drop for ToolSocket {
    fn drop(&mut self) {
        // The run's directory stays, and a socket in it that nobody listens on would only confuse.
        let _ = fs::remove_file(&self.path);
    }
}

/// A socket's path may have at most 107 bytes, and a project's path is often longer. This one is short everywhere.
fn short_path(folder: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(SOCKET)
}

#[cfg(test)]
mod tests {
    use super::*;
    use verdone_core::base::finish::StopSignal;
    use verdone_core::journal::agent_tools::{Call, LONGEST_TEXT, Recall, Resource};

    /// Less than two deadlines.
    const SOON: Duration = Duration::from_millis(1_900);

    fn listening() -> (tempfile::TempDir, ToolSocket) {
        let dir = tempfile::tempdir().unwrap();
        let socket = ToolSocket::listen(dir.path()).unwrap();
        (dir, socket)
    }

    fn took(work: impl FnOnce()) -> Duration {
        let began = Instant::now();
        work();
        began.elapsed()
    }

    #[test]
    fn silent_connections_cost_one_deadline_at_a_time_and_calls_after_them_arrive() {
        let (_dir, socket) = listening();
        let signals = Signals::none();
        let _silent = [UnixStream::connect(&socket.path).unwrap(), UnixStream::connect(&socket.path).unwrap()];
        let mut caller = UnixStream::connect(&socket.path).unwrap();
        let query = Query::Read(Resource::Plan);
        writeln!(caller, "{}", serde_json::to_string(&query).unwrap()).unwrap();
        for _ in 0..2 {
            assert!(took(|| assert!(socket.next(&signals).is_none())) < SOON);
        }
        assert_eq!(socket.next(&signals).unwrap().0, query);
    }

    #[test]
    fn a_caller_that_trickles_or_does_not_read_has_one_deadline_for_everything() {
        let (_dir, socket) = listening();
        let signals = Signals::none();
        let mut slow = UnixStream::connect(&socket.path).unwrap();
        let trickle = std::thread::spawn(move || {
            while slow.write_all(b" ").is_ok() {
                std::thread::sleep(Duration::from_micros(100));
            }
        });
        assert!(took(|| assert!(socket.next(&signals).is_none())) < SOON);
        trickle.join().unwrap();
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_write_timeout(Some(LOOK)).unwrap();
        let huge = Answer { is_error: false, body: "x".repeat(8 * 1024 * 1024).into() };
        let mut theirs_reads = theirs.try_clone().unwrap();
        let sips = std::thread::spawn(move || {
            while theirs_reads.read(&mut [0; 4096]).is_ok_and(|length| length > 0) {
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        assert!(took(|| Caller { stream: ours }.answer(&huge, &signals)) < SOON);
        theirs.shutdown(std::net::Shutdown::Both).unwrap();
        sips.join().unwrap();
    }

    #[test]
    fn a_call_that_no_server_would_send_is_refused_by_the_run() {
        let (_dir, socket) = listening();
        let mut caller = UnixStream::connect(&socket.path).unwrap();
        let text = "x".repeat(LONGEST_TEXT + 1);
        let query = Query::Call(Call::Recall(Recall { query: text }));
        writeln!(caller, "{}", serde_json::to_string(&query).unwrap()).unwrap();
        assert!(socket.next(&Signals::none()).is_none());
        let mut answer = String::new();
        caller.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("`query` is longer than"), "{answer}");
    }

    #[test]
    fn a_stop_signal_is_seen_before_and_during_a_call() {
        let (_dir, socket) = listening();
        let signals = Signals::none();
        let _silent = UnixStream::connect(&socket.path).unwrap();
        let later = signals.clone();
        let raiser = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            later.raise(StopSignal::Sigterm);
        });
        assert!(took(|| assert!(socket.next(&signals).is_none())) < PATIENCE / 2);
        raiser.join().unwrap();
        let mut caller = UnixStream::connect(&socket.path).unwrap();
        writeln!(caller, "{}", serde_json::to_string(&Query::Read(Resource::Plan)).unwrap()).unwrap();
        assert!(socket.next(&signals).is_none());
    }
}
