//! Landing: moves the user's branch, and the checkout that is on it, forward to a descendant commit.
//!
//! Accepts what `git merge --ff-only` accepts, with hooks off. Files are on disk before the branch moves, so an interrupted
//! landing can be repeated: files that already have their target content are no obstacle. Uncommitted content is never
//! overwritten or deleted, ignored files included.
//!
//! Until a landing is complete, a mark in the git folder records its target. The next landing that finds a mark continues that
//! landing, because a power cut can leave missing or truncated files.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use verdone_core::base::id::Oid;

use super::durability::sync_folder;
use super::error::GitError;
use super::files;
use super::index::IndexFile;
use super::path::RepoPath;
use super::reapply::empty_tree;
use super::status::{Change, Kind};
use super::{Git, is_object_id};
use crate::base::atomic::replace_for_good;
use crate::base::fault::{self, Point};
use crate::base::plain_file::read_regular;

/// Above this number of files, the whole file system is synced instead.
const MOST_SYNCED: usize = 256;
const LARGEST_NAME: u64 = 64 * 1024;
const ABSENT: &str = "000000";
const MARK: &str = "verdone-landing";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Landing {
    /// The branch has the commit now, or already had it.
    Landed { from: Option<Oid> },
    /// Nothing was changed.
    Refused(LandingRefusal),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LandingRefusal {
    /// HEAD is detached, so there is no branch to move.
    Detached,
    /// Git is in the middle of a merge, rebase or similar.
    Operation(&'static str),
    /// The branch is checked out in another work tree.
    OtherWorkTree(PathBuf),
    /// The branch has commits that the new one lacks.
    Diverged { tip: Oid },
    /// Uncommitted changes that landing would overwrite.
    InTheWay { changed: Vec<RepoPath>, untracked: Vec<RepoPath> },
    /// Git's own message.
    Git(String),
}

impl LandingRefusal {
    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Detached => Some("switch to the branch first: `git switch BRANCH`".to_owned()),
            Self::Operation("bisect") => Some("end it first: `git bisect reset`".to_owned()),
            Self::Operation(operation) => Some(format!("finish or abort it first: `git {operation} --abort`")),
            Self::OtherWorkTree(path) => {
                Some(format!("switch to another branch there: `git -C {} switch BRANCH`", path.display()))
            }
            Self::InTheWay { .. } => Some("commit, stash or move these files first".to_owned()),
            Self::Diverged { .. } => Some("it has just moved: run the command again".to_owned()),
            Self::Git(_) => None,
        }
    }
}

impl fmt::Display for LandingRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |paths: &[RepoPath]| paths.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        match self {
            Self::Detached => write!(f, "HEAD is detached"),
            Self::Operation(operation) => {
                let article = if operation.starts_with('a') { "an" } else { "a" };
                write!(f, "{article} {operation} is in progress")
            }
            Self::OtherWorkTree(path) => write!(f, "the branch is checked out in {}", path.display()),
            Self::Diverged { tip } => write!(f, "the branch has moved on to {}", tip.short()),
            Self::InTheWay { changed, untracked } if untracked.is_empty() => {
                write!(f, "uncommitted changes would be overwritten: {}", names(changed))
            }
            Self::InTheWay { changed, untracked } if changed.is_empty() => {
                write!(f, "untracked files would be overwritten: {}", names(untracked))
            }
            Self::InTheWay { changed, untracked } => {
                write!(f, "uncommitted changes would be overwritten: {}; untracked files: {}", names(changed), names(untracked))
            }
            Self::Git(said) => write!(f, "git refused: {said}"),
        }
    }
}

/// The content of a landing's mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterruptedLanding {
    pub branch: String,
    pub to: Oid,
    pub since: SystemTime,
}

/// A path that landing changes, with mode and id before and after.
#[derive(Debug)]
struct Step {
    path: RepoPath,
    old: (String, String),
    new: (String, String),
}

impl Step {
    fn is_added(&self) -> bool {
        self.old.0 == ABSENT
    }

    fn is_removed(&self) -> bool {
        self.new.0 == ABSENT
    }
}

impl Git {
    /// Moves `branch` forward to `new`, and the files of this checkout if it is on that branch. `None` means that HEAD is
    /// detached. Everything is on disk when this returns.
    pub fn land_files(&self, branch: Option<&str>, new: &Oid) -> Result<Landing, GitError> {
        if !is_object_id(new) {
            return Err(GitError::Unexpected { what: "read-tree", detail: format!("{new} is not an object id") });
        }
        let refused = |refusal| Ok(Landing::Refused(refusal));
        let Some(branch) = branch else {
            // A rebase detaches HEAD. Then the user has to end the rebase.
            return refused(self.operation_in_progress().map_or(LandingRefusal::Detached, LandingRefusal::Operation));
        };
        let is_here = self.current_branch()?.as_deref() == Some(branch);
        if let Some(operation) = self.operation_in_progress().filter(|_| is_here || is_busy_with(&self.git_dir, branch)) {
            return refused(LandingRefusal::Operation(operation));
        }
        if !is_here && let Some(path) = self.checked_out_at(branch)? {
            return refused(LandingRefusal::OtherWorkTree(path));
        }
        let marked = self.interrupted_landing();
        if let Some(to) = marked.as_ref().filter(|mark| mark.branch == branch && mark.to != *new).map(|mark| mark.to.clone()) {
            // Its files may be partly written, and would look like the user's changes to a landing with another target.
            self.land_files(Some(branch), &to)?;
        }
        let resumes = marked.is_some_and(|mark| mark.branch == branch && mark.to == *new);
        let tip = self.branch_tip(branch)?;
        if let Some(tip) = &tip {
            if tip == new || self.is_part_of(new, tip)? {
                self.unmark_landing()?;
                return Ok(Landing::Landed { from: Some(tip.clone()) });
            }
            if !self.is_part_of(tip, new)? {
                self.unmark_landing()?;
                return refused(LandingRefusal::Diverged { tip: tip.clone() });
            }
        }
        self.mark_landing(branch, new)?;
        if is_here && let Some(refusal) = self.move_files(tip.as_ref(), new, resumes)? {
            self.unmark_landing()?;
            return refused(refusal);
        }
        let moved = self.move_branch(branch, new, tip.as_ref());
        // A killed process may still have done its work.
        let has_moved = moved.is_ok() || self.branch_tip(branch)?.as_ref() == Some(new);
        match moved {
            Err(_) if has_moved => {
                self.sync_ref_folders(&format!("refs/heads/{branch}"))?;
                self.unmark_landing()?;
                Ok(Landing::Landed { from: tip })
            }
            Ok(()) => {
                self.unmark_landing()?;
                Ok(Landing::Landed { from: tip })
            }
            // Its leftover lock would block any further step. The mark stays, so the next command finishes the landing.
            Err(error @ GitError::Failed { code: None, .. }) => Err(error),
            Err(error) if is_here => {
                // The user moved the branch first: restore the branch's files.
                let before = tip.as_ref().map_or(empty_tree(new), Oid::as_str);
                self.durable("read-tree").args(["-m", "-u", "--no-recurse-submodules", new.as_str(), before]).run()?;
                self.unmark_landing()?;
                Err(error)
            }
            Err(error) => {
                self.unmark_landing()?;
                Err(error)
            }
        }
    }

    /// A landing in this work tree that did not finish.
    pub fn interrupted_landing(&self) -> Option<InterruptedLanding> {
        let path = self.git_dir.join(MARK);
        let since = fs::symlink_metadata(&path).and_then(|meta| meta.modified()).ok()?;
        let text = read_regular(&path, LARGEST_NAME).ok()?;
        let text = String::from_utf8_lossy(&text);
        let (to, branch) = text.trim_end().split_once(' ')?;
        let to = Oid::from(to);
        is_object_id(&to).then(|| InterruptedLanding { branch: branch.to_owned(), to, since })
    }

    fn mark_landing(&self, branch: &str, to: &Oid) -> Result<(), GitError> {
        let path = self.git_dir.join(MARK);
        replace_for_good(&path, format!("{to} {branch}\n").as_bytes()).map_err(GitError::io(&path))
    }

    fn unmark_landing(&self) -> Result<(), GitError> {
        let path = self.git_dir.join(MARK);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(GitError::Io { path, source: error }),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn move_branch(&self, branch: &str, new: &Oid, tip: Option<&Oid>) -> Result<(), GitError> {
        let name = format!("refs/heads/{branch}");
        let old = tip.map_or_else(|| "0".repeat(new.as_str().len()), |tip| tip.as_str().to_owned());
        let reason = format!("{}: land", self.own_reflog_mark());
        fault::point(Point::LandBranch).map_err(GitError::io(Path::new(&name)))?;
        self.durable("update-ref").args(["-m", &reason, &name, new.as_str(), &old]).run()?;
        fault::pass(Point::LandBranchMoved);
        self.sync_ref_folders(&name)
    }

    /// Moves files and index from `tip` to `new`. If refused, returns why and changes nothing. `resumes` means that an earlier
    /// try may have left partly written files.
    fn move_files(&self, tip: Option<&Oid>, new: &Oid, resumes: bool) -> Result<Option<LandingRefusal>, GitError> {
        let before = tip.map_or(empty_tree(new), Oid::as_str);
        fault::point(Point::LandFiles).map_err(GitError::io(&self.top))?;
        let steps = self.steps(before, new)?;
        let occupied = self.occupied(&steps)?;
        // Without the refresh, git takes a file with another time for a changed one.
        self.plumbing("update-index").args(["-q", "--refresh"]).answer()?;
        let mut said = String::new();
        if occupied.is_empty() {
            said = self.checkout_step(before, new, &steps)?;
        }
        if !occupied.is_empty() || !said.is_empty() {
            let judged = self.judge(&steps, resumes)?;
            if !judged.changed.is_empty() || !judged.untracked.is_empty() {
                return Ok(Some(LandingRefusal::InTheWay { changed: judged.changed, untracked: judged.untracked }));
            }
            if judged.done.is_empty() {
                return Ok(Some(LandingRefusal::Git(said)));
            }
            let index = IndexFile::read(&self.index_path())?;
            self.enter(&steps, &judged.done, None)?;
            self.write_again(&judged.torn)?;
            let said = self.checkout_step(before, new, &steps)?;
            if !said.is_empty() {
                self.install_index(index.as_ref())?;
                return Ok(Some(LandingRefusal::Git(said)));
            }
            self.plumbing("update-index").args(["-q", "--refresh"]).answer()?;
        }
        fault::pass(Point::LandFilesMoved);
        self.sync_files(&steps)?;
        // The index was renamed into this folder.
        sync_folder(&self.git_dir).map_err(GitError::io(&self.git_dir))?;
        Ok(None)
    }

    /// Returns git's message if it refused, which it decides before it changes anything. If it failed later, for example on a
    /// full disk, files are partly written. That is an error, and the mark stays for the next landing.
    fn checkout_step(&self, before: &str, new: &Oid, steps: &[Step]) -> Result<String, GitError> {
        let untouched = self.changed_at(steps)?;
        let call = self.durable("read-tree").args(["-m", "-u", "--no-recurse-submodules", before, new.as_str()]);
        let answer = call.answer()?;
        if answer.status.success() {
            return Ok(String::new());
        }
        let plain = |line: &str| line.trim_start_matches("error: ").trim_start_matches("fatal: ").trim().to_owned();
        let said: Vec<String> = answer.stderr.lines().map(plain).filter(|line| !line.is_empty()).collect();
        let said = if said.is_empty() { answer.status.to_string() } else { said.join("; ") };
        if self.changed_at(steps)? == untouched { Ok(said) } else { Err(GitError::LandedHalf { said }) }
    }

    /// The ctime of each file.
    fn changed_at(&self, steps: &[Step]) -> Result<Vec<Option<(i64, i64)>>, GitError> {
        let changed_at = |step: &Step| {
            let meta = files::stat(&self.top, &step.path).map_err(GitError::io(step.path.as_path()))?;
            Ok(meta.map(|meta| (meta.ctime(), meta.ctime_nsec())))
        };
        steps.iter().map(changed_at).collect()
    }

    /// Writes files again that a landing left missing or truncated. The index already has their target content.
    fn write_again(&self, torn: &[RepoPath]) -> Result<(), GitError> {
        if torn.is_empty() {
            return Ok(());
        }
        let names = torn.iter().flat_map(|path| path.as_bytes().iter().copied().chain([0])).collect::<Vec<u8>>();
        self.durable("checkout-index").args(["-f", "-q", "-z", "--stdin"]).stdin(names).run()?;
        self.plumbing("update-index").args(["-q", "--refresh"]).answer()?;
        Ok(())
    }

    /// Whether rewriting loses nothing: the file is missing, or its content is the beginning of the target content.
    fn is_torn(&self, step: &Step) -> Result<bool, GitError> {
        let meta = files::stat(&self.top, &step.path).map_err(GitError::io(step.path.as_path()))?;
        let Some(meta) = meta else { return Ok(true) };
        if !meta.is_file() || !step.new.0.starts_with("100") {
            return Ok(false);
        }
        let whole = self.plumbing("cat-file").args(["blob", &step.new.1]).run()?;
        let place = self.top.join(step.path.as_path());
        let found = read_regular(&place, whole.len() as u64).map_err(GitError::io(&place));
        Ok(found.is_ok_and(|found| found.len() < whole.len() && whole.starts_with(&found)))
    }

    fn steps(&self, before: &str, new: &Oid) -> Result<Vec<Step>, GitError> {
        let listed = self.plumbing("diff-tree").args(["-r", "-z", "--raw", "--no-renames", before, new.as_str()]).run()?;
        let mut fields = listed.split(|byte| *byte == 0);
        let mut steps = Vec::new();
        while let (Some(facts), Some(path)) = (fields.next(), fields.next()) {
            let text = String::from_utf8_lossy(facts);
            let facts: Vec<&str> = text.trim_start_matches(':').split(' ').collect();
            let [old_mode, new_mode, old, id, _] = facts[..] else {
                return Err(GitError::Unexpected { what: "diff-tree", detail: text.into_owned() });
            };
            let pair = |mode: &str, id: &str| (mode.to_owned(), id.to_owned());
            steps.push(Step { path: RepoPath::new(path), old: pair(old_mode, old), new: pair(new_mode, id) });
        }
        Ok(steps)
    }

    /// Finds whatever blocks a new file. Git itself would overwrite ignored files there.
    fn occupied(&self, steps: &[Step]) -> Result<Vec<RepoPath>, GitError> {
        let removed: BTreeSet<&RepoPath> = steps.iter().filter(|step| step.is_removed()).map(|step| &step.path).collect();
        let goes = |path: &RepoPath| removed.contains(path);
        let mut found = Vec::new();
        for step in steps.iter().filter(|step| step.is_added()) {
            let io = GitError::io(step.path.as_path());
            let there = files::stat(&self.top, &step.path).map_err(io)?.is_some_and(|meta| !meta.is_dir());
            let blocking = files::in_the_way(&self.top, &step.path, &goes).map_err(GitError::io(step.path.as_path()))?;
            found.extend(blocking.or_else(|| there.then(|| step.path.clone())));
        }
        Ok(found)
    }

    /// Sorts paths into those that already have their target content and those that have neither that nor the branch's content.
    fn judge(&self, steps: &[Step], resumes: bool) -> Result<Judged, GitError> {
        let status = self.status_of_tracked()?;
        let as_target = self.equal_to_target(steps)?;
        let removed: BTreeSet<&RepoPath> = steps.iter().filter(|step| step.is_removed()).map(|step| &step.path).collect();
        let goes = |path: &RepoPath| removed.contains(path);
        let mut judged = Judged::default();
        for step in steps {
            let io = || GitError::io(step.path.as_path());
            let entry = status.get(&step.path);
            let meta = files::stat(&self.top, &step.path).map_err(io())?;
            let is_there = meta.as_ref().is_some_and(|meta| !meta.is_dir());
            let is_done = if step.is_removed() { !is_there } else { as_target.contains(&step.path) };
            let staged = entry.and_then(|entry| entry.index.clone());
            // Staged content that is in neither commit would be lost.
            let index_is_known = entry.is_none_or(|entry| {
                !entry.is_staged || staged.as_ref().is_none_or(|blob| *blob == step.new) || staged.as_ref() == Some(&step.old)
            });
            let is_plain = index_is_known && entry.is_none_or(|entry| !entry.is_odd);
            if resumes && !is_done && is_plain && !step.is_removed() && self.is_torn(step)? {
                judged.done.insert(step.path.clone());
                judged.torn.push(step.path.clone());
                continue;
            }
            if is_done && is_plain {
                if entry.is_some() || step.is_added() {
                    judged.done.insert(step.path.clone());
                }
                continue;
            }
            if !step.is_added() {
                if entry.is_some() {
                    judged.changed.push(step.path.clone());
                }
                continue;
            }
            if entry.is_some() {
                judged.changed.push(step.path.clone());
            } else if let Some(blocking) = files::in_the_way(&self.top, &step.path, &goes).map_err(io())? {
                judged.untracked.push(blocking);
            } else if is_there {
                judged.untracked.push(step.path.clone());
            }
        }
        judged.untracked.sort();
        judged.untracked.dedup();
        Ok(judged)
    }

    /// Tracked paths that differ from HEAD.
    fn status_of_tracked(&self) -> Result<BTreeMap<RepoPath, Uncommitted>, GitError> {
        let index = self.copy_index()?;
        let mut found = BTreeMap::new();
        for entry in self.status_by(&index)?.entries {
            let uncommitted = match entry.kind {
                Kind::Tracked { staged, index, .. } => Uncommitted {
                    is_staged: staged != Change::None,
                    index: index.map(|blob| (blob.mode, blob.id.0)),
                    is_odd: false,
                },
                Kind::Submodule { .. } | Kind::Unmerged { .. } => Uncommitted { is_staged: false, index: None, is_odd: true },
                Kind::Untracked | Kind::Nested | Kind::Ignored => continue,
            };
            found.insert(entry.path, uncommitted);
        }
        Ok(found)
    }

    /// Files that already have their target content and mode, as git sees them through the user's filters.
    fn equal_to_target(&self, steps: &[Step]) -> Result<BTreeSet<RepoPath>, GitError> {
        let index = self.copy_index()?;
        let present: BTreeSet<RepoPath> = steps.iter().filter(|step| !step.is_removed()).map(|step| step.path.clone()).collect();
        self.enter(steps, &present, Some(&index.path()))?;
        let call = |subcommand: &str| self.plumbing(subcommand).env("GIT_INDEX_FILE", index.path());
        call("update-index").args(["-q", "--refresh"]).answer()?;
        let listed = call("diff-files").args(["-z", "--name-only", "--no-renames"]).run()?;
        let differ: BTreeSet<RepoPath> = listed.split(|byte| *byte == 0).map(RepoPath::new).collect();
        Ok(present.into_iter().filter(|path| !differ.contains(path)).collect())
    }

    /// Sets the index entries of these paths to their target, in the user's index or in `index`.
    fn enter(&self, steps: &[Step], paths: &BTreeSet<RepoPath>, index: Option<&Path>) -> Result<(), GitError> {
        let mut entries = Vec::new();
        // Removals come first, because a file may replace a folder.
        for is_removal in [true, false] {
            for step in steps.iter().filter(|step| step.is_removed() == is_removal && paths.contains(&step.path)) {
                let mode = if is_removal { "0" } else { &step.new.0 };
                entries.extend_from_slice(format!("{mode} {}\t", step.new.1).as_bytes());
                entries.extend_from_slice(step.path.as_bytes());
                entries.push(0);
            }
        }
        let call = self.durable("update-index").args(["-z", "--add", "--replace", "--index-info"]).stdin(entries);
        match index {
            Some(index) => call.env("GIT_INDEX_FILE", index).run()?,
            None => call.run()?,
        };
        Ok(())
    }

    /// Syncs before the branch moves: a power cut must not leave a branch with empty files.
    fn sync_files(&self, steps: &[Step]) -> Result<(), GitError> {
        if steps.len() > MOST_SYNCED {
            let top = File::open(&self.top).map_err(GitError::io(&self.top))?;
            return rustix::fs::syncfs(&top).map_err(|error| GitError::Io { path: self.top.clone(), source: error.into() });
        }
        let mut folders = BTreeSet::new();
        for step in steps {
            let place = self.top.join(step.path.as_path());
            // A symlink's target is in the file system's journal along with its folder.
            if fs::symlink_metadata(&place).is_ok_and(|meta| meta.is_file())
                && let Ok(file) = File::open(&place)
            {
                file.sync_all().map_err(GitError::io(&place))?;
            }
            folders.extend(place.parent().filter(|parent| parent.is_dir()).map(Path::to_owned));
        }
        for folder in folders {
            sync_folder(&folder).map_err(GitError::io(&folder))?;
        }
        Ok(())
    }
}

#[derive(Debug, Default)]
struct Judged {
    /// Paths that already have their target content, although the index does not know it.
    done: BTreeSet<RepoPath>,
    /// Those of them whose files have to be written again.
    torn: Vec<RepoPath>,
    changed: Vec<RepoPath>,
    untracked: Vec<RepoPath>,
}

#[derive(Debug)]
struct Uncommitted {
    is_staged: bool,
    index: Option<(String, String)>,
    /// A conflict or a submodule.
    is_odd: bool,
}

/// Whether an unfinished rebase or bisection began on this branch. HEAD is detached in the meantime.
pub(super) fn is_busy_with(git_dir: &Path, branch: &str) -> bool {
    ["rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"].iter().any(|name| {
        let text = read_regular(&git_dir.join(name), LARGEST_NAME).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        text.trim_end().strip_prefix("refs/heads/").unwrap_or(text.trim_end()) == branch
    })
}
