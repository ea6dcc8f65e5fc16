//! Git queries for an audit: commits missing from a history, and commits that claim to be Verdone's bookkeeping.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use verdone_core::base::id::Oid;
use verdone_core::evidence::audit::{Bookkeeping, FileChange, UnreachableCommits, bookkeeping};

use super::error::GitError;
use super::{Git, is_object_id};
use crate::project::plan_file::LARGEST_PLAN;

/// Commits to read in one batch; each brings two versions of a plan.
const TOGETHER: usize = 32;

/// The mode that git prints for the missing side of an addition or deletion.
const ABSENT: &str = "000000";

impl Git {
    /// The branch checked out in the work tree; `None` if HEAD is detached.
    pub fn current_branch(&self) -> Result<Option<String>, GitError> {
        let head = self.plumbing("symbolic-ref").args(["-q", "HEAD"]).answer()?;
        let name = String::from_utf8_lossy(&head.stdout).trim_end().to_owned();
        Ok(name.strip_prefix("refs/heads/").filter(|_| head.status.success()).map(str::to_owned))
    }

    /// The branches whose tip is this commit.
    pub fn branches_at(&self, commit: &Oid) -> Result<BTreeSet<String>, GitError> {
        let options = ["--points-at", commit.as_str(), "--format=%(refname:lstrip=2)", "refs/heads"];
        let names = self.plumbing("for-each-ref").args(options).line()?;
        Ok(names.lines().filter(|name| !name.is_empty()).map(str::to_owned).collect())
    }

    /// Looks up commits that `tip` does not contain: which of them other refs contain, and their parents.
    pub fn outside(&self, tip: &Oid, commits: &BTreeSet<&Oid>) -> Result<UnreachableCommits, GitError> {
        if commits.is_empty() {
            return Ok(UnreachableCommits::default());
        }
        let not_tip = format!("^{tip}");
        let listed = self.plumbing("rev-list").args(["--branches", "--remotes", "--tags", &not_tip, "--"]).line()?;
        let all: BTreeSet<Oid> = listed.lines().map(Oid::from).collect();
        let elsewhere = commits.iter().filter(|commit| all.contains(**commit)).map(|commit| (*commit).clone()).collect();
        // These ids come from journals and notes. Pass only valid ids to git, and skip commits that no longer exist.
        let asked: String =
            commits.iter().filter(|id| is_object_id(id)).flat_map(|id| [id.as_str(), "\n"]).chain([&*not_tip]).collect();
        let options = ["--ignore-missing", "--parents", "--stdin"];
        let answer = self.plumbing("rev-list").args(options).stdin(asked.into_bytes()).answer()?;
        let text = String::from_utf8_lossy(&answer.stdout).into_owned();
        let mut parents = BTreeMap::new();
        for line in text.lines().filter(|_| answer.status.success()) {
            let mut ids = line.split(' ').map(Oid::from);
            if let Some(commit) = ids.next() {
                parents.insert(commit, ids.collect());
            }
        }
        Ok(UnreachableCommits { elsewhere, parents })
    }

    /// Checks what commits that claim to be bookkeeping really change.
    pub fn bookkeeping(&self, commits: &[&Oid]) -> Result<BTreeMap<Oid, Bookkeeping>, GitError> {
        let mut all = BTreeMap::new();
        for some in commits.chunks(TOGETHER) {
            all.extend(self.bookkeeping_of(some)?);
        }
        Ok(all)
    }

    fn bookkeeping_of(&self, commits: &[&Oid]) -> Result<BTreeMap<Oid, Bookkeeping>, GitError> {
        let asked: String = commits.iter().flat_map(|commit| [commit.as_str(), "\n"]).collect();
        // A merge is compared with each of its parents. Verdone makes no merges.
        let options = ["--stdin", "-r", "-z", "--root", "-m", "--no-renames", "--no-ext-diff"];
        let output = self.plumbing("diff-tree").args(options).stdin(asked.into_bytes()).run()?;
        let changed = read_changes(&output, commits)?;
        let both = changed.values().flatten().flat_map(|sides| [&sides.before.1, &sides.after.1]);
        let blobs: BTreeSet<&str> = both.map(String::as_str).collect();
        let sizes = self.sizes_of(&blobs)?;
        let is_small = |blob: &&str| sizes.get(*blob).is_some_and(|size| *size <= LARGEST_PLAN);
        let contents = self.contents_of(&blobs.into_iter().filter(is_small).collect::<Vec<_>>())?;
        let judged = |changes: &[Sides]| bookkeeping(&changes.iter().map(|sides| sides.change(&contents)).collect::<Vec<_>>());
        Ok(changed.iter().map(|(commit, changes)| (commit.clone(), judged(changes))).collect())
    }

    /// Whether git tracks a path or anything below it. Ignores case, because some file systems do.
    pub fn tracks(&self, path: &Path) -> Result<bool, GitError> {
        let Some(path) = self.repo_path(path) else { return Ok(false) };
        let spec = format!(":(top,icase,literal){path}");
        Ok(!self.plumbing("ls-files").args(["-z", "--", &spec]).run()?.is_empty())
    }
}

/// Parses the changes of each commit. Git does not list a commit without changes, so its entry stays empty.
fn read_changes(output: &[u8], commits: &[&Oid]) -> Result<BTreeMap<Oid, Vec<Sides>>, GitError> {
    let mut changed: BTreeMap<Oid, Vec<Sides>> = commits.iter().map(|commit| ((*commit).clone(), Vec::new())).collect();
    let unexpected = || GitError::Unexpected { what: "diff-tree", detail: "a change without a commit or a path".to_owned() };
    let mut fields = output.split(|byte| *byte == 0).map(String::from_utf8_lossy).filter(|field| !field.is_empty());
    let mut current = None;
    while let Some(field) = fields.next() {
        let Some(change) = field.strip_prefix(':') else {
            current = Some(Oid::from(field.trim()));
            continue;
        };
        let path = fields.next().ok_or_else(unexpected)?.into_owned();
        let of = current.as_ref().and_then(|commit| changed.get_mut(commit)).ok_or_else(unexpected)?;
        of.push(Sides::read(change, path).ok_or_else(unexpected)?);
    }
    Ok(changed)
}

/// A file's mode and blob before and after.
struct Sides {
    path: String,
    before: (String, String),
    after: (String, String),
}

impl Sides {
    /// From `100644 100644 <blob> <blob> M`.
    fn read(change: &str, path: String) -> Option<Self> {
        let mut words = change.split(' ').map(str::to_owned);
        let (before, after, old, new) = (words.next()?, words.next()?, words.next()?, words.next()?);
        Some(Self { path, before: (before, old), after: (after, new) })
    }

    fn change(&self, contents: &BTreeMap<String, Vec<u8>>) -> FileChange {
        let content = |(mode, blob): &(String, String)| contents.get(blob).filter(|_| mode != ABSENT).cloned();
        let ((before, _), (after, _)) = (&self.before, &self.after);
        let (old, new) = (content(&self.before), content(&self.after));
        let there = |mode: &str, content: &Option<Vec<u8>>| mode == ABSENT || content.is_some();
        let is_file = |mode: &str| matches!(mode, "100644" | "100755");
        let plain = is_file(after) && (before == after || (before == ABSENT && after == "100644"));
        let plain = plain && there(before, &old) && there(after, &new);
        FileChange { path: self.path.clone(), before: old, after: new, plain }
    }
}
