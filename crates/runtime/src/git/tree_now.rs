//! The tree of the work tree's current files: tracked files in their current state, and files that are neither tracked nor
//! ignored. Leaves the user's index and refs alone.

use verdone_core::base::id::Oid;

use super::Git;
use super::candidate::Plan;
use super::error::GitError;
use super::path::PathSet;
use super::status::{Change, Entry, Kind, Status};
use crate::base::digest_cache::KnownFiles;

/// A work tree at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeNow {
    pub tree: Oid,
    /// Whether the tree contains everything that is visible. False if files are hidden from git or too large, or if there is a
    /// nested repository.
    pub whole: bool,
}

impl Git {
    /// The tree of all current files. Leaves out files larger than `largest` bytes.
    pub(crate) fn tree_now(&self, largest: u64, known: &mut KnownFiles) -> Result<TreeNow, GitError> {
        let (status, looked) = self.scan_work_tree(known, &PathSet::default(), &|_| true)?;
        let mut plan = Plan::like(&id_of(&status));
        let mut whole = self.hidden()?.iter().all(|path| self.is_file(path).is_ok_and(|size| size.is_none()));
        for Entry { path, kind } in &status.entries {
            match kind {
                Kind::Tracked { staged: Change::Deleted, .. } | Kind::Tracked { work: Change::None, .. } | Kind::Ignored => {}
                // Handled separately, because git refuses to update a path below what is now a symbolic link.
                Kind::Tracked { work: Change::Deleted, .. } => plan.set(path, None),
                Kind::Tracked { work: Change::Modified | Change::Added | Change::TypeChanged, .. } | Kind::Unmerged { .. } => {
                    match self.is_file(path)? {
                        Some(size) if size > largest => whole = false,
                        Some(_) => plan.add_path(path),
                        None => plan.set(path, None),
                    }
                }
                Kind::Untracked => match self.is_file(path)? {
                    Some(size) if size > largest => whole = false,
                    Some(_) => plan.add_path(path),
                    None => {}
                },
                Kind::Submodule { .. } | Kind::Nested => whole = false,
            }
        }
        let tree = self.write_tree(&self.copy_index()?, &plan)?;
        Ok(TreeNow { tree, whole: whole && looked.whole })
    }
}

/// Any id of this repository, since all have the same length.
fn id_of(status: &Status) -> Oid {
    let of_entry = |entry: &Entry| match &entry.kind {
        Kind::Tracked { head, index, .. } => head.as_ref().or(index.as_ref()).map(|blob| blob.id.clone()),
        Kind::Unmerged { stages } => stages.first().cloned(),
        Kind::Submodule { .. } | Kind::Untracked | Kind::Nested | Kind::Ignored => None,
    };
    status.head.clone().or_else(|| status.entries.iter().find_map(of_entry)).unwrap_or_else(|| Oid("0".repeat(40)))
}
