//! The files of a workspace: one tree, written into a folder elsewhere, with an index of its own.
//!
//! The real repository's settings, attributes and sparse checkout apply, and its filters where the caller says. Git may run here only
//! while nobody but Verdone has written into the folder.

use std::path::Path;

use verdone_core::base::id::Oid;

use super::command::Call;
use super::error::GitError;
use super::filter::Filters;
use super::index::IndexFile;
use super::index_entries;
use super::{Git, is_object_id};

/// An index that [`super::index_entries`] can read, whatever the user prefers.
pub(super) const PLAIN_INDEX: [&str; 6] = ["-c", "index.version=2", "-c", "feature.manyFiles=false", "-c", "index.sparse=false"];

impl Git {
    /// Writes exactly this tree into an empty folder. `index` is a new file outside of the folder; its entries know the files.
    pub fn lay_out_files(&self, tree: &Oid, folder: &Path, index: &Path, filters: &Filters) -> Result<(), GitError> {
        self.read_into(tree, folder, index, filters, "-m")
    }

    /// Turns a folder that was laid out before, and that nobody else has written into since, into another tree.
    pub fn update_files(&self, tree: &Oid, folder: &Path, index: &Path, filters: &Filters) -> Result<(), GitError> {
        self.read_into(tree, folder, index, filters, "--reset")
    }

    fn read_into(&self, tree: &Oid, folder: &Path, index: &Path, filters: &Filters, how: &str) -> Result<(), GitError> {
        if !is_object_id(tree) {
            return Err(GitError::Unexpected { what: "read-tree", detail: format!("{tree} is not an object id") });
        }
        // Measured: as fast as `read-tree` with `checkout-index`, in one process.
        let call = Call::plumbing_with(folder, &PLAIN_INDEX, "read-tree", self.deadline)
            .envs(&self.environment)
            .env("GIT_DIR", self.git_dir.clone())
            .env("GIT_WORK_TREE", folder)
            .env("GIT_INDEX_FILE", index)
            .args([how, "-u", "--no-recurse-submodules", tree.as_str()]);
        match filters.apply(call)?.run() {
            Ok(_) => Ok(()),
            // Git names the files, and not the reason.
            Err(GitError::Failed { .. }) if is_full(folder) => {
                Err(GitError::Io { path: folder.to_owned(), source: rustix::io::Errno::NOSPC.into() })
            }
            Err(error) => Err(error),
        }
    }
}

/// The files in an index that say how others are written: paths and ids, one after another.
pub(crate) fn attribute_files(index: &Path) -> Result<Vec<Vec<u8>>, GitError> {
    let Some(index) = IndexFile::read(index)? else { return Ok(Vec::new()) };
    let entries = index_entries::entries(&index.bytes).unwrap_or_default();
    let named = |path: &[u8]| path.rsplit(|byte| *byte == b'/').next() == Some(b".gitattributes");
    Ok(entries.iter().filter(|entry| named(entry.path)).flat_map(|entry| [entry.path.to_vec(), entry.id.to_vec()]).collect())
}

fn is_full(folder: &Path) -> bool {
    rustix::fs::statvfs(folder).is_ok_and(|found| found.f_bavail == 0 || (found.f_files > 0 && found.f_favail == 0))
}
