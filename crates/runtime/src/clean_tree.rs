//! A clean tree: a folder outside of the checkout with exactly the files of one tree, for checks that must not be helped by
//! ignored, untracked or forgotten files.
//!
//! Whatever stands in the way of one is an error, which callers show as *unknown*: it never lets anything pass. Without setup
//! commands a tree is made for one use and removed. With them it is kept for the next use, because what they install may know its
//! own path; everything but what they made is written anew each time, and what they made must be as they left it.

mod base;
mod folder;
mod share;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use verdone_core::check::{CheckOutcome, CommandSpec};
use verdone_core::id::{Oid, digest};

use crate::git::{Git, GitError};
use crate::process::{self, EnvPlan, Exit, RUN_VARIABLE, Spawn, SpawnError, Stdin, VERIFY_VARIABLE};
use crate::prune::size;
use crate::regular::real_folder;
use crate::signal::Signals;
use folder::Taken;

pub use verdone_core::config::CleanSettings;

/// What setup commands follow from: their content says when they have to run again.
const LOCK_FILES: [&str; 11] = [
    "Cargo.lock",
    "package-lock.json",
    "pnpm-lock.yaml",
    "yarn.lock",
    "bun.lock",
    "bun.lockb",
    "poetry.lock",
    "uv.lock",
    "go.sum",
    "Gemfile.lock",
    "composer.lock",
];
/// Bytes of what a failing setup command said last.
const TAIL: usize = 2 * 1024;
const CAP: u64 = 256 * 1024;
const GRACE: Duration = Duration::from_secs(5);

/// Why there is no clean tree: nothing is known then.
#[derive(Debug, thiserror::Error)]
pub enum CleanError {
    #[error("a clean tree cannot be made: {0}")]
    Git(#[from] GitError),
    #[error("a clean tree cannot be made: {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("a clean tree cannot be made: {} is inside the checkout", folder.display())]
    NoPlace { folder: PathBuf },
    #[error("[clean] share: {path:?} {why}")]
    Share { path: String, why: &'static str },
    #[error("[clean] setup: `{command}` {how}{}", if said.is_empty() { String::new() } else { format!("\n{said}") })]
    Setup { command: String, how: String, said: String },
    #[error("interrupted while a clean tree was made")]
    Interrupted,
}

impl CleanError {
    /// What the user can do about it, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Git(error) => error.hint(),
            Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Some("make room, or name a larger place in XDG_CACHE_HOME")
            }
            Self::NoPlace { .. } => Some("set XDG_CACHE_HOME to a folder outside of the checkout"),
            Self::Share { .. } => Some("correct `share` under [clean] in .verdone/config.toml"),
            Self::Setup { .. } => Some("run it by hand in a fresh clone, and correct `setup` under [clean]"),
            Self::Io { .. } | Self::Interrupted => None,
        }
    }

    /// What a check that needed the tree is worth: never a pass.
    pub fn outcome(&self) -> CheckOutcome {
        match self {
            Self::Interrupted => CheckOutcome::Interrupted,
            Self::Git(_) | Self::Io { .. } | Self::NoPlace { .. } | Self::Share { .. } | Self::Setup { .. } => {
                CheckOutcome::Unknown { reason: self.to_string() }
            }
        }
    }

    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.to_owned(), source }
    }
}

/// Exactly one tree, until it is dropped.
#[derive(Debug)]
pub struct CleanTree {
    taken: Taken,
    root: PathBuf,
    submodules: Vec<String>,
}

impl CleanTree {
    /// Makes one of a tree, or of a commit's tree. `root` is where `.verdone/` is in the checkout.
    pub fn make(git: &Git, tree: &Oid, root: &Path, settings: &CleanSettings, signals: &Signals) -> Result<Self, CleanError> {
        if signals.requested().is_some() {
            return Err(CleanError::Interrupted);
        }
        let shares = settings.share.iter().map(|path| share::normal(path)).collect::<Result<Vec<_>, _>>()?;
        let files = git.files_of(tree)?;
        let submodules = files.iter().filter(|file| file.submodule).map(|file| file.path.to_string()).collect();
        let folder = folder::find(git)?;
        folder::sweep(&folder);
        let inside = root.strip_prefix(git.top()).unwrap_or(Path::new(""));
        let making = Making { git, tree, checkout: root, inside, shares: &shares, settings, signals };
        let taken = if settings.setup.is_empty() {
            let taken = Taken::once(&folder)?;
            making.write(&taken)?;
            taken
        } else {
            let locks: Vec<(String, &str)> = files
                .iter()
                .filter(|file| is_lock(&file.path.to_string()))
                .map(|f| (f.path.to_string(), f.id.as_str()))
                .collect();
            let place = git.common_dir().to_string_lossy();
            let all = (place, inside.to_string_lossy(), &settings.setup, &settings.share, locks);
            let key = digest(&serde_json::to_vec(&all).unwrap_or_default());
            making.with_setup(Taken::kept(&folder, &key[..24])?)?
        };
        let root = taken.tree().join(inside);
        Ok(Self { taken, root, submodules })
    }

    /// Where checks run in it: the folder that `.verdone/` is in.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The top of the tree.
    pub fn top(&self) -> PathBuf {
        self.taken.tree()
    }

    /// Submodules of the tree: their folders are there and empty.
    pub fn submodules(&self) -> &[String] {
        &self.submodules
    }
}

/// Removes what dead processes left of clean trees, and kept ones that were not used for long. Best effort: what cannot be removed
/// now is tried again the next time.
pub fn remove_leftovers(git: &Git) {
    if let Ok(folder) = folder::find_existing(git) {
        folder::sweep(&folder);
    }
}

/// What is on disk of clean trees, of this project and of others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OnDisk {
    pub folder: PathBuf,
    /// Left by processes that are dead.
    pub left: usize,
    pub left_bytes: u64,
    /// Kept for their setup, used or not.
    pub kept: usize,
    pub kept_bytes: u64,
}

/// Counts them; nothing where there is no folder for them.
pub fn on_disk(git: &Git) -> Option<OnDisk> {
    let folder = folder::find_existing(git).ok()?;
    let (left, kept) = folder::entries(&folder);
    // What cannot be read, or goes away meanwhile, is not counted.
    let bytes = |locks: &[PathBuf]| locks.iter().map(|lock| size(&lock.with_extension("")).unwrap_or(0)).sum();
    Some(OnDisk { left: left.len(), left_bytes: bytes(&left), kept: kept.len(), kept_bytes: bytes(&kept), folder })
}

/// Removes what dead processes left, and nothing else; says how many trees are gone.
pub fn remove_left(git: &Git) -> usize {
    folder::find_existing(git).map_or(0, |folder| folder::remove_left(&folder::entries(&folder).0))
}

fn is_lock(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let requirements = name.starts_with("requirements") && Path::new(name).extension().is_some_and(|end| end == "txt");
    LOCK_FILES.contains(&name) || requirements
}

/// What a tree is made from.
struct Making<'a> {
    git: &'a Git,
    tree: &'a Oid,
    checkout: &'a Path,
    /// Where the project lies below the top.
    inside: &'a Path,
    shares: &'a [PathBuf],
    settings: &'a CleanSettings,
    signals: &'a Signals,
}

impl Making<'_> {
    /// The tree's files and the links, in a folder where no other file is but those that setup made.
    fn write(&self, taken: &Taken) -> Result<(), CleanError> {
        let (top, own) = (taken.tree(), taken.own());
        fs::create_dir_all(&top).map_err(CleanError::io(&top))?;
        self.git.lay_out(self.tree, &top, &own)?;
        let root = real_folder(&top, self.inside).map_err(CleanError::io(&top))?;
        self.shares.iter().try_for_each(|path| share::link(path, self.checkout, &root))
    }

    fn with_setup(&self, taken: Taken) -> Result<Taken, CleanError> {
        if let Some(made) = base::unchanged(&taken) {
            base::wipe(&taken, &made).map_err(CleanError::io(taken.dir()))?;
            self.write(&taken)?;
            return Ok(taken);
        }
        taken.empty().map_err(CleanError::io(taken.dir()))?;
        self.write(&taken)?;
        for command in &self.settings.setup {
            self.run(command, &taken)?;
        }
        // Setup may have written over what belongs to the tree.
        let links: Vec<PathBuf> = self.shares.iter().map(|path| self.inside.join(path)).collect();
        let tracked = self.git.files_of(self.tree)?;
        let made = base::remember(&taken, &tracked, &links).map_err(CleanError::io(taken.dir()))?;
        base::wipe(&taken, &made).map_err(CleanError::io(taken.dir()))?;
        self.write(&taken)?;
        Ok(taken)
    }

    fn run(&self, command: &CommandSpec, taken: &Taken) -> Result<(), CleanError> {
        let redactor = process::redactor_from_environment(&[]);
        let marks = [RUN_VARIABLE, VERIFY_VARIABLE].map(|name| Some((name, self.git.variable(name)?)));
        let env = marks.into_iter().flatten().fold(EnvPlan::default(), |env, (name, value)| env.with(name, value));
        let spawn = Spawn {
            inside: None,
            argv: process::argv(command),
            cwd: taken.tree().join(self.inside),
            env,
            stdin: Stdin::Null,
            wall: self.settings.setup_time.limit(),
            idle: None,
            grace: GRACE,
            cap: CAP,
            keep: None,
            redactor: &redactor,
        };
        let failed = |how: String, said: &str| {
            let command = redactor.redact(&command.display()).into_owned();
            CleanError::Setup { command, how, said: said.trim_end().to_owned() }
        };
        let ended = process::run(&spawn, self.signals, &mut |_| ()).map_err(|error| match error {
            SpawnError::Keep { path, source } => CleanError::Io { path, source },
            other => failed(format!("could not be started: {other}"), ""),
        })?;
        let how = match ended.exit {
            Exit::Code(0) => return Ok(()),
            Exit::Interrupted(_) => return Err(CleanError::Interrupted),
            Exit::Code(code) => format!("failed with exit code {code}"),
            Exit::Signal(signal) => format!("was ended by signal {signal}"),
            Exit::Wall | Exit::Idle => format!("did not end within {}", self.settings.setup_time),
            Exit::Terminal => "wanted to use the terminal".to_owned(),
        };
        Err(failed(how, ended.output.tail(TAIL)))
    }
}
