//! An isolated environment for one test, with its own home, PATH, identity and time zone; nothing from the developer's machine leaks in.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::process::{Output, Running};
use crate::proctable::{Survivor, processes_with_env};
use crate::transcript;

/// How long a test waits for what has to happen sooner or later. Only a test that fails waits this long, so it leaves room for a loaded
/// machine; what must not end by itself in the meantime sleeps for ten minutes.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// The variable that marks every process of a sandbox. Not `VERDONE_…`: the program may remove its own variables.
const MARKER: &str = "TESTKIT_SANDBOX";

/// A shell, git and the small tools that checks and scripted agents use.
const TOOLS: &[&str] = &[
    "git",
    "sh",
    "bash",
    "env",
    "basename",
    "cat",
    "chmod",
    "cmp",
    "cp",
    "cut",
    "date",
    "dd",
    "diff",
    "dirname",
    "echo",
    "expr",
    "false",
    "find",
    "grep",
    "head",
    "id",
    "kill",
    "ln",
    "ls",
    "mkdir",
    "mkfifo",
    "mktemp",
    "mv",
    "nproc",
    "printf",
    "pwd",
    "readlink",
    "realpath",
    "rm",
    "rmdir",
    "sed",
    "seq",
    "setsid",
    "sha256sum",
    "sleep",
    "sort",
    "stat",
    "stty",
    "tail",
    "tee",
    "test",
    "timeout",
    "touch",
    "tr",
    "true",
    "tty",
    "uname",
    "uniq",
    "wc",
    "xargs",
    "yes",
];

/// A temporary directory with `work/` (where commands run), `home/`, `bin/` (the whole PATH) and `tmp/`.
#[derive(Debug)]
pub struct Sandbox {
    root: PathBuf,
    marker: String,
    deadline: Duration,
    variables: Vec<(OsString, OsString)>,
    /// Removes the directory; dropped last.
    _directory: tempfile::TempDir,
}

impl Sandbox {
    /// A sandbox whose PATH has git, a shell and coreutils.
    pub fn new() -> Self {
        Self::with_tools(TOOLS)
    }

    /// A sandbox whose PATH has only git, which is all the program may rely on.
    pub fn only_git() -> Self {
        Self::with_tools(&["git"])
    }

    fn with_tools(tools: &[&str]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);

        let directory = tempfile::Builder::new().prefix("verdone-test-").tempdir().expect("a temporary directory can be made");
        let root = directory.path().canonicalize().expect("the temporary directory has a real path");
        let marker = format!("{MARKER}={}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let sandbox = Self { root, marker, deadline: PATIENCE, variables: Vec::new(), _directory: directory };
        for name in ["work", "home", "bin", "tmp"] {
            fs::create_dir(sandbox.root.join(name)).expect("a fresh directory takes subdirectories");
        }
        for tool in tools {
            if let Some(path) = find_on_host(tool) {
                sandbox.link_tool(tool, &path);
            }
        }
        let git_config = "[init]\n\tdefaultBranch = main\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n";
        fs::write(sandbox.home().join(".gitconfig"), git_config).expect("the private home is writable");
        sandbox
    }

    /// Changes the hard deadline of `verdone` and `run`.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Sets a variable for every process of this sandbox. Later values win.
    pub fn set(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) {
        self.variables.push((name.into(), value.into()));
    }

    /// Adds another program of the host to the PATH.
    pub fn add_tool(&self, name: &str) {
        let path = find_on_host(name).unwrap_or_else(|| panic!("the test needs `{name}`, which is not installed"));
        self.link_tool(name, &path);
    }

    /// Adds a program at any path to the PATH.
    pub fn add_program(&self, name: &str, path: &Path) {
        self.link_tool(name, path);
    }

    /// Adds an executable script to the PATH.
    pub fn add_script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.root.join("bin").join(name);
        write_executable(&path, text);
        path
    }

    /// The top directory, without symbolic links.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder in which commands run.
    pub fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// The path of a file in `work/`.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.work().join(path)
    }

    /// Writes a file in `work/`, creating its directories.
    pub fn write(&self, path: impl AsRef<Path>, text: impl AsRef<[u8]>) {
        let path = self.path(path);
        make_parent(&path);
        fs::write(&path, text).unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
    }

    /// Writes an executable file in `work/`.
    pub fn write_script(&self, path: impl AsRef<Path>, text: &str) {
        let path = self.path(path);
        make_parent(&path);
        write_executable(&path, text);
    }

    /// Reads a file in `work/`.
    pub fn read(&self, path: impl AsRef<Path>) -> String {
        let path = self.path(path);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
    }

    /// Makes `work/` a repository with one commit on `main` that has all existing files and a `README.md`.
    pub fn repo(&self) {
        self.git(["init", "--quiet", "--initial-branch=main"]);
        if !self.path("README.md").exists() {
            self.write("README.md", "# A project\n");
        }
        self.git(["add", "--all"]);
        self.git(["commit", "--quiet", "--message", "initial"]);
    }

    /// Runs git in `work/` and returns its output without the last line break; panics if git fails.
    pub fn git<I, S>(&self, args: I) -> String
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let output = self.run("git", args);
        assert_eq!(output.code, 0, "git failed\n{}", output.transcript());
        output.stdout.trim_end_matches('\n').to_owned()
    }

    /// Runs the program under test in `work/`; panics with the output so far if it exceeds the deadline.
    pub fn verdone<I, S>(&self, binary: impl AsRef<Path>, args: I) -> Output
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        self.spawn(binary.as_ref(), args).wait(self.deadline)
    }

    /// The same for any program on the PATH.
    pub fn run<I, S>(&self, program: &str, args: I) -> Output
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        // Resolved here because otherwise the host's PATH would be searched, not the sandbox's.
        let linked = self.root.join("bin").join(program);
        assert!(linked.exists(), "`{program}` is not on the sandbox's PATH");
        self.spawn(&linked, args).wait(self.deadline)
    }

    /// Starts a program in its own process group and leaves it running: for signals and live output.
    pub fn spawn<I, S>(&self, binary: impl AsRef<Path>, args: I) -> Running
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let mut command = self.command(binary);
        command.args(args);
        Running::start(command, &self.root)
    }

    /// The same, with a pipe to its standard input.
    pub fn spawn_with_input<I, S>(&self, binary: impl AsRef<Path>, args: I) -> (Running, ChildStdin)
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let mut command = self.command(binary);
        command.args(args);
        Running::start_with_input(command, &self.root)
    }

    /// A command with the sandbox's environment and directory, for callers that need more than `spawn`.
    pub fn command(&self, binary: impl AsRef<Path>) -> Command {
        let mut command = Command::new(binary.as_ref());
        command.current_dir(self.work()).env_clear();
        for (name, value) in self.environment() {
            command.env(name, value);
        }
        command
    }

    /// The marker of this sandbox's processes, as `NAME=value`.
    pub fn marker(&self) -> &str {
        &self.marker
    }

    /// Live processes of this sandbox.
    pub fn survivors(&self) -> Vec<Survivor> {
        processes_with_env(&self.marker)
    }

    /// Panics if a process of this sandbox is still alive after `patience`.
    ///
    /// Polls, because the kernel notifies only the parent of a process about its end.
    pub fn assert_no_survivors(&self, patience: Duration) {
        let until = Instant::now() + patience;
        let mut empty = 0;
        // During an exec, a process shows no environment. So the list must be empty several times in a row.
        while empty < 3 {
            let survivors = self.survivors();
            empty = if survivors.is_empty() { empty + 1 } else { 0 };
            assert!(survivors.is_empty() || Instant::now() < until, "processes outlived their run: {survivors:#?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The normalised transcript of several commands, in order.
    pub fn transcript(&self, outputs: &[&Output]) -> String {
        let whole: Vec<_> = outputs.iter().map(|output| output.transcript()).collect();
        self.normalise(&whole.join("\n"))
    }

    /// Replaces this sandbox's paths, and everything that differs from run to run, by placeholders.
    pub fn normalise(&self, text: &str) -> String {
        let root = self.root.to_string_lossy();
        let text = text
            .replace(&format!("{root}/work"), "[WORK]")
            .replace(&format!("{root}/home"), "[HOME]")
            .replace(root.as_ref(), "[SANDBOX]");
        transcript::normalise(&text)
    }

    fn environment(&self) -> Vec<(OsString, OsString)> {
        let fixed = [
            ("LC_ALL", "C.UTF-8"),
            ("TZ", "UTC"),
            ("TERM", "dumb"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_AUTHOR_NAME", "Ada Tester"),
            ("GIT_AUTHOR_EMAIL", "ada@example.com"),
            ("GIT_COMMITTER_NAME", "Ada Tester"),
            ("GIT_COMMITTER_EMAIL", "ada@example.com"),
        ];
        let places = [
            ("HOME", self.home()),
            ("XDG_CONFIG_HOME", self.home().join(".config")),
            ("PATH", self.root.join("bin")),
            ("TMPDIR", self.root.join("tmp")),
            ("GIT_CEILING_DIRECTORIES", self.root.clone()),
        ];
        let (marker, id) = self.marker.split_once('=').expect("the marker is made as NAME=value");
        let mut all: Vec<(OsString, OsString)> = Vec::new();
        all.extend(fixed.map(|(name, value)| (name.into(), value.into())));
        all.extend(places.map(|(name, value)| (name.into(), value.into())));
        all.push((marker.into(), id.into()));
        // The binary's coverage is written to this file; otherwise a profile would end up in the tree under test.
        all.extend(std::env::var_os("LLVM_PROFILE_FILE").map(|file| ("LLVM_PROFILE_FILE".into(), file)));
        all.extend(self.variables.iter().cloned());
        all
    }

    fn link_tool(&self, name: &str, target: &Path) {
        let link = self.root.join("bin").join(name);
        symlink(target, &link).unwrap_or_else(|error| panic!("cannot link {}: {error}", link.display()));
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        for survivor in self.survivors() {
            if let Some(pid) = i32::try_from(survivor.pid).ok().and_then(Pid::from_raw) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::new()
    }
}

/// The first executable with this name on the PATH of the test run itself.
pub(crate) fn find_on_host(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(name))
        .find(|candidate| fs::metadata(candidate).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0))
}

/// Uses `cp` to create the file. If it were open for writing here, another test thread could fork at that moment. Its child would keep the
/// descriptor until its own exec, and starting the script would fail with "text file busy".
fn write_executable(path: &Path, text: &str) {
    let draft = path.with_extension("draft");
    fs::write(&draft, text).unwrap_or_else(|error| panic!("cannot write {}: {error}", draft.display()));
    fs::set_permissions(&draft, fs::Permissions::from_mode(0o755))
        .unwrap_or_else(|error| panic!("cannot make {} executable: {error}", draft.display()));
    let copied = Command::new("cp").arg("-p").arg(&draft).arg(path).status();
    assert!(copied.is_ok_and(|status| status.success()), "cannot write {}", path.display());
    fs::remove_file(&draft).unwrap_or_else(|error| panic!("cannot remove {}: {error}", draft.display()));
}

fn make_parent(path: &Path) {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).unwrap_or_else(|error| panic!("cannot make {}: {error}", parent.display()));
    }
}
