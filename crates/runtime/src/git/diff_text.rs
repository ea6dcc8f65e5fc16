//! The differences between two trees as readable text.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use verdone_core::base::id::Oid;

use super::error::GitError;
use super::{Git, RepoPath, is_object_id};

/// How many files to show: readers do not want more at once, and the length of a command line is limited.
const MOST_FILES: usize = 200;

impl Git {
    /// The diff of the first 200 of these files between two commits or trees. Without `base`, all files are new.
    pub fn diff_text(&self, base: Option<&Oid>, tip: &Oid, paths: &[RepoPath]) -> Result<String, GitError> {
        if paths.is_empty() || !is_object_id(tip) || base.is_some_and(|base| !is_object_id(base)) {
            return Ok(String::new());
        }
        let base = match base {
            Some(base) => base.clone(),
            // Git knows the empty tree even if the repository does not store it.
            None => Oid(self.plumbing("hash-object").args(["-t", "tree", "--stdin"]).stdin(Vec::new()).line()?),
        };
        let options =
            ["-r", "-p", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--src-prefix=a/", "--dst-prefix=b/"];
        // Match names literally, whatever characters they contain.
        let literal = |path: &RepoPath| OsString::from_vec([b":(top,literal)", path.as_bytes()].concat());
        let call = self.plumbing("diff-tree").args(options).args([base.as_str(), tip.as_str(), "--"]);
        let output = call.args(paths.iter().take(MOST_FILES).map(literal)).run()?;
        let mut text = String::from_utf8_lossy(&output).into_owned();
        if let Some(more @ 1..) = paths.len().checked_sub(MOST_FILES) {
            text.push_str(&format!("\n[{more} more files are not shown]\n"));
        }
        Ok(text)
    }
}
