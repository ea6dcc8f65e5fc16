//! The one module that runs git.
//!
//! It never runs `git clean`, `git stash` or `git reset`. What it may change:
//!
//! - the user's branch, index and files: [`Git::land_files`], a fast-forward that overwrites nothing uncommitted
//! - the user's branch and index, in a session loop: [`Git::commit_unless`] and [`Git::take_back`]
//! - branches that are not checked out: [`Git::set_branch`], [`Git::delete_branch`]
//! - objects, and refs under `refs/verdone/` and `refs/notes/verdone`
//! - our own folders: workspaces, temporary indexes
//! - locks left behind by our own killed git processes
//!
//! [`Git::create_demo_repository`] makes a repository. Everything else only reads. Starting processes is the main cost here, so each query uses
//! as few as possible.

mod added_lines;
mod attempt_contents;
mod attempt_folders;
mod attempt_tree;
mod branch;
mod build_times;
mod candidate;
mod chain;
mod checkpoint;
mod ci_commit;
mod command;
mod commit;
mod commit_hooks;
mod contents;
mod demo_repository;
mod diff_text;
mod durability;
mod earlier_changes;
mod error;
mod file_times;
mod files;
mod filter;
mod head;
mod hidden;
mod history;
mod ignored_entries;
mod index;
mod index_entries;
mod index_stat;
mod kept_attempt;
mod landing;
mod large_files;
mod nested;
mod note;
mod object_import;
mod path;
mod private_repository;
mod private_settings;
mod reapply;
mod reset_files;
mod run_branch;
mod snapshot;
mod stale_lock;
mod status;
mod story_commit;
mod submodule;
mod touched;
mod tree_changes;
mod tree_files;
mod tree_now;
mod unreachable;
mod workspace_files;
mod worktree;
mod worktree_scan;

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use verdone_core::base::id::Oid;

pub use added_lines::AddedLines;
pub use attempt_tree::{AttemptTree, ReadBack, TreeObstacle};
pub use build_times::{BuiltFrom, DatedBy, EarlierBuild};
pub use candidate::{Candidate, CandidateRules, History, Obstacle};
pub use checkpoint::CheckpointRequest;
pub use commit::Commit;
pub use commit_hooks::{HookRun, Hooked};
pub use earlier_changes::Earlier;
pub use error::{CommitError, GitError};
pub use filter::{Filters, RequiredFilter};
pub use head::reflog_mark;
pub use ignored_entries::IgnoredEntry;
pub(crate) use index_stat::copy_index_file;
pub use kept_attempt::KeptAttempt;
pub use landing::{InterruptedLanding, Landing, LandingRefusal};
pub use object_import::NewContent;
pub use path::{PathSet, RepoPath};
pub use private_repository::{Alternates, BOUND_OBJECTS, PrivateRepository};
pub use reapply::Merged;
pub use reset_files::ResetFiles;
pub use status::{Blob, Change, Entry, Kind, Status};
pub(crate) use story_commit::COMMIT_TIME;
pub use submodule::Module;
pub use touched::{file_clock, file_clock_after, latest_file_time};
pub(crate) use tree_changes::{Side, TreeChange};
pub(crate) use tree_files::TreeFile;
pub use tree_now::TreeNow;
pub(crate) use workspace_files::attribute_files;
pub use worktree::WorkTreeEntry;

use crate::base::fault;
use crate::base::plain_file::read_regular;
use crate::project::GitDirs;
use command::Call;
use snapshot::Snapshot;

/// Generous, because a cold status of a huge tree is slow but not an error.
const DEADLINE: Duration = Duration::from_mins(5);

/// Size limit for `sequencer/todo`, which has one line for each remaining commit.
const LARGEST_TODO: u64 = 64 * 1024 * 1024;

/// A work tree and its repository.
#[derive(Debug)]
pub struct Git {
    top: PathBuf,
    #[expect(clippy::struct_field_names, reason = "git's own name for it")]
    git_dir: PathBuf,
    common_dir: PathBuf,
    environment: Vec<(OsString, OsString)>,
    deadline: Duration,
    /// These three are only caches: the tip of each loop's chain, the trees of commits and the last checkpoint. Git could answer
    /// all of them.
    tips: Mutex<HashMap<String, Oid>>,
    trees: Mutex<HashMap<Oid, Oid>>,
    last: Mutex<Option<Arc<Snapshot>>>,
}

/// How a path differs between two trees. A rename is a deletion and an addition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedPath {
    pub path: RepoPath,
    pub change: Change,
}

impl Git {
    /// Finds the repository that contains `dir`.
    pub fn open(dir: &Path) -> Result<Self, GitError> {
        Self::open_with(dir, &[])
    }

    /// Like [`Self::open`]; every git process gets these variables in addition to the inherited ones.
    pub fn open_with(dir: &Path, environment: &[(OsString, OsString)]) -> Result<Self, GitError> {
        let questions = ["--path-format=absolute", "--is-bare-repository", "--git-dir", "--git-common-dir", "--show-toplevel"];
        let deadline = fault::git_deadline().unwrap_or(DEADLINE);
        let answer = Call::plumbing(dir, "rev-parse", deadline).envs(environment).args(questions).answer()?;
        let lines: Vec<&[u8]> = answer.stdout.split(|byte| *byte == b'\n').collect();
        // Git before 2.31 does not know the option and repeats it.
        if lines.first().is_some_and(|line| line.starts_with(b"--path-format")) {
            return Err(GitError::TooOld);
        }
        if lines.first() == Some(&b"true".as_slice()) {
            return Err(GitError::Bare { dir: dir.to_owned() });
        }
        if answer.status.success() {
            let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
            // A path may contain a newline; then query each path separately.
            let alone = |question: &str| {
                let call = Call::plumbing(dir, "rev-parse", deadline).envs(environment).args([questions[0], question]);
                call.run().map(|answer| path(answer.strip_suffix(b"\n").unwrap_or(&answer)))
            };
            let [git_dir, common_dir, top] = if let [_, git_dir, common_dir, top, b""] = lines[..] {
                [path(git_dir), path(common_dir), path(top)]
            } else {
                [alone(questions[2])?, alone(questions[3])?, alone(questions[4])?]
            };
            return Ok(Self {
                top,
                git_dir,
                common_dir,
                environment: environment.to_vec(),
                deadline,
                tips: Mutex::default(),
                trees: Mutex::default(),
                last: Mutex::default(),
            });
        }
        if answer.stderr.contains("not a git repository") {
            return Err(GitError::NotARepository { dir: dir.to_owned() });
        }
        if answer.stderr.contains("must be run in a work tree") {
            return Err(GitError::NotAWorkTree { dir: dir.to_owned() });
        }
        if ["unknown repository extension", "Expected git repo version"].iter().any(|sign| answer.stderr.contains(sign)) {
            let words: Vec<&str> = answer.stderr.trim_start_matches("fatal: ").split_whitespace().collect();
            return Err(GitError::UnknownFormat { message: words.join(" ") });
        }
        Err(answer.failure("rev-parse"))
    }

    /// The repository of a work tree whose folders are already known. Starts no process.
    pub(crate) fn found(top: &Path, dirs: GitDirs, deadline: Duration) -> Self {
        Self {
            top: top.to_owned(),
            git_dir: dirs.own,
            common_dir: dirs.common,
            environment: Vec::new(),
            deadline,
            tips: Mutex::default(),
            trees: Mutex::default(),
            last: Mutex::default(),
        }
    }

    /// Sets an environment variable for all later git processes, which the user's git hooks inherit.
    #[must_use]
    pub fn marked(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// The work tree's top level.
    pub fn top(&self) -> &Path {
        &self.top
    }

    /// The git directory of this work tree.
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// The git directory that linked work trees share.
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// The operation that git is in the middle of, if any.
    pub fn operation_in_progress(&self) -> Option<&'static str> {
        const SIGNS: [(&str, &str); 8] = [
            ("rebase-merge", "rebase"),
            ("rebase-apply/applying", "am"),
            ("rebase-apply", "rebase"),
            ("MERGE_HEAD", "merge"),
            ("CHERRY_PICK_HEAD", "cherry-pick"),
            ("REVERT_HEAD", "revert"),
            ("sequencer", "cherry-pick"),
            ("BISECT_LOG", "bisect"),
        ];
        // With the reftable format, refs such as `MERGE_HEAD` are not files.
        let refs_in_tables = self.git_dir.join("reftable").exists();
        let is_there = |sign: &str| {
            let in_table = || refs_in_tables && sign.ends_with("_HEAD") && matches!(self.resolve(sign), Ok(Some(_)));
            self.git_dir.join(sign).exists() || in_table()
        };
        let found = SIGNS.iter().find(|(sign, _)| is_there(sign))?;
        // Between two commits of a sequence, only the todo list shows that it is a revert.
        let todo = || read_regular(&self.git_dir.join("sequencer/todo"), LARGEST_TODO).unwrap_or_default();
        Some(if found.0 == "sequencer" && todo().starts_with(b"revert") { "revert" } else { found.1 })
    }

    /// The identity for the user's commits: `Name <mail>`. An error if git would refuse to commit without one.
    pub fn identity(&self) -> Result<String, GitError> {
        let ask = |name: &str| {
            let answer = self.of_the_user("var", self.deadline).args([name]).env("LC_ALL", "C").answer()?;
            if !answer.status.success() {
                let message = answer.stderr.lines().last().unwrap_or_default().trim_start_matches("fatal: ").to_owned();
                return Err(GitError::NoIdentity { message });
            }
            Ok(String::from_utf8_lossy(&answer.stdout).into_owned())
        };
        let (author, committer) = std::thread::scope(|scope| {
            let committer = scope.spawn(|| ask("GIT_COMMITTER_IDENT"));
            (ask("GIT_AUTHOR_IDENT"), committer.join().unwrap_or(Err(GitError::Missing)))
        });
        let author = author?;
        committer?;
        let end = author.rfind('>').map_or(author.len(), |at| at + 1);
        Ok(author[..end].to_owned())
    }

    /// Paths that differ between two commits or trees; all paths of `tip` if there is no `base`.
    pub fn changed_paths(&self, base: Option<&Oid>, tip: &Oid) -> Result<Vec<ChangedPath>, GitError> {
        let Some(base) = base else {
            let output = self.plumbing("ls-tree").args(["-r", "-z", "--full-tree", "--name-only", tip.as_str()]).run()?;
            let paths = output.split(|byte| *byte == 0).filter(|path| !path.is_empty());
            return Ok(paths.map(|path| ChangedPath { path: RepoPath::new(path), change: Change::Added }).collect());
        };
        let options = ["-r", "-z", "--no-renames", "--name-status", base.as_str(), tip.as_str()];
        let output = self.plumbing("diff-tree").args(options).run()?;
        let mut fields = output.split(|byte| *byte == 0);
        let mut changed = Vec::new();
        while let (Some(letter), Some(path)) = (fields.next(), fields.next()) {
            let change = match letter {
                b"A" => Change::Added,
                b"D" => Change::Deleted,
                b"T" => Change::TypeChanged,
                _ => Change::Modified,
            };
            changed.push(ChangedPath { path: RepoPath::new(path), change });
        }
        Ok(changed)
    }

    fn plumbing(&self, subcommand: &str) -> Call {
        Call::plumbing(&self.top, subcommand, self.deadline).envs(&self.environment)
    }

    fn of_the_user(&self, subcommand: &str, deadline: Duration) -> Call {
        Call::of_the_user(&self.top, subcommand, deadline).envs(&self.environment)
    }

    /// The commit that a name refers to, if it exists.
    fn resolve(&self, name: &str) -> Result<Option<Oid>, GitError> {
        let answer = self.plumbing("rev-parse").args(["-q", "--verify", "--end-of-options", name]).answer()?;
        let found = answer.status.success().then(|| Oid(String::from_utf8_lossy(&answer.stdout).trim().to_owned()));
        Ok(found)
    }

    fn remember(&self, snapshot: Snapshot) -> Arc<Snapshot> {
        let snapshot = Arc::new(snapshot);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&snapshot));
        snapshot
    }
}

/// Ids also come from journals and command lines. Only real ids may become git arguments.
pub(crate) fn is_object_id(id: &Oid) -> bool {
    matches!(id.0.len(), 40 | 64) && id.0.bytes().all(|digit| digit.is_ascii_hexdigit())
}
