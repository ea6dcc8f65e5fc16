//! The tree that an agent's files make, computed inside a throw-away view with Verdone's own git folder, index and objects.
//!
//! Git asks which files changed; what may be added is decided here, by looking at the files, before git opens them. A repository
//! that was planted in the tree is never entered.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use verdone_core::id::Oid;

use super::Git;
use super::attempt_contents::new_contents;
use super::attempt_folders::prepare_folders;
use super::command::Call;
use super::error::GitError;
use super::files;
use super::filter::Filters;
use super::index::IndexFile;
use super::index_entries::{self, IndexEntry};
use super::index_stat::{IndexStat, look_newer_than_files, replace_index};
use super::path::{PathSet, RepoPath};
use super::private_repository::joined;
use super::touched::touched;
use crate::regular::open_regular;

/// Whatever the user prefers: files are compared as thoroughly as git can, and the index stays one that can be read here.
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

/// More files that git refuses are not looked for.
const MOST_REFUSED: usize = 10;

/// Why no tree may have some names: `.GIT` and `git~1`, for example, are `.git` on some file systems.
const RESERVED: &str = "its name could stand for git's own folder";

/// The files of a workspace that are to become a tree.
#[derive(Debug, Clone, Copy)]
pub struct ReadBack<'a> {
    /// The files, as this process sees them.
    pub folder: &'a Path,
    /// The same folder as processes inside see it.
    pub seen_at: &'a Path,
    /// A git folder of Verdone's own, never the agent's; here and inside at the same path, as the next two.
    pub git_dir: &'a Path,
    /// The index from which the files were laid out. It is kept up to date.
    pub index: &'a Path,
    /// Where new objects go.
    pub objects: &'a Path,
    /// The real objects, as processes inside see them.
    pub known_objects: &'a [PathBuf],
    /// The throw-away view, where the system has views.
    pub filters: &'a Filters,
    /// Never part of the tree beyond what the base has of them: `.verdone/runs`, progress files.
    pub excluded: &'a PathSet,
    /// Ignored in the user's checkout: not added even if the attempt changed the ignore rules. A secret may be among them.
    pub ignored: &'a PathSet,
    /// Larger files are not added.
    pub largest_file: u64,
    /// The moment from which somebody else could write, by [`super::file_clock`].
    pub opened: SystemTime,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptTree {
    pub tree: Oid,
    /// Why it should not be committed as it is. The tree has the base's version of these paths.
    pub obstacles: Vec<TreeObstacle>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum TreeObstacle {
    /// A submodule's commit or files were changed, or its folder was removed.
    Submodule(RepoPath),
    /// A repository was made inside this one.
    Nested(RepoPath),
    TooLarge {
        path: RepoPath,
        bytes: u64,
    },
    Unreadable(RepoPath),
    /// A pipe, socket or device where a file should be.
    NotAFile(RepoPath),
    /// Git cannot make an object of it, because its encoding is not the one that the attributes say for example, or refuses its name.
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
    /// The tree of a workspace's files, with its objects, on disk when this returns.
    pub fn read_tree_of(&self, job: &ReadBack<'_>) -> Result<AttemptTree, GitError> {
        let since = SystemTime::now();
        let mut obstacles = prepare_folders(job)?;
        let Looked { before, mut listed, submodules, left_to_git } = look(job)?;
        let kinds: &[&str] = if left_to_git { &["--modified", "--deleted"] } else { &[] };
        let call = self.read_back(job, "ls-files")?.args(["-z", "-t", "--others", "--exclude-standard"]).args(kinds);
        listed.extend(call.run()?);
        let plan = Plan::of(job, &listed, &submodules, &mut obstacles);
        // Before anything is added: git refuses to look at a path below what is now a link.
        if !plan.removed.is_empty() {
            self.on_index(job, "update-index").args(["-z", "--force-remove", "--stdin"]).stdin(plan.removed).run()?;
        }
        let taken: Vec<&[u8]> = plan.taken.split_inclusive(|byte| *byte == 0).collect();
        self.add_to_index(job, &taken, &mut obstacles)?;
        if !taken.is_empty() {
            let after = IndexFile::read(job.index)?.map(|index| index.bytes).unwrap_or_default();
            self.import_contents(job, &new_contents(&before, &after, &taken, &mut obstacles)?)?;
        }
        let tree = self.on_index(job, "write-tree").line().map(Oid)?;
        self.sync_objects(since)?;
        obstacles.sort();
        Ok(AttemptTree { tree, obstacles })
    }

    /// Adds files to the index. Git adds all of them or none, so where it refuses, the halves are tried until the culprits are found.
    fn add_to_index(&self, job: &ReadBack<'_>, paths: &[&[u8]], obstacles: &mut Vec<TreeObstacle>) -> Result<(), GitError> {
        if paths.is_empty() {
            return Ok(());
        }
        let options = ["-z", "--add", "--remove", "--replace", "--stdin"];
        let answer = self.read_back(job, "update-index")?.args(options).stdin(paths.concat()).answer()?;
        match paths {
            _ if answer.status.success() => Ok(()),
            // Git cannot add anything, or not in this repository: one file would not be the reason.
            _ if obstacles.len() > MOST_REFUSED => Err(answer.failure("update-index")),
            [path] => {
                let said = answer.stderr.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
                obstacles.push(TreeObstacle::Refused { path: RepoPath::new(&path[..path.len() - 1]), said });
                Ok(())
            }
            _ => {
                let (first, second) = paths.split_at(paths.len() / 2);
                self.add_to_index(job, first, obstacles)?;
                self.add_to_index(job, second, obstacles)
            }
        }
    }

    /// Looks at no file of the workspace, so it needs no view.
    fn on_index(&self, job: &ReadBack<'_>, subcommand: &str) -> Call {
        let call = Call::plumbing_with(&self.top, &SETTINGS, subcommand, self.deadline).envs(&self.environment);
        call.env("GIT_INDEX_FILE", job.index)
    }

    fn read_back(&self, job: &ReadBack<'_>, subcommand: &str) -> Result<Call, GitError> {
        let call = Call::plumbing_with(job.seen_at, &SETTINGS, subcommand, self.deadline)
            .envs(&self.environment)
            .env("GIT_DIR", job.git_dir)
            .env("GIT_WORK_TREE", job.seen_at)
            .env("GIT_INDEX_FILE", job.index)
            .env("GIT_OBJECT_DIRECTORY", job.objects)
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", joined(job.known_objects));
        job.filters.apply(call)
    }
}

/// Input for `update-index`.
#[derive(Debug, Default)]
struct Plan {
    removed: Vec<u8>,
    taken: Vec<u8>,
}

impl Plan {
    fn of(job: &ReadBack<'_>, listed: &[u8], submodules: &BTreeSet<RepoPath>, obstacles: &mut Vec<TreeObstacle>) -> Self {
        let mut plan = Self::default();
        let mut seen = BTreeSet::new();
        for record in listed.split(|byte| *byte == 0).filter(|record| record.len() > 2) {
            let (mark, name) = (record[0], &record[2..]);
            let path = RepoPath::new(name);
            // A deleted file is listed as a changed one too.
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
                    Ok(Found::File) => push(&mut plan.taken, &path),
                    Ok(Found::Nothing) => push(&mut plan.removed, &path),
                    Err(obstacle) => obstacles.push(obstacle),
                }
            }
        }
        plan
    }
}

enum Found {
    File,
    Nothing,
}

pub(super) fn reserved(path: RepoPath) -> TreeObstacle {
    TreeObstacle::Refused { path, said: RESERVED.to_owned() }
}

fn examine(job: &ReadBack<'_>, path: &RepoPath) -> Result<Found, TreeObstacle> {
    if !path.is_safe() {
        return Err(reserved(path.clone()));
    }
    let unreadable = |_: io::Error| TreeObstacle::Unreadable(path.clone());
    let Some(meta) = files::stat(job.folder, path).map_err(unreadable)? else { return Ok(Found::Nothing) };
    if meta.is_symlink() {
        return Ok(Found::File);
    }
    if meta.is_dir() {
        return Ok(Found::Nothing);
    }
    if !meta.is_file() {
        return Err(TreeObstacle::NotAFile(path.clone()));
    }
    if meta.len() > job.largest_file {
        return Err(TreeObstacle::TooLarge { path: path.clone(), bytes: meta.len() });
    }
    open_regular(&job.folder.join(path.as_path()), OpenOptions::new().read(true)).map_err(unreadable)?;
    Ok(Found::File)
}

fn push(list: &mut Vec<u8>, path: &RepoPath) {
    list.extend_from_slice(path.as_bytes());
    list.push(0);
}

/// What the files' times tell.
#[derive(Debug, Default)]
struct Looked {
    /// The index.
    before: Vec<u8>,
    /// Files that may have been touched, as `git ls-files -t` lists changed ones.
    listed: Vec<u8>,
    submodules: BTreeSet<RepoPath>,
    /// Some entries have to be looked at by git.
    left_to_git: bool,
}

/// Finds the files that may have been touched, and makes git read those of them that look the same to it: whoever writes a file within
/// the second in which it was laid out, and sets its modification time back, would not be noticed by git.
fn look(job: &ReadBack<'_>) -> Result<Looked, GitError> {
    let mut looked = Looked::default();
    let Some(mut index) = IndexFile::read(job.index)? else { return Ok(looked) };
    let unexpected = || GitError::Unexpected { what: "read-tree", detail: format!("{} is not understood", job.index.display()) };
    let entries = index_entries::entries(&index.bytes).ok_or_else(unexpected)?;
    let id_bytes = entries.first().map_or(0, |entry| entry.id.len());
    let mut distrusted = Vec::new();
    for (entry, now) in touched(job.folder, &index.bytes, &entries, job.opened).map_err(GitError::io(job.folder))? {
        if entry.is_submodule() || entry.is_hidden() {
            continue;
        }
        looked.listed.extend([b"C ", entry.path, b"\0"].concat());
        if now.is_some_and(|now| now.is_same_to_git(&IndexStat::read(&index.bytes, entry.at))) {
            distrusted.push(entry.at);
        }
    }
    looked.submodules = entries.iter().filter(|entry| entry.is_submodule()).map(|entry| RepoPath::new(entry.path)).collect();
    looked.left_to_git = !looked.submodules.is_empty() || entries.iter().any(IndexEntry::is_hidden);
    if !distrusted.is_empty() {
        let unknown = IndexStat { changed: (0, 0), modified: (0, 0), inode: 0, size: 0 };
        for at in distrusted {
            unknown.write_times(&mut index.bytes, at);
        }
        replace_index(job.index, &mut index.bytes, id_bytes)?;
    }
    if !looked.left_to_git {
        look_newer_than_files(job.index)?;
    }
    looked.before = index.bytes;
    Ok(looked)
}
