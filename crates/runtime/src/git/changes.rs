//! The user's uncommitted changes, kept in two forms before they leave the work tree: as a checkpoint, byte for byte, and as a
//! commit in the shape of a stash, which plain git can apply. Neither touches HEAD, index, work tree or `refs/stash`.
//!
//! Leaving the work tree is then a restore of a checkpoint that is the same without the changes; see `put_back` for the way back.

use std::collections::BTreeMap;

use verdone_core::event::Checkpoint;
use verdone_core::id::{Oid, RunId};

use super::Git;
use super::candidate::Plan;
use super::chain::{ChainKind, one_line};
use super::checkpoint::CheckpointRequest;
use super::derived::Part;
use super::error::GitError;
use super::files::{self, Stat};
use super::index::IndexFile;
use super::path::{PathSet, RepoPath};
use super::restore::{Repair, RestoreRules};
use super::snapshot::{Kept, Snapshot, State};
use super::status::{Blob, Kind, Status};

/// Changes that are kept and may leave the work tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptChanges {
    /// Everything as it is.
    pub checkpoint: Checkpoint,
    /// The same without the changes.
    pub clean: Checkpoint,
    /// For `git stash apply --index`.
    pub stash: Oid,
    pub paths: Vec<RepoPath>,
}

impl Git {
    /// Keeps what differs from HEAD, but for `ours` and files that git does not know; none where nothing does.
    pub fn keep_changes(&self, request: &CheckpointRequest<'_>, ours: &PathSet) -> Result<Option<KeptChanges>, GitError> {
        let status = self.status()?;
        let mut changed = changes_of(&status, ours)?;
        if changed.is_empty() {
            return Ok(None);
        }
        let loose = self.loose_in_the_way(&status, &changed)?;
        changed.extend(loose.iter().map(|path| (path.clone(), None)));
        let checkpoint = self.checkpoint(request)?;
        let snapshot = self.snapshot(&checkpoint.id)?;
        // What was taken back between the look and the checkpoint is no change any more.
        changed.retain(|path, _| snapshot.entries.contains_key(path));
        let stash = self.keep_stash(request, &snapshot, &status, &changed, &loose, ours)?;
        let clean = self.without(request.chain, &snapshot, &changed)?;
        Ok(Some(KeptChanges { checkpoint, clean, stash, paths: changed.into_keys().collect() }))
    }

    /// The changes that a run keeps for the user, in the shape of a stash.
    pub fn stash_of(&self, run: &RunId) -> Result<Option<Oid>, GitError> {
        Ok(self.chain(run)?.into_iter().find_map(|entry| match entry.kind {
            ChainKind::Changes { stash } => Some(stash),
            ChainKind::Checkpoint { .. } | ChainKind::Attempt { .. } => None,
        }))
    }

    /// Files that git does not know and that stand where HEAD has something else: they have to leave with the changes.
    fn loose_in_the_way(&self, status: &Status, changed: &BTreeMap<RepoPath, Option<Blob>>) -> Result<Vec<RepoPath>, GitError> {
        let untracked = |path: &RepoPath| status.entries.iter().any(|entry| entry.kind == Kind::Untracked && entry.path == *path);
        let mut loose: Vec<RepoPath> = Vec::new();
        for path in changed.iter().filter(|(_, head)| head.is_some()).map(|(path, _)| path) {
            let find = |loose: &[RepoPath]| {
                let goes = |path: &RepoPath| changed.contains_key(path) || loose.contains(path);
                files::in_the_way(&self.top, path, &goes).map_err(GitError::io(path.as_path()))
            };
            while let Some(obstacle) = find(&loose)? {
                if !untracked(&obstacle) {
                    return Err(GitError::CannotSetAside { paths: vec![obstacle], what: "stands where HEAD has something else" });
                }
                loose.push(obstacle);
            }
        }
        Ok(loose)
    }

    /// A commit on HEAD with the work tree's content, the index as its second parent, untracked files as its third.
    fn keep_stash(
        &self,
        request: &CheckpointRequest<'_>,
        snapshot: &Snapshot,
        status: &Status,
        changed: &BTreeMap<RepoPath, Option<Blob>>,
        loose: &[RepoPath],
        ours: &PathSet,
    ) -> Result<Oid, GitError> {
        let id = &snapshot.checkpoint.id;
        let index = self.copy_index()?;
        let mut staged = Plan::like(id);
        for entry in status.entries.iter().filter(|entry| ours.contains(&entry.path)) {
            if let Kind::Tracked { head, .. } = &entry.kind {
                staged.set(&entry.path, head.as_ref());
            }
        }
        let staged_tree = self.write_tree(&index, &staged)?;
        let mut work = Plan::like(id);
        for path in changed.keys().filter(|path| !loose.contains(path)) {
            match snapshot.entries.get(path).map(|kept| &kept.state) {
                Some(State::File { .. } | State::Symlink { .. }) => work.take(path),
                Some(State::Absent) | None => work.set(path, None),
            }
        }
        let work_tree = self.write_tree(&index, &work)?;
        let mut untracked = Plan::like(id);
        for path in loose {
            untracked.take(path);
        }
        let loose_tree = if loose.is_empty() { None } else { Some(self.write_tree(&self.temp_index(None)?, &untracked)?) };
        let label = one_line(request.label);
        let whole = |tree: &Oid| [(tree.0.clone(), String::new())];
        let head = snapshot.checkpoint.head.as_ref().map(|head| head.0.clone());
        let (stash, ()) = self.append(request.chain, |stream, previous| {
            let base = match &head {
                Some(head) => head.clone(),
                None => stream.commit("before the first commit", None, &[], &[])?,
            };
            let mut parents = vec![stream.commit(&format!("index: {label}"), Some(&base), &[], &whole(&staged_tree))?];
            if let Some(tree) = &loose_tree {
                parents.push(stream.commit(&format!("untracked: {label}"), None, &[], &whole(tree))?);
            }
            let parents: Vec<&str> = parents.iter().map(String::as_str).collect();
            let stash = stream.commit(&label, Some(&base), &parents, &whole(&work_tree))?;
            stream.ask(&stash)?;
            stream.commit(&format!("changes: {label}"), Some(previous), &[&stash], &[])?;
            Ok(())
        })?;
        Ok(stash)
    }

    /// The checkpoint with HEAD's version of these paths, in the index and in the work tree.
    fn without(
        &self,
        chain: &RunId,
        snapshot: &Snapshot,
        changed: &BTreeMap<RepoPath, Option<Blob>>,
    ) -> Result<Checkpoint, GitError> {
        let index = self.temp_index(self.index_of(snapshot)?.as_ref())?;
        let mut plan = Plan::like(&snapshot.checkpoint.id);
        for (path, head) in changed {
            plan.set(path, head.as_ref());
        }
        self.update_index(&index, &plan)?;
        let gone = changed.iter().filter(|(_, head)| head.is_none()).map(|(path, _)| path.clone());
        let parts: Vec<Part> = gone.map(|path| (Kept { path, untracked: false, state: State::Absent }, None)).collect();
        let index = IndexFile::read(&index.path())?;
        self.derive(chain, "without the user's changes", snapshot, index.as_ref(), changed.keys().cloned(), parts)
    }

    /// Takes kept changes out of the work tree and the index. An error, and nothing is touched, where somebody went on changing
    /// them since: that is in no checkpoint.
    pub fn clear_changes(&self, kept: &Checkpoint, clean: &Checkpoint, rules: &RestoreRules) -> Result<(), GitError> {
        let (before, after) = (self.snapshot(&kept.id)?, self.snapshot(&clean.id)?);
        let (mut younger, mut links) = (Vec::new(), Vec::new());
        for kept in before.entries.values().filter(|kept| after.covers(&kept.path)) {
            let now = files::stat(&self.top, &kept.path).map_err(GitError::io(kept.path.as_path()))?;
            let same = match (&kept.state, now.filter(|meta| !meta.is_dir())) {
                (State::File { stat, .. }, Some(meta)) => *stat == Stat::of(&meta),
                (State::Symlink { file }, Some(_)) => {
                    links.push((kept, *file, 0));
                    true
                }
                (State::Absent, None) => true,
                (State::File { .. } | State::Symlink { .. }, None) | (State::Absent, Some(_)) => false,
            };
            if !same {
                younger.push(kept.path.clone());
            }
        }
        self.each_kept(&before.checkpoint.id, links, |kept, target| {
            let now = files::read(&self.top, &kept.path).map_err(GitError::io(kept.path.as_path()))?;
            if Repair::of(kept, &now, &target) != Repair::Nothing {
                younger.push(kept.path.clone());
            }
            Ok(())
        })?;
        if !younger.is_empty() {
            return Err(GitError::CannotSetAside { paths: younger, what: "changed meanwhile" });
        }
        self.restore(clean, rules).map(|_| ())
    }
}

/// Each path that differs from HEAD, with what HEAD has there.
fn changes_of(status: &Status, ours: &PathSet) -> Result<BTreeMap<RepoPath, Option<Blob>>, GitError> {
    let mut changed = BTreeMap::new();
    for entry in status.entries.iter().filter(|entry| !ours.contains(&entry.path)) {
        let refuse = |what| Err(GitError::CannotSetAside { paths: vec![entry.path.clone()], what });
        match &entry.kind {
            Kind::Tracked { head, .. } => drop(changed.insert(entry.path.clone(), head.clone())),
            Kind::Submodule { .. } => return refuse("is a submodule"),
            Kind::Unmerged { .. } => return refuse("has an unresolved conflict"),
            Kind::Untracked | Kind::Nested | Kind::Ignored => {}
        }
    }
    Ok(changed)
}
