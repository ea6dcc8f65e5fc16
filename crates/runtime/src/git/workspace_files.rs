//! The files of a workspace: one tree, written into a separate folder with its own index.
//!
//! The real repository's settings, attributes and sparse checkout apply, and its filters if the caller allows them. Git may run
//! here only as long as only Verdone has written into the folder.

use std::path::Path;

use verdone_core::base::id::Oid;

use super::command::Call;
use super::error::GitError;
use super::filter::Filters;
use super::index::IndexFile;
use super::index_entries;
use super::{Git, is_object_id};

/// Settings for an index that [`super::index_entries`] can read, whatever the user prefers.
pub(super) const PLAIN_INDEX: [&str; 6] = ["-c", "index.version=2", "-c", "feature.manyFiles=false", "-c", "index.sparse=false"];

impl Git {
    /// Checks out exactly this tree into an empty folder. `index` is a new file outside of the folder; its entries match the
    /// files.
    pub fn lay_out_files(&self, tree: &Oid, folder: &Path, index: &Path, filters: &Filters) -> Result<(), GitError> {
        self.read_into(tree, folder, index, filters, "-m")
    }

    /// Updates a folder to another tree. It must have been checked out before, and only Verdone may have written to it since.
    pub fn update_files(&self, tree: &Oid, folder: &Path, index: &Path, filters: &Filters) -> Result<(), GitError> {
        self.read_into(tree, folder, index, filters, "--reset")
    }

    fn read_into(&self, tree: &Oid, folder: &Path, index: &Path, filters: &Filters, how: &str) -> Result<(), GitError> {
        if !is_object_id(tree) {
            return Err(GitError::Unexpected { what: "read-tree", detail: format!("{tree} is not an object id") });
        }
        // Measured: as fast as `read-tree` plus `checkout-index`, but needs only one process.
        let call = Call::plumbing_with(folder, &PLAIN_INDEX, "read-tree", self.deadline)
            .envs(&self.environment)
            .env("GIT_DIR", self.git_dir.clone())
            .env("GIT_WORK_TREE", folder)
            .env("GIT_INDEX_FILE", index)
            .args([how, "-u", "--no-recurse-submodules", tree.as_str()]);
        match filters.apply(call)?.run() {
            Ok(_) => Ok(()),
            // Git names the files but not the reason.
            Err(GitError::Failed { .. }) if is_full(folder) => {
                Err(GitError::Io { path: folder.to_owned(), source: rustix::io::Errno::NOSPC.into() })
            }
            Err(error) => Err(error),
        }
    }
}

/// The attribute files in an index, which determine how other files are written: paths and ids, alternating.
pub(crate) fn attribute_files(index: &Path) -> Result<Vec<Vec<u8>>, GitError> {
    let Some(index) = IndexFile::read(index)? else { return Ok(Vec::new()) };
    let entries = index_entries::entries(&index.bytes).unwrap_or_default();
    let named = |path: &[u8]| path.rsplit(|byte| *byte == b'/').next() == Some(b".gitattributes");
    Ok(entries.iter().filter(|entry| named(entry.path)).flat_map(|entry| [entry.path.to_vec(), entry.id.to_vec()]).collect())
}

fn is_full(folder: &Path) -> bool {
    rustix::fs::statvfs(folder).is_ok_and(|found| found.f_bavail == 0 || (found.f_files > 0 && found.f_favail == 0))
}
