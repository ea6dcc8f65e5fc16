//! A work tree of exactly one tree, elsewhere: an index and a HEAD of its own, everything else of git shared with the repository,
//! as in a linked work tree. No list of git's names it, so a crash leaves nothing on one.

use std::fs;
use std::io;
use std::path::Path;

use verdone_core::id::Oid;

use super::command::Call;
use super::error::GitError;
use super::path::RepoPath;
use super::{Git, is_object_id};

/// What a HEAD without a commit points at: not the user's branch.
const UNBORN: &str = "refs/heads/verdone-clean-tree";
/// As git itself writes them where refs are in tables.
const TABLE_HEAD: &str = "ref: refs/heads/.invalid\n";
const TABLE_REFS: &str = "this repository uses the reftable format\n";

const FOLDER: &str = "040000";
/// Paths that one command line is given.
const MOST_PATHS: usize = 500;

/// A file of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TreeFile {
    pub(crate) path: RepoPath,
    pub(crate) mode: String,
    pub(crate) id: Oid,
    /// Another repository's commit instead of content.
    pub(crate) submodule: bool,
}

impl TreeFile {
    /// Takes a path out of a tree that it is laid over.
    pub(crate) fn gone(path: RepoPath, tree: &Oid) -> Self {
        Self { path, mode: "0".to_owned(), id: Oid("0".repeat(tree.as_str().len())), submodule: false }
    }

    pub(crate) fn new(path: RepoPath, mode: u32, id: Oid) -> Self {
        Self { path, mode: format!("{mode:o}"), id, submodule: mode == 0o160_000 }
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.mode == "0"
    }

    /// A file with content, and no link.
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

    /// The files at these paths of a tree; folders and paths that are not there are left out.
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

    /// Keeps some bytes as an object, so that a tree can have them.
    pub(crate) fn keep_bytes(&self, bytes: &[u8]) -> Result<Oid, GitError> {
        self.plumbing("hash-object").args(["-w", "--stdin"]).stdin(bytes.to_vec()).line().map(Oid)
    }

    /// A tree with these files on top of it; on top of nothing where there is none.
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

    /// Writes a tree into the empty folder `top`, with `own` for git's files about it. Filters and a sparse checkout are respected.
    pub(crate) fn lay_out(&self, tree: &Oid, top: &Path, own: &Path) -> Result<(), GitError> {
        known(tree)?;
        let commit = match self.resolve(&format!("{tree}^{{commit}}"))? {
            Some(commit) => Some(commit),
            None => self.resolve("HEAD")?,
        };
        let tables = self.common_dir.join("reftable").exists();
        let write = |path: &Path, text: &[u8]| fs::write(path, text).map_err(GitError::io(path));
        let mut link = b"gitdir: ".to_vec();
        link.extend(line(own));
        fs::create_dir_all(own.join("info")).map_err(GitError::io(own))?;
        write(&own.join("commondir"), &line(&self.common_dir))?;
        write(&own.join("gitdir"), &line(&top.join(".git")))?;
        write(&top.join(".git"), &link)?;
        let call = |subcommand: &str| Call::plumbing(top, subcommand, self.deadline).envs(&self.environment);
        if tables {
            fs::create_dir_all(own.join("reftable")).map_err(GitError::io(own))?;
            fs::create_dir_all(own.join("refs")).map_err(GitError::io(own))?;
            write(&own.join("refs/heads"), TABLE_REFS.as_bytes())?;
            write(&own.join("HEAD"), TABLE_HEAD.as_bytes())?;
            match &commit {
                Some(commit) => call("update-ref").args(["--no-deref", "HEAD", commit.as_str()]).run()?,
                None => call("symbolic-ref").args(["HEAD", UNBORN]).run()?,
            };
        } else {
            let head = commit.as_ref().map_or_else(|| format!("ref: {UNBORN}\n"), |commit| format!("{commit}\n"));
            write(&own.join("HEAD"), head.as_bytes())?;
        }
        self.share_sparse(own)?;
        call("read-tree").args(["--reset", "-u", tree.as_str()]).run()?;
        Ok(())
    }

    /// Files that a sparse checkout leaves out are left out here too.
    fn share_sparse(&self, own: &Path) -> Result<(), GitError> {
        let patterns = self.git_dir.join("info/sparse-checkout");
        match fs::copy(&patterns, own.join("info/sparse-checkout")) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(source) => return Err(GitError::Io { path: patterns, source }),
        }
        // Read where settings are kept for each work tree; elsewhere the shared ones say the same.
        let mut text = "[core]\n".to_owned();
        for name in ["sparseCheckout", "sparseCheckoutCone"] {
            let set = self.plumbing("config").args(["--type=bool", &format!("core.{name}")]).answer()?;
            if set.status.success() {
                text.push_str(&format!("\t{name} = {}\n", String::from_utf8_lossy(&set.stdout).trim()));
            }
        }
        let path = own.join("config.worktree");
        fs::write(&path, text).map_err(GitError::io(&path))
    }
}

fn known(tree: &Oid) -> Result<(), GitError> {
    let detail = || format!("{:?} is no id of an object", tree.as_str());
    if is_object_id(tree) { Ok(()) } else { Err(GitError::Unexpected { what: "ls-tree", detail: detail() }) }
}

fn line(path: &Path) -> Vec<u8> {
    let mut bytes = path.as_os_str().as_encoded_bytes().to_vec();
    bytes.push(b'\n');
    bytes
}

/// `<mode> <type> <id>\t<path>`.
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
