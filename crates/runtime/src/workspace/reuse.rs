//! Makes the agent's next workspace from the files of its last one. Most of them are unchanged, and writing them again takes long
//! in a large project.

use std::fs;
use std::path::Path;
use std::time::Duration;

use verdone_core::base::id::Oid;

use super::agent_space::AgentSpace;
use crate::git::{Filters, Git, ResetFiles, file_clock_after};
use crate::process;

/// If scanning the leftovers takes longer, a full checkout is faster.
const PATIENCE: Duration = Duration::from_secs(2);

/// Makes `tree` contain exactly the files of a commit, with `index` as its index, by reusing an earlier workspace. If that is
/// impossible, neither of the two exists afterwards. The rest of the earlier workspace is deleted in the background.
pub(super) fn reuse_files(earlier: &AgentSpace, git: &Git, commit: &Oid, tree: &Path, index: &Path, filters: &Filters) -> bool {
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
        // A half-finished move is useless.
        let _ = fs::rename(tree, trash.join("tree"));
    }
    moved.is_ok()
}
