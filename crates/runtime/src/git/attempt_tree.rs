//! Makes a tree from an agent's files. Git reads the files inside a view, with a separate git folder, object folder and copy of
//! the index. Its result is checked, and only new contents are imported.
//!
//! Git reports which files changed. This module decides what may be added, by inspecting the files before git opens them. It
//! never enters a repository planted in the tree.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use verdone_core::base::id::Oid;

use super::Git;
use super::attempt_contents::{LentIndex, added_entries, index_info, left_out, without_entries};
use super::attempt_folders::{Folders, prepare_folders, remove_pipes};
use super::command::Call;
use super::durability::DURABLE;
use super::error::GitError;
use super::files;
use super::filter::Filters;
use super::index::IndexFile;
use super::index_entries::{self, IndexEntry};
use super::index_stat::look_newer_than_files;
use super::path::{PathSet, RepoPath};
use super::private_repository::joined;
use super::touched::touched;
use crate::base::plain_file::open_regular;

/// Override the user's settings: git compares files as thoroughly as it can, and the index keeps a format that we can read.
const SETTINGS: [&str; 16] = [
    "-c",
    "core.trustctime=true",
    "-c",
    "core.checkStat=default",
    "-c",
    "core.safecrlf=false",
    "-c",
    "core.untrackedCache=false",
    "-c",
    "index.version=2",
    "-c",
    "feature.manyFiles=false",
    "-c",
    "index.sparse=false",
    "-c",
    "index.skipHash=true",
];

/// Give up after this many refused files.
const MOST_REFUSED: usize = 10;

/// Why a tree cannot contain names such as `.GIT` and `git~1`.
const RESERVED: &str = "git reserves this name, because some file systems read it as .git";

/// The files of a workspace to turn into a tree.
#[derive(Debug, Clone, Copy)]
pub struct ReadBack<'a> {
    /// The files, as this process sees them.
    pub folder: &'a Path,
    /// The same folder, as processes inside see it.
    pub seen_at: &'a Path,
    /// Verdone's own git folder, never the agent's. Processes inside see it at the same path.
    pub git_dir: &'a Path,
    /// The index from which the files were checked out. It is kept up to date and not visible inside.
    pub index: &'a Path,
    /// A folder that processes inside can write to, at the same path.
    pub scratch: &'a Path,
    /// Where new objects go.
    pub objects: &'a Path,
    /// The real objects, as processes inside see them.
    pub known_objects: &'a [PathBuf],
    /// The throw-away view, if the system supports views.
    pub filters: &'a Filters,
    /// Paths that keep the base's version, such as `.verdone/runs` and progress files.
    pub excluded: &'a PathSet,
    /// Paths ignored in the user's checkout, which may contain secrets. Never added, even if the attempt changed the ignore
    /// rules.
    pub ignored: &'a PathSet,
    /// Larger files are not added.
    pub largest_file: u64,
    /// When other processes became able to write to the files, by [`super::file_clock`].
    pub opened: SystemTime,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptTree {
    pub tree: Oid,
    /// Why the tree should not be committed. It has the base's version of these paths.
    pub obstacles: Vec<TreeObstacle>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum TreeObstacle {
    /// A submodule's commit or files were changed, or its folder was removed.
    Submodule(RepoPath),
    /// A repository was created inside this one.
    Nested(RepoPath),
    TooLarge {
        path: RepoPath,
        bytes: u64,
    },
    Unreadable(RepoPath),
    /// A pipe, socket or device where a file should be.
    NotAFile(RepoPath),
    /// Git cannot store the file, for example because its encoding does not match its attributes, or git refuses its name.
    Refused {
        path: RepoPath,
        said: String,
    },
}

impl fmt::Display for TreeObstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Submodule(path) => write!(f, "the submodule {path} was changed"),
            Self::Nested(path) => write!(f, "{path} is a git repository inside this one"),
            Self::TooLarge { path, bytes } => write!(f, "{path} is too large to commit ({} MB)", bytes.div_ceil(1_000_000)),
            Self::Unreadable(path) => write!(f, "{path} cannot be read"),
            Self::Refused { path, said } => write!(f, "git cannot add {path}: {said}"),
            Self::NotAFile(path) => write!(f, "{path} is a pipe, socket or device, not a file"),
        }
    }
}

impl Git {
    /// The tree of a workspace's files. The tree and its objects are on disk when this returns.
    pub fn read_tree_of(&self, job: &ReadBack<'_>) -> Result<AttemptTree, GitError> {
        let since = SystemTime::now();
        let Folders { mut obstacles, pipes, repositories } = prepare_folders(job);
        let Touched { index, mut listed, submodules, left_to_git } = find_touched(job)?;
        let entries = parse(&index.bytes)?;
        remove_pipes(job, &pipes, &entries, &mut obstacles);
        let mut lent = LentIndex::new(job.scratch)?;
        lent.lend(&index.bytes, index.modified)?;
        let kinds: &[&str] = if left_to_git { &["--modified", "--deleted"] } else { &[] };
        let options = ["-z", "-t", "--others", "--exclude-standard"];
        match self.read_back(job, &lent, "ls-files")?.args(options).args(kinds).run() {
            Ok(others) => listed.extend(others),
            // A broken repository in the tree explains the failure.
            Err(GitError::Failed { .. } | GitError::TimedOut { .. }) if !repositories.is_empty() => {
                obstacles.extend(repositories.into_iter().map(TreeObstacle::Nested));
                obstacles.sort();
                return Ok(AttemptTree { tree: self.write_attempt_tree(job, Vec::new())?, obstacles });
            }
            Err(error) => return Err(error),
        }
        let plan = Plan::new(job, &listed, &submodules, &mut obstacles);
        let mut added = Vec::new();
        if !plan.added.is_empty() {
            let bytes = without_entries(&index.bytes, &entries, &plan);
            // Newer than every file, so that git does not read the others again.
            lent.lend(&bytes, SystemTime::now() + Duration::from_mins(1))?;
            let paths: Vec<&[u8]> = plan.added.iter().map(RepoPath::as_bytes).collect();
            self.add_to_index(job, &lent, &paths, &mut obstacles)?;
            let after = lent.read()?;
            added = added_entries(&entries, &parse(&after)?, &plan.added)?;
            obstacles.extend(left_out(job, &plan.added, &added, &obstacles));
            self.import_contents(job, &added)?;
        }
        let id_length = entries.first().map_or(0, |entry| 2 * entry.id.len());
        let tree = self.write_attempt_tree(job, index_info(&plan.removed, &added, id_length))?;
        self.sync_object_folders(since)?;
        obstacles.sort();
        Ok(AttemptTree { tree, obstacles })
    }

    /// Updates Verdone's own index and writes its tree. Reads no file of the workspace, so it needs no view.
    fn write_attempt_tree(&self, job: &ReadBack<'_>, index_info: Vec<u8>) -> Result<Oid, GitError> {
        let on_index = |subcommand: &str| {
            let settings = [&SETTINGS[..], &DURABLE, &["-c", "core.sparseCheckout=false"]].concat();
            let call = Call::plumbing_with(&self.top, &settings, subcommand, self.deadline).envs(&self.environment);
            call.env("GIT_INDEX_FILE", job.index)
        };
        if !index_info.is_empty() {
            look_newer_than_files(job.index)?;
            let options = ["-z", "--add", "--replace", "--index-info"];
            on_index("update-index").args(options).stdin(index_info).run()?;
            look_newer_than_files(job.index)?;
        }
        on_index("write-tree").line().map(Oid)
    }

    /// Adds files to the index. Git adds all of them or none, so if it refuses, this bisects to find the culprits.
    fn add_to_index(
        &self,
        job: &ReadBack<'_>,
        lent: &LentIndex,
        paths: &[&[u8]],
        obstacles: &mut Vec<TreeObstacle>,
    ) -> Result<(), GitError> {
        let options = ["-z", "--add", "--remove", "--replace", "--stdin"];
        let list = paths.iter().flat_map(|path| path.iter().copied().chain([0])).collect();
        let answer = self.read_back(job, lent, "update-index")?.args(options).stdin(list).answer()?;
        let refused = obstacles.iter().filter(|obstacle| matches!(obstacle, TreeObstacle::Refused { .. })).count();
        match paths {
            _ if answer.status.success() => Ok(()),
            // After this many refusals, git seems unable to add anything; no single file is to blame.
            _ if refused > MOST_REFUSED => Err(answer.failure("update-index")),
            [path] => {
                let said = answer.stderr.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
                obstacles.push(TreeObstacle::Refused { path: RepoPath::new(path), said });
                Ok(())
            }
            _ => {
                let (first, second) = paths.split_at(paths.len() / 2);
                self.add_to_index(job, lent, first, obstacles)?;
                self.add_to_index(job, lent, second, obstacles)
            }
        }
    }

    fn read_back(&self, job: &ReadBack<'_>, lent: &LentIndex, subcommand: &str) -> Result<Call, GitError> {
        let call = Call::plumbing_with(job.seen_at, &SETTINGS, subcommand, self.deadline)
            .envs(&self.environment)
            .env("GIT_DIR", job.git_dir)
            .env("GIT_WORK_TREE", job.seen_at)
            .env("GIT_INDEX_FILE", lent.path())
            .env("GIT_OBJECT_DIRECTORY", job.objects)
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", joined(job.known_objects));
        job.filters.apply(call)
    }
}

/// Changes to make to the index.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) removed: Vec<RepoPath>,
    pub(super) added: Vec<RepoPath>,
}

impl Plan {
    fn new(job: &ReadBack<'_>, listed: &[u8], submodules: &BTreeSet<RepoPath>, obstacles: &mut Vec<TreeObstacle>) -> Self {
        let mut plan = Self::default();
        let mut seen = BTreeSet::new();
        for record in listed.split(|byte| *byte == 0).filter(|record| record.len() > 2) {
            let (mark, name) = (record[0], &record[2..]);
            let path = RepoPath::new(name);
            // Git also lists a deleted file as a changed one.
            let is_kept_out = job.excluded.contains(&path) || (mark == b'?' && job.ignored.contains(&path));
            if is_kept_out || !seen.insert((path.clone(), mark == b'?')) {
                continue;
            }
            if mark == b'?' && name.ends_with(b"/") {
                obstacles.push(TreeObstacle::Nested(path));
            } else if mark != b'?' && submodules.contains(&path) {
                obstacles.push(TreeObstacle::Submodule(path));
            } else {
                match examine(job, &path) {
                    Ok(EntryState::File) => plan.added.push(path),
                    Ok(EntryState::Nothing) => plan.removed.push(path),
                    Err(obstacle) => obstacles.push(obstacle),
                }
            }
        }
        plan
    }
}

pub(super) enum EntryState {
    File,
    Nothing,
}

pub(super) fn reserved(path: RepoPath) -> TreeObstacle {
    TreeObstacle::Refused { path, said: RESERVED.to_owned() }
}

pub(super) fn examine(job: &ReadBack<'_>, path: &RepoPath) -> Result<EntryState, TreeObstacle> {
    if !path.is_safe() {
        return Err(reserved(path.clone()));
    }
    let unreadable = |_: io::Error| TreeObstacle::Unreadable(path.clone());
    let Some(meta) = files::stat(job.folder, path).map_err(unreadable)? else { return Ok(EntryState::Nothing) };
    if meta.is_symlink() {
        return Ok(EntryState::File);
    }
    if meta.is_dir() {
        return Ok(EntryState::Nothing);
    }
    if !meta.is_file() {
        return Err(TreeObstacle::NotAFile(path.clone()));
    }
    if meta.len() > job.largest_file {
        return Err(TreeObstacle::TooLarge { path: path.clone(), bytes: meta.len() });
    }
    open_regular(&job.folder.join(path.as_path()), OpenOptions::new().read(true)).map_err(unreadable)?;
    Ok(EntryState::File)
}

/// What the files' times reveal.
#[derive(Debug)]
struct Touched {
    /// Verdone's own index.
    index: IndexFile,
    /// Files that may have changed, in the format of `git ls-files -t`.
    listed: Vec<u8>,
    submodules: BTreeSet<RepoPath>,
    /// Git has to check some entries itself.
    left_to_git: bool,
}

fn find_touched(job: &ReadBack<'_>) -> Result<Touched, GitError> {
    let none = || IndexFile { bytes: Vec::new(), modified: SystemTime::now() };
    let index = IndexFile::read(job.index)?.unwrap_or_else(none);
    let entries = parse(&index.bytes)?;
    let mut listed = Vec::new();
    for (entry, _) in touched(job.folder, &index.bytes, &entries, job.opened).map_err(GitError::io(job.folder))? {
        if !entry.is_submodule() && !entry.is_hidden() {
            listed.extend([b"C ", entry.path, b"\0"].concat());
        }
    }
    let submodules: BTreeSet<RepoPath> =
        entries.iter().filter(|entry| entry.is_submodule()).map(|entry| RepoPath::new(entry.path)).collect();
    let left_to_git = !submodules.is_empty() || entries.iter().any(IndexEntry::is_hidden);
    Ok(Touched { index, listed, submodules, left_to_git })
}

/// Accepts empty input: a branch without a commit has no index yet.
fn parse(bytes: &[u8]) -> Result<Vec<IndexEntry<'_>>, GitError> {
    let unexpected = || GitError::Unexpected { what: "update-index", detail: "the index cannot be parsed".to_owned() };
    if bytes.is_empty() { Ok(Vec::new()) } else { index_entries::entries(bytes).ok_or_else(unexpected) }
}
