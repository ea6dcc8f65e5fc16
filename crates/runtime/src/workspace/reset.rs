//! The agent's next workspace, made from the files of its last one: most of them are as they were laid out, and writing them again
//! is what takes long in a large project.

use std::fs;
use std::path::Path;
use std::time::Duration;

use verdone_core::base::id::Oid;

use super::agent_space::AgentSpace;
use crate::git::{Filters, Git, ResetFiles, file_clock_after};
use crate::process;

/// Laying out all files anew is faster than looking through this many leftovers.
const PATIENCE: Duration = Duration::from_secs(2);

/// Makes `tree` hold the files of a commit and nothing else, with `index` as its index, out of an earlier workspace. Where that is
/// not possible, neither of the two exists. Whatever else was in the earlier workspace is deleted in the background.
pub(super) fn reuse(earlier: &AgentSpace, git: &Git, commit: &Oid, tree: &Path, index: &Path, filters: &Filters) -> bool {
    // A process that is still dying could write once more.
    if process::has_descendants() {
        return false;
    }
    let trash = earlier.folder.path().join("trash");
    if fs::create_dir(&trash).is_err() {
        return false;
    }
    let job = ResetFiles {
        folder: &earlier.tree,
        index: &earlier.laid_out,
        trash: &trash,
        opened: earlier.opened.unwrap_or_else(|| file_clock_after(earlier.ready)),
        from: &earlier.laid_out_from,
        to: commit,
        patience: PATIENCE,
        filters,
    };
    if git.reset_files(&job).is_err() {
        return false;
    }
    let moved = fs::rename(&earlier.tree, tree).and_then(|()| fs::rename(&earlier.laid_out, index));
    if moved.is_err() && tree.exists() {
        // Half of it is of no use.
        let _ = fs::rename(tree, trash.join("tree"));
    }
    moved.is_ok()
}
