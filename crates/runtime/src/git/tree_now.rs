//! The tree that the work tree is right now: what git tracks, as it lies there, and what it neither tracks nor ignores. Nothing of
//! the user's is written, neither index nor refs.

use std::collections::BTreeSet;
use std::time::SystemTime;

use verdone_core::id::Oid;

use super::Git;
use super::candidate::Plan;
use super::error::GitError;
use super::files::{self, Stat};
use super::look::Looked;
use super::path::{PathSet, RepoPath};
use super::snapshot::nanoseconds;
use super::status::{Change, Entry, Kind, Status};
use crate::known_files::KnownFiles;

/// A work tree at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeNow {
    pub tree: Oid,
    /// Whether the tree is all that there is to see: not where files are hidden from git or too large, or where another repository
    /// lies inside.
    pub whole: bool,
    /// Files that git does not track.
    pub untracked: BTreeSet<RepoPath>,
    /// What there is to see beside it, for who does not run in a tree of its own.
    pub(crate) looked: Looked,
}

impl Git {
    /// The tree of everything that is there. Files above `largest` bytes are left out.
    pub(crate) fn tree_now(&self, largest: u64, known: &mut KnownFiles) -> Result<TreeNow, GitError> {
        self.tree_with(largest, known, &|_| true)
    }

    /// The same without untracked files that are new since: who looks on makes files too.
    pub(crate) fn tree_since(&self, before: &TreeNow, largest: u64, known: &mut KnownFiles) -> Result<TreeNow, GitError> {
        self.tree_with(largest, known, &|path| before.untracked.contains(path))
    }

    /// Whether a file of the tree was written, replaced or moved since then, even if it is the same again.
    pub fn touched_since(&self, now: &TreeNow, since: SystemTime) -> Result<bool, GitError> {
        let since = nanoseconds(since);
        let listed = self.plumbing("ls-files").args(["-z", "--cached"]).run()?;
        let tracked = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(RepoPath::new);
        for path in tracked.chain(now.untracked.iter().cloned()) {
            let meta = files::stat(&self.top, &path).map_err(GitError::io(path.as_path()))?;
            if meta.is_some_and(|meta| Stat::of(&meta).ctime_ns >= since) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn tree_with(&self, largest: u64, known: &mut KnownFiles, wanted: &dyn Fn(&RepoPath) -> bool) -> Result<TreeNow, GitError> {
        let (status, looked) = self.look(known, &PathSet::default(), wanted)?;
        let (mut plan, mut untracked) = (Plan::like(&id_of(&status)), BTreeSet::new());
        let mut whole = self.hidden()?.iter().all(|path| self.is_file(path).is_ok_and(|size| size.is_none()));
        for Entry { path, kind } in &status.entries {
            match kind {
                Kind::Tracked { staged: Change::Deleted, .. } | Kind::Tracked { work: Change::None, .. } | Kind::Ignored => {}
                // Told apart from a change, because git would refuse a path below what is now a symbolic link.
                Kind::Tracked { work: Change::Deleted, .. } => plan.set(path, None),
                Kind::Tracked { work: Change::Modified | Change::Added | Change::TypeChanged, .. } | Kind::Unmerged { .. } => {
                    match self.is_file(path)? {
                        Some(size) if size > largest => whole = false,
                        Some(_) => plan.take(path),
                        None => plan.set(path, None),
                    }
                }
                Kind::Untracked => match self.is_file(path)?.filter(|_| wanted(path)) {
                    Some(size) if size > largest => whole = false,
                    Some(_) => {
                        untracked.insert(path.clone());
                        plan.take(path);
                    }
                    None => {}
                },
                Kind::Submodule { .. } | Kind::Nested => whole = false,
            }
        }
        let tree = self.write_tree(&self.copy_index()?, &plan)?;
        Ok(TreeNow { tree, whole: whole && looked.whole, untracked, looked })
    }
}

/// Any id of this repository: all of them are equally long.
fn id_of(status: &Status) -> Oid {
    let of_entry = |entry: &Entry| match &entry.kind {
        Kind::Tracked { head, index, .. } => head.as_ref().or(index.as_ref()).map(|blob| blob.id.clone()),
        Kind::Unmerged { stages } => stages.first().cloned(),
        Kind::Submodule { .. } | Kind::Untracked | Kind::Nested | Kind::Ignored => None,
    };
    status.head.clone().or_else(|| status.entries.iter().find_map(of_entry)).unwrap_or_else(|| Oid("0".repeat(40)))
}
