//! Starts git: explicit arguments, fixed config, a scrubbed environment, no terminal, its own process group and a deadline.
//!
//! There are two modes. Plumbing uses the C locale, takes no optional locks, runs no git hooks and ignores replacement objects. A
//! user's commit keeps the user's locale, config and git hooks, because those hooks are the user's checks.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};

use super::error::GitError;
use crate::base::active_clock::Stopwatch;
use crate::base::fault;
use crate::launcher::{Failure, Step};
use crate::launcher::{Inside, LaunchReport};
use crate::process::EnvPlan;

/// Between TERM and KILL, so that git can remove its lock files.
const GRACE: Duration = Duration::from_secs(2);
/// How often the stopwatch is read. It treats a longer gap as time in which this process was stopped.
const LOOK: Duration = Duration::from_millis(200);
/// Fits into any pipe buffer, so that writing never blocks.
const INLINE_STDIN: usize = 4096;

/// Inherited from an outer git (a hook, an alias), these would point us at another repository.
const SCRUBBED: [&str; 26] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INDEX_VERSION",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_QUARANTINE_PATH",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
    "GIT_GRAFT_FILE",
    "GIT_SHALLOW_FILE",
    "GIT_REPLACE_REF_BASE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_NOTES_REF",
    "GIT_REFLOG_ACTION",
    "GIT_LITERAL_PATHSPECS",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
    "GIT_EXTERNAL_DIFF",
    "GIT_DIFF_OPTS",
];

const ALWAYS: [&str; 5] = ["--no-pager", "-c", "gc.auto=0", "-c", "maintenance.auto=false"];
const PLUMBING: [&str; 8] =
    ["-c", "core.fsmonitor=false", "-c", "core.splitIndex=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false"];

/// A git process to be started.
#[derive(Debug)]
pub(super) struct Call {
    what: String,
    command: Command,
    stdin: Vec<u8>,
    deadline: Duration,
    /// Where the launcher of a workspace reports why it could not start git.
    launch: Option<LaunchReport>,
}

/// The result of a finished git process.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: String,
}

impl Call {
    pub(super) fn plumbing(dir: &Path, subcommand: &str, deadline: Duration) -> Self {
        let mut call = Self::new(dir, deadline, &PLUMBING, subcommand);
        call.command.env("LC_ALL", "C").env("GIT_OPTIONAL_LOCKS", "0").env("GIT_NO_REPLACE_OBJECTS", "1");
        call
    }

    /// Like [`Self::plumbing`], with more settings (`-c`, `name=value`, ...).
    pub(super) fn plumbing_with(dir: &Path, settings: &[&str], subcommand: &str, deadline: Duration) -> Self {
        let mut call = Self::new(dir, deadline, &[&PLUMBING, settings].concat(), subcommand);
        call.command.env("LC_ALL", "C").env("GIT_OPTIONAL_LOCKS", "0").env("GIT_NO_REPLACE_OBJECTS", "1");
        call
    }

    /// Like [`Self::of_the_user`], with more settings.
    pub(super) fn of_the_user_with(dir: &Path, settings: &[&str], subcommand: &str, deadline: Duration) -> Self {
        Self::new(dir, deadline, settings, subcommand)
    }

    /// A call with the user's git hooks, signing and locale.
    pub(super) fn of_the_user(dir: &Path, subcommand: &str, deadline: Duration) -> Self {
        Self::new(dir, deadline, &[], subcommand)
    }

    fn new(dir: &Path, deadline: Duration, config: &[&str], subcommand: &str) -> Self {
        let mut command = Command::new("git");
        command.current_dir(dir).args(ALWAYS).args(config).arg(subcommand).process_group(0);
        for name in SCRUBBED {
            command.env_remove(name);
        }
        command.env_remove(fault::VARIABLE);
        command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_EDITOR", ":");
        Self { what: subcommand.to_owned(), command, stdin: Vec::new(), deadline, launch: None }
    }

    /// Runs git in a workspace. The folder of the call is then a path inside it. Arguments and variables may still be added.
    pub(super) fn inside(mut self, inside: &Inside) -> Result<Self, GitError> {
        let cwd = self.command.get_current_dir().unwrap_or(Path::new("/")).to_owned();
        let git = [self.command.get_program()].into_iter().chain(self.command.get_args());
        let argv: Vec<OsString> = git.map(OsStr::to_owned).collect();
        // The program's arguments come last, so that more can follow.
        let (report, line) = LaunchReport::begin(inside, &argv, &cwd).map_err(GitError::io(&cwd))?;
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]).current_dir("/").process_group(0);
        for (name, value) in self.command.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        self.command = command;
        self.launch = Some(report);
        Ok(self)
    }

    /// Applies the environment of a view.
    pub(super) fn with_plan(mut self, plan: &EnvPlan) -> Self {
        for name in &plan.unset {
            self.command.env_remove(name);
        }
        self.command.envs(plan.set.iter().map(|(name, value)| (name, value)));
        self
    }

    /// Passes settings through the environment, so that their names may contain any character.
    pub(super) fn settings(mut self, settings: impl Iterator<Item = (String, String)>) -> Self {
        let mut count = 0;
        for (name, value) in settings {
            self.command.env(format!("GIT_CONFIG_KEY_{count}"), name).env(format!("GIT_CONFIG_VALUE_{count}"), value);
            count += 1;
        }
        self.command.env("GIT_CONFIG_COUNT", count.to_string());
        self
    }

    pub(super) fn args<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(mut self, args: I) -> Self {
        self.command.args(args);
        self
    }

    pub(super) fn envs(mut self, variables: &[(OsString, OsString)]) -> Self {
        self.command.envs(variables.iter().map(|(name, value)| (name, value)));
        self
    }

    pub(super) fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.command.env(name, value.into());
        self
    }

    pub(super) fn stdin(mut self, bytes: Vec<u8>) -> Self {
        self.stdin = bytes;
        self
    }

    /// Runs git and returns its standard output. Fails if git does.
    pub(super) fn run(self) -> Result<Vec<u8>, GitError> {
        let what = self.what.clone();
        self.answer()?.success(&what)
    }

    /// Like [`Self::run`], without the trailing newline.
    pub(super) fn line(self) -> Result<String, GitError> {
        Ok(String::from_utf8_lossy(&self.run()?).trim_end_matches('\n').to_owned())
    }

    /// Runs git and returns its answer, whether it succeeded or not. Being killed by a signal is an error.
    pub(super) fn answer(self) -> Result<Answer, GitError> {
        let what = self.what.clone();
        let answer = self.collect_output()?;
        if answer.status.code().is_none() { Err(answer.failure(&what)) } else { Ok(answer) }
    }

    fn collect_output(mut self) -> Result<Answer, GitError> {
        let stdin = std::mem::take(&mut self.stdin);
        if stdin.len() <= INLINE_STDIN {
            self.command.stdin(if stdin.is_empty() { Stdio::null() } else { Stdio::piped() });
            let mut child = self.spawn(Stdio::piped(), Stdio::piped())?;
            if let Some(mut pipe) = child.stdin.take() {
                // If git has already exited, its own message says why.
                let _ = pipe.write_all(&stdin);
            }
            return self.collect(child);
        }
        let (answer, _) = self.feed(|pipe| pipe.write_all(&stdin).map_err(|_| GitError::Missing))?;
        Ok(answer)
    }

    /// Writes standard input from a function, on a separate thread while the output is read.
    pub(super) fn feed<T: Send>(
        mut self,
        write: impl FnOnce(&mut ChildStdin) -> Result<T, GitError> + Send,
    ) -> Result<(Answer, Result<T, GitError>), GitError> {
        self.command.stdin(Stdio::piped());
        let mut child = self.spawn(Stdio::piped(), Stdio::piped())?;
        let pipe = child.stdin.take();
        thread::scope(|scope| {
            let writer = scope.spawn(move || {
                let mut pipe = pipe.expect("stdin was asked to be a pipe");
                write(&mut pipe)
            });
            let answer = self.collect(child)?;
            let written = writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok((answer, written))
        })
    }

    /// Sends the output to a file, because a git hook may leave a process behind that would keep a pipe open.
    pub(super) fn answer_through(mut self, output: &File, called_off: &dyn Fn() -> bool) -> Result<Outcome, GitError> {
        let stdin = std::mem::take(&mut self.stdin);
        let to_file = || output.try_clone().map(Stdio::from).map_err(GitError::io(Path::new("git output")));
        self.command.stdin(Stdio::piped());
        let mut child = self.spawn(to_file()?, to_file()?)?;
        let pipe = child.stdin.take();
        thread::scope(|scope| {
            scope.spawn(move || pipe.map(|mut pipe| pipe.write_all(&stdin)));
            let until = Until::after(self.deadline);
            let ended = wait_unless(&mut child, until, called_off).map_err(GitError::io(Path::new("git")))?;
            match ended {
                Some(status) => self.check_launch(status)?,
                None => end(&mut child).map_err(GitError::io(Path::new("git")))?,
            }
            Ok(match ended {
                Some(status) => Outcome::Ended(status),
                None if called_off() => Outcome::CalledOff,
                None => Outcome::TimedOut,
            })
        })
    }

    fn spawn(&mut self, stdout: Stdio, stderr: Stdio) -> Result<Child, GitError> {
        self.command.stdout(stdout).stderr(stderr).spawn().map_err(|error| {
            let directory = self.command.get_current_dir().unwrap_or(Path::new("."));
            if error.kind() == io::ErrorKind::NotFound && directory.is_dir() {
                GitError::Missing
            } else {
                GitError::Io { path: directory.to_owned(), source: error }
            }
        })
    }

    fn check_launch(&self, status: ExitStatus) -> Result<(), GitError> {
        match self.launch.as_ref().and_then(|report| report.failure(status)) {
            None => Ok(()),
            Some(Failure { step: Step::Exec, .. }) => Err(GitError::Missing),
            Some(failure) => Err(GitError::NotStarted(failure)),
        }
    }

    fn collect(&self, mut child: Child) -> Result<Answer, GitError> {
        let until = Until::after(self.deadline);
        let out = child.stdout.take().expect("stdout was asked to be a pipe");
        let err = child.stderr.take().expect("stderr was asked to be a pipe");
        let mut buffers = [Vec::new(), Vec::new()];
        let in_time = read_both([out.as_fd(), err.as_fd()], &mut buffers, until).map_err(GitError::io(Path::new("git")))?;
        let status = if in_time { wait_until(&mut child, until).map_err(GitError::io(Path::new("git")))? } else { None };
        let Some(status) = status else {
            end(&mut child).map_err(GitError::io(Path::new("git")))?;
            return Err(GitError::TimedOut { what: self.what.clone(), seconds: self.deadline.as_secs() });
        };
        self.check_launch(status)?;
        let [stdout, stderr] = buffers;
        Ok(Answer { status, stdout, stderr: String::from_utf8_lossy(&stderr).trim_end().to_owned() })
    }
}

/// How a call that writes its output to a file ended.
#[derive(Debug)]
pub(super) enum Outcome {
    Ended(ExitStatus),
    TimedOut,
    CalledOff,
}

impl Answer {
    pub(super) fn success(self, what: &str) -> Result<Vec<u8>, GitError> {
        if self.status.success() {
            return Ok(self.stdout);
        }
        Err(self.failure(what))
    }

    pub(super) fn failure(self, what: &str) -> GitError {
        let message = if self.stderr.is_empty() { self.status.to_string() } else { self.stderr };
        GitError::Failed { what: what.to_owned(), code: self.status.code(), message }
    }
}

/// A deadline that pauses while this process is stopped or the machine sleeps.
#[derive(Clone, Copy)]
struct Until {
    watch: Stopwatch,
    deadline: Duration,
}

impl Until {
    fn after(deadline: Duration) -> Self {
        Self { watch: Stopwatch::start(), deadline }
    }

    fn left(self) -> Duration {
        self.deadline.saturating_sub(self.watch.elapsed())
    }
}

/// Returns true if both streams ended before the deadline.
fn read_both(streams: [BorrowedFd<'_>; 2], buffers: &mut [Vec<u8>; 2], until: Until) -> io::Result<bool> {
    let mut open = [true, true];
    let mut chunk = vec![0; 64 * 1024];
    while open.contains(&true) {
        let left = until.left();
        if left.is_zero() {
            return Ok(false);
        }
        let wanted: Vec<usize> = (0..2).filter(|at| open[*at]).collect();
        let mut fds: Vec<PollFd<'_>> = wanted.iter().map(|at| PollFd::from_borrowed_fd(streams[*at], PollFlags::IN)).collect();
        let patience = left.min(LOOK);
        let timeout = Timespec { tv_sec: 0, tv_nsec: patience.subsec_nanos().into() };
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for (fd, at) in fds.iter().zip(wanted) {
            if fd.revents().is_empty() {
                continue;
            }
            match rustix::io::read(streams[at], &mut chunk) {
                Ok(0) => open[at] = false,
                Ok(count) => buffers[at].extend_from_slice(&chunk[..count]),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(true)
}

/// `std` cannot wait with a deadline. Git exits within microseconds of closing its streams, so short naps are enough.
fn wait_until(child: &mut Child, until: Until) -> io::Result<Option<ExitStatus>> {
    wait_unless(child, until, &|| false)
}

fn wait_unless(child: &mut Child, until: Until, called_off: &dyn Fn() -> bool) -> io::Result<Option<ExitStatus>> {
    let mut nap = Duration::from_micros(50);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        let left = until.left();
        if left.is_zero() || called_off() {
            return Ok(None);
        }
        thread::sleep(nap.min(left));
        nap = (nap * 2).min(Duration::from_millis(2));
    }
}

/// Sends TERM to the whole process group, waits for the grace period, then sends KILL.
fn end(child: &mut Child) -> io::Result<()> {
    let group = Pid::from_child(child);
    let _ = kill_process_group(group, Signal::TERM);
    let ended = wait_until(child, Until::after(GRACE))?;
    let _ = kill_process_group(group, Signal::KILL);
    if ended.is_none() {
        child.wait()?;
    }
    Ok(())
}

/// The end of captured output, for messages.
pub(super) fn tail_of(file: &mut File, most: u64) -> io::Result<String> {
    use std::io::{Seek as _, SeekFrom};
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn shell(script: &str, deadline: Duration) -> Call {
        Call::plumbing(Path::new("/"), "-c", deadline).args([&format!("alias.x=!{script}"), "x"])
    }

    #[test]
    fn a_git_that_hangs_is_ended_with_everything_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let pid = dir.path().join("pid");
        let script = format!("echo $$ > '{}'; sleep 60 & sleep 60", pid.display());
        let started = Instant::now();
        let error = shell(&script, Duration::from_millis(300)).run().unwrap_err();
        assert!(matches!(error, GitError::TimedOut { .. }), "{error}");
        assert!(started.elapsed() < Duration::from_secs(30));
        let pid: i32 = std::fs::read_to_string(pid).unwrap().trim().parse().unwrap();
        let pid = Pid::from_raw(pid).unwrap();
        while rustix::process::test_kill_process(pid).is_ok() {
            assert!(started.elapsed() < Duration::from_secs(30), "still there");
            thread::yield_now();
        }
    }

    #[test]
    fn streams_closed_early_do_not_stop_the_deadline() {
        let error = shell("exec >&- 2>&-; sleep 60", Duration::from_millis(300)).run().unwrap_err();
        assert!(matches!(error, GitError::TimedOut { .. }), "{error}");
    }

    #[test]
    fn large_input_and_output_do_not_block_each_other() {
        let bytes = vec![b'x'; 3_000_000];
        let output = shell("cat", Duration::from_mins(1)).stdin(bytes.clone()).run().unwrap();
        assert_eq!(output, bytes);
    }

    #[test]
    fn a_failure_carries_what_git_said() {
        let error = shell("echo no >&2; exit 3", Duration::from_mins(1)).stdin(vec![b'x'; 1_000_000]).run().unwrap_err();
        assert!(matches!(&error, GitError::Failed { code: Some(3), message, .. } if message == "no"), "{error:?}");
    }

    #[test]
    fn git_is_started_by_the_launcher_of_a_workspace() {
        let dir = tempfile::tempdir().unwrap();
        // This file is not written here: a concurrent test that forks would keep it open for writing, and it could not be
        // executed.
        crate::launcher::set_program(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stand_ins/launcher"));
        let call = |plan: &str| {
            let inside = Inside::Landlock { plan: plan.into() };
            let call = Call::plumbing(dir.path(), "-c", Duration::from_mins(1)).inside(&inside).unwrap();
            call.args(["alias.x=!pwd; echo $LC_ALL $GIT_EDITOR $NEW; cat", "x"]).env("NEW", "new").stdin(b"in".to_vec())
        };
        let folder = dir.path().canonicalize().unwrap();
        assert_eq!(call("fine").line().unwrap(), format!("{}\nC : new\nin", folder.display()));
        assert!(matches!(call("exec").run(), Err(GitError::Missing)));
        let error = call("bind").run().unwrap_err().to_string();
        assert!(error.contains("cannot bind /x"), "{error}");
    }
}
