//! Lists the files of trees and makes new trees from them.

use verdone_core::base::id::Oid;

use super::error::GitError;
use super::path::RepoPath;
use super::{Git, is_object_id};

const FOLDER: &str = "040000";
/// The most paths to put on one command line.
const MOST_PATHS: usize = 500;

/// A file of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeFile {
    pub(crate) path: RepoPath,
    pub(crate) mode: String,
    pub(crate) id: Oid,
    /// A commit of another repository instead of content.
    pub(crate) submodule: bool,
}

impl TreeFile {
    /// Removes a path from the tree that this is laid over.
    pub(crate) fn gone(path: RepoPath, tree: &Oid) -> Self {
        Self { path, mode: "0".to_owned(), id: Oid("0".repeat(tree.as_str().len())), submodule: false }
    }

    pub(crate) fn new(path: RepoPath, mode: u32, id: Oid) -> Self {
        Self { path, mode: format!("{mode:o}"), id, submodule: mode == 0o160_000 }
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.mode == "0"
    }

    /// A regular file, not a link.
    pub(crate) fn is_plain(&self) -> bool {
        self.mode == "100644" || self.mode == "100755"
    }

    pub(crate) fn is_link(&self) -> bool {
        self.mode == "120000"
    }
}

impl Git {
    /// Everything in a tree, or in the tree of a commit.
    pub(crate) fn files_of(&self, tree: &Oid) -> Result<Vec<TreeFile>, GitError> {
        known(tree)?;
        let listed = self.plumbing("ls-tree").args(["-r", "-z", "--full-tree", tree.as_str()]).run()?;
        Ok(listed.split(|byte| *byte == 0).filter_map(read_record).collect())
    }

    /// The files at these paths of a tree. Skips folders and missing paths.
    pub(crate) fn entries_at(&self, tree: &Oid, paths: &[String]) -> Result<Vec<TreeFile>, GitError> {
        known(tree)?;
        let paths: Vec<&str> = paths.iter().map(String::as_str).filter(|path| !path.is_empty() && !path.contains('\0')).collect();
        let mut found = Vec::new();
        for some in paths.chunks(MOST_PATHS) {
            let listed = self.plumbing("ls-tree").args(["-z", "--full-tree", tree.as_str(), "--"]).args(some).run()?;
            let files = listed.split(|byte| *byte == 0).filter_map(read_record);
            found.extend(files.filter(|file| file.mode != FOLDER));
        }
        Ok(found)
    }

    /// Stores bytes as an object, for use in a tree.
    pub(crate) fn keep_bytes(&self, bytes: &[u8]) -> Result<Oid, GitError> {
        self.plumbing("hash-object").args(["-w", "--stdin"]).stdin(bytes.to_vec()).line().map(Oid)
    }

    /// A tree with these files on top of `base`, or with these files only.
    pub(crate) fn overlaid(&self, base: Option<&Oid>, files: &[TreeFile]) -> Result<Oid, GitError> {
        let index = self.temp_index(None)?;
        let call = |subcommand: &str| self.plumbing(subcommand).env("GIT_INDEX_FILE", index.path());
        match base {
            Some(base) => {
                known(base)?;
                call("read-tree").args([base.as_str()]).run()?
            }
            None => call("read-tree").args(["--empty"]).run()?,
        };
        let mut stdin = Vec::new();
        for file in files {
            stdin.extend(format!("{} {}\t", file.mode, file.id).into_bytes());
            stdin.extend(file.path.as_path().as_os_str().as_encoded_bytes());
            stdin.push(0);
        }
        call("update-index").args(["-z", "--index-info"]).stdin(stdin).run()?;
        call("write-tree").line().map(Oid)
    }
}

fn known(tree: &Oid) -> Result<(), GitError> {
    let detail = || format!("{:?} is not an object id", tree.as_str());
    if is_object_id(tree) { Ok(()) } else { Err(GitError::Unexpected { what: "ls-tree", detail: detail() }) }
}

/// Parses `<mode> <type> <id>\t<path>`.
fn read_record(record: &[u8]) -> Option<TreeFile> {
    let tab = record.iter().position(|byte| *byte == b'\t')?;
    let mut words = std::str::from_utf8(&record[..tab]).ok()?.split(' ');
    let (mode, kind, id) = (words.next()?, words.next()?, words.next()?);
    Some(TreeFile {
        path: RepoPath::new(&record[tab + 1..]),
        mode: mode.to_owned(),
        id: Oid::from(id),
        submodule: kind == "commit",
    })
}
