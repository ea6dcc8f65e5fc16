//! Folders for views, and ways to run commands in them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tempfile::TempDir;
use verdone_core::base::redact::Redactor;
use verdone_runtime::launcher::{self, Inside, Mount, Network, ViewPlan};
use verdone_runtime::process::signal::Signals;
use verdone_runtime::process::{self, Ended, EnvPlan, Exit, LineProcess, Spawn, SpawnError, Stdin};
use verdone_runtime::workspace::{View, ViewError};
use verdone_testkit::repeat_unprivileged;

/// Runs tests one at a time: a sweep in one test would end the processes of another.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    launcher::set_program(env!("CARGO_BIN_EXE_verdone"));
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

/// Runs the test as the current user and, if that is root, once more as an unprivileged user.
pub(crate) fn as_everybody(test: impl Fn(&World)) {
    let _alone = alone();
    test(&World::new());
    repeat_unprivileged(Path::new(env!("CARGO_BIN_EXE_verdone")));
}

/// A project, a workspace for it, a dependency folder, a secret and a folder for state.
#[derive(Debug)]
pub(crate) struct World(TempDir);

impl World {
    pub(crate) fn new() -> Self {
        Self::below(Path::new("/var/tmp"))
    }

    pub(crate) fn below(folder: &Path) -> Self {
        Self::named(folder, "verdone view,: ")
    }

    /// For tools that do not support a colon in a path.
    pub(crate) fn with_plain_path() -> Self {
        Self::named(Path::new("/var/tmp"), "verdone-view-")
    }

    fn named(folder: &Path, prefix: &str) -> Self {
        let dir = tempfile::Builder::new().prefix(prefix).tempdir_in(folder).unwrap();
        let world = Self(dir);
        for folder in ["project", "tree", "packages", "secret", "state"] {
            fs::create_dir(world.path(folder)).unwrap();
        }
        for (file, text) in [
            ("project/file", "the user's\n"),
            ("tree/file", "the workspace's\n"),
            ("packages/one", "1\n"),
            ("packages/two", "2\n"),
            ("secret/key", "hidden\n"),
            ("token", "hidden\n"),
        ] {
            fs::write(world.path(file), text).unwrap();
        }
        world
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// An overlay of `packages` at `at`, with separate upper and work folders.
    pub(crate) fn overlay(&self, name: &str, at: PathBuf) -> Mount {
        let (upper, work) = (self.path("state").join(format!("{name}.upper")), self.path("state").join(format!("{name}.work")));
        fs::create_dir_all(&upper).unwrap();
        fs::create_dir_all(&work).unwrap();
        Mount::Overlay { lower: vec![self.path("packages")], upper, work, at }
    }

    /// The workspace at the project's path, with copy-on-write packages and without the secrets.
    pub(crate) fn plan(&self) -> ViewPlan {
        let mounts = vec![
            Mount::Scratch { at: "/tmp".into() },
            Mount::Bind { from: self.path("tree"), at: self.path("project"), write: true },
            self.overlay("packages", self.path("project/node_modules")),
            Mount::Mask { at: self.path("secret") },
            Mount::Mask { at: self.path("token") },
            Mount::Mask { at: self.path("absent") },
        ];
        ViewPlan { mounts, network: Network::Open }
    }

    pub(crate) fn open(&self) -> View {
        self.open_plan(&self.plan()).unwrap()
    }

    pub(crate) fn open_plan(&self, plan: &ViewPlan) -> Result<View, ViewError> {
        View::open(plan, &self.path("state"))
    }

    /// The output of a script in the view's project folder, and how it ended.
    pub(crate) fn shell(&self, view: &View, script: &str) -> (String, Exit) {
        let ended = self.run(view.inside(), &["sh", "-c", script], |_| {}).unwrap();
        (ended.output.text, ended.exit)
    }

    /// The output of a script that must succeed.
    #[track_caller]
    pub(crate) fn says(&self, view: &View, script: &str) -> String {
        let (text, exit) = self.shell(view, script);
        assert_eq!(exit, Exit::Code(0), "{script}\n{text}");
        text
    }

    pub(crate) fn run(&self, inside: Inside, argv: &[&str], change: impl FnOnce(&mut Spawn<'_>)) -> Result<Ended, SpawnError> {
        let redactor = Redactor::default();
        let mut spawn = self.spawn(inside, argv, &redactor);
        change(&mut spawn);
        process::run(&spawn, &Signals::none(), &mut |_| {})
    }

    pub(crate) fn run_outside(&self, argv: &[&str]) {
        let redactor = Redactor::default();
        let spawn = Spawn { inside: None, ..self.spawn(Inside::View { holder: 0 }, argv, &redactor) };
        process::run(&spawn, &Signals::none(), &mut |_| {}).unwrap();
    }

    pub(crate) fn companion(&self, view: &View, script: &str) -> LineProcess {
        self.companion_of(view, &["sh", "-c", script])
    }

    pub(crate) fn companion_of(&self, view: &View, argv: &[&str]) -> LineProcess {
        let redactor = Redactor::default();
        LineProcess::start(&self.spawn(view.inside(), argv, &redactor), &Signals::none()).unwrap()
    }

    fn spawn<'a>(&self, inside: Inside, argv: &[&str], redactor: &'a Redactor) -> Spawn<'a> {
        Spawn {
            inside: Some(inside),
            argv: argv.iter().map(Into::into).collect(),
            cwd: self.path("project"),
            env: EnvPlan::default(),
            stdin: Stdin::Null,
            wall: Some(Duration::from_mins(1)),
            idle: None,
            grace: Duration::from_secs(10),
            cap: 1 << 20,
            keep: None,
            redactor,
        }
    }
}

/// Overlays leave folders without permissions behind, which only root can remove directly.
impl Drop for World {
    fn drop(&mut self) {
        let _ = Command::new("chmod").args(["-R", "u+rwx"]).arg(self.0.path()).output();
    }
}
