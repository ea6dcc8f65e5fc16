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

/// The folder below the run's directory, and the socket in it.
const FOLDER: &str = "tools";
const SOCKET: &str = "socket";
/// Our own server writes its line at once; anyone else has to wait for the next call.
const PATIENCE: Duration = Duration::from_secs(2);
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

    /// The next call, if one has arrived. Calls that cannot be read are answered here.
    pub(super) fn next(&self) -> Option<(Query, Caller)> {
        loop {
            let (stream, _) = self.listener.accept().ok()?;
            let mut caller = Caller { stream };
            match caller.read() {
                Ok(query) => return Some((query, caller)),
                Err(error) => caller.answer(&Answer::error(&format!("the call cannot be read: {error}"), "use `verdone mcp`")),
            }
        }
    }
}

impl Caller {
    fn read(&mut self) -> io::Result<Query> {
        self.stream.set_nonblocking(false)?;
        self.stream.set_write_timeout(Some(PATIENCE))?;
        let until = Instant::now() + PATIENCE;
        let mut line = Vec::new();
        let mut part = [0; 16 * 1024];
        // The limit is for the whole line: one byte a second must not hold up the run.
        while line.last() != Some(&b'\n') && line.len() <= LONGEST {
            let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            self.stream.set_read_timeout(Some(left))?;
            match self.stream.read(&mut part)? {
                0 => break,
                length => line.extend_from_slice(&part[..length]),
            }
        }
        Ok(serde_json::from_slice(&line)?)
    }

    /// A caller that is gone needs no answer.
    pub(super) fn answer(&mut self, answer: &Answer) {
        if let Ok(line) = serde_json::to_vec(answer) {
            let _ = self.stream.write_all(&line);
        }
    }
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
