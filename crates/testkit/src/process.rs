//! A child process in its own group, whose output is collected while it runs and which always ends.

use std::io::Read;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// How long a pipe may stay open after the process has ended: a background child can keep it open.
const PIPE_GRACE: Duration = Duration::from_secs(2);

/// The result of a finished process.
#[derive(Debug, Clone)]
pub struct Output {
    /// The command as typed in a shell.
    pub command: String,
    pub stdout: String,
    pub stderr: String,
    /// The exit code; death by signal n is -n, to distinguish it from an exit with 128 + n.
    pub code: i32,
    pub duration: Duration,
}

impl Output {
    /// The command, its output and how it ended, as readable text.
    pub fn transcript(&self) -> String {
        let mut text = format!("$ {}\n", self.command);
        text.push_str(&ended_by_newline(&self.stdout));
        if !self.stderr.is_empty() {
            text.push_str("--- stderr\n");
            text.push_str(&ended_by_newline(&self.stderr));
        }
        text + &format!("--- exit {}\n", self.code)
    }

    /// Panics with the complete transcript unless the exit code is this one.
    #[track_caller]
    pub fn assert_code(&self, code: i32) -> &Self {
        assert_eq!(self.code, code, "unexpected exit code\n{}", self.transcript());
        self
    }
}

/// A started process that has not been waited for. Dropping it while it runs kills its whole group.
#[derive(Debug)]
pub struct Running {
    command: String,
    pid: Pid,
    started: Instant,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    open_pipes: u8,
    status: Option<ExitStatus>,
}

#[derive(Debug, Clone, Copy)]
enum Stream {
    Stdout,
    Stderr,
}

impl Running {
    pub(crate) fn start(command: Command, root: &Path) -> Self {
        Self::start_with(command, root, Stdio::null()).0
    }

    /// The same, with a pipe to its standard input.
    pub(crate) fn start_with_input(command: Command, root: &Path) -> (Self, ChildStdin) {
        let (running, input) = Self::start_with(command, root, Stdio::piped());
        (running, input.expect("stdin was asked for as a pipe"))
    }

    fn start_with(mut command: Command, root: &Path, stdin: Stdio) -> (Self, Option<ChildStdin>) {
        let line = command_line(&command, root);
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start `{line}`: {error}"));
        let pid = Pid::from_child(&child);
        let shared = Arc::new(Shared { state: Mutex::new(State { open_pipes: 2, ..State::default() }), ..Shared::default() });
        let stdout = child.stdout.take().expect("stdout was asked for as a pipe");
        let stderr = child.stderr.take().expect("stderr was asked for as a pipe");
        let stdin = child.stdin.take();
        collect(Arc::clone(&shared), Stream::Stdout, stdout);
        collect(Arc::clone(&shared), Stream::Stderr, stderr);
        reap(Arc::clone(&shared), child);
        (Self { command: line, pid, started: Instant::now(), shared }, stdin)
    }

    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Sends a signal to the process alone.
    pub fn signal(&self, signal: Signal) {
        // It may have ended already, which is fine.
        let _ = kill_process(self.pid, signal);
    }

    /// Sends a signal to the whole process group, like a terminal.
    pub fn signal_group(&self, signal: Signal) {
        let _ = kill_process_group(self.pid, signal);
    }

    /// Waits until the text has been printed on stdout or stderr; panics if the deadline passes or the process ends first.
    #[track_caller]
    pub fn wait_for(&self, text: &str, deadline: Duration) {
        let (state, seen) = self.wait_until(deadline, |state| {
            contains(&state.stdout, text) || contains(&state.stderr, text) || (state.status.is_some() && state.open_pipes == 0)
        });
        let printed = contains(&state.stdout, text) || contains(&state.stderr, text);
        let output = self.output(&state);
        drop(state);
        assert!(seen && printed, "never printed {text:?}\n{}", output.transcript());
    }

    /// Waits until stdout satisfies the condition and returns it; panics if the deadline passes or the process ends first.
    #[track_caller]
    pub fn wait_for_stdout(&self, what: &str, deadline: Duration, reached: impl Fn(&str) -> bool) -> String {
        let text = |state: &State| String::from_utf8_lossy(&state.stdout).into_owned();
        let (state, _) =
            self.wait_until(deadline, |state| reached(&text(state)) || (state.status.is_some() && state.open_pipes == 0));
        let (stdout, output) = (text(&state), self.output(&state));
        drop(state);
        assert!(reached(&stdout), "never saw {what}\n{}", output.transcript());
        stdout
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        self.shared.lock().status.is_some()
    }

    /// Waits until the process ends. After the deadline, kills the whole group and panics with the output so far.
    #[track_caller]
    pub fn wait(self, deadline: Duration) -> Output {
        let (state, ended) = self.wait_until(deadline, |state| state.status.is_some());
        if !ended {
            let output = self.output(&state);
            drop(state);
            panic!("still running after {deadline:?}: killed\n{}", output.transcript());
        }
        drop(state);
        let (state, _) = self.wait_until(PIPE_GRACE, |state| state.open_pipes == 0);
        self.output(&state)
    }

    fn wait_until(&self, patience: Duration, reached: impl Fn(&State) -> bool) -> (MutexGuard<'_, State>, bool) {
        let (state, timeout) = self
            .shared
            .changed
            .wait_timeout_while(self.shared.lock(), patience, |state| !reached(state))
            .unwrap_or_else(PoisonError::into_inner);
        (state, !timeout.timed_out())
    }

    fn output(&self, state: &State) -> Output {
        let code = state.status.map_or(-9, |status| status.code().unwrap_or_else(|| -status.signal().unwrap_or_default()));
        Output {
            command: self.command.clone(),
            stdout: String::from_utf8_lossy(&state.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&state.stderr).into_owned(),
            code,
            duration: self.started.elapsed(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // After a normal end nothing is killed: survivors must stay visible to `assert_no_survivors`.
        if !self.has_ended() {
            self.signal_group(Signal::KILL);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn collect(shared: Arc<Shared>, stream: Stream, mut pipe: impl Read + Send + 'static) {
    thread::spawn(move || {
        let mut buffer = vec![0; 16 * 1024];
        loop {
            let count = match pipe.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            let mut state = shared.lock();
            match stream {
                Stream::Stdout => state.stdout.extend_from_slice(&buffer[..count]),
                Stream::Stderr => state.stderr.extend_from_slice(&buffer[..count]),
            }
            drop(state);
            shared.changed.notify_all();
        }
        shared.lock().open_pipes -= 1;
        shared.changed.notify_all();
    });
}

fn reap(shared: Arc<Shared>, mut child: Child) {
    thread::spawn(move || {
        let status = child.wait().expect("a child that was started can be waited for");
        shared.lock().status = Some(status);
        shared.changed.notify_all();
    });
}

fn command_line(command: &Command, root: &Path) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    std::iter::once(program)
        .chain(command.get_args())
        .map(|word| quoted(&word.to_string_lossy().replace(root.to_string_lossy().as_ref(), "[SANDBOX]")))
        .collect::<Vec<_>>()
        .join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_=./:,@%+[]".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len().max(1)).any(|window| window == text.as_bytes())
}

fn ended_by_newline(text: &str) -> String {
    if text.is_empty() || text.ends_with('\n') { text.to_owned() } else { format!("{text}\u{21b5}\n") }
}
