//! Imports objects from a private folder into the real repository. They travel as a pack, so that each is hashed again. The
//! references of trees and commits are checked as well. Nothing that a foreign folder says about an object is trusted.

use std::path::Path;
use std::time::SystemTime;

use verdone_core::base::id::Oid;

use super::command::Call;
use super::error::GitError;
use super::path::RepoPath;
use super::{Git, is_object_id};

/// Fewer objects become loose objects; more stay in a pack.
const FEW: u32 = 100;
/// A pack begins with `PACK`, a version and the number of objects.
const COUNT_AT: usize = 8;

/// A file that replaces one in a tree: its mode (six octal digits) and its bytes.
pub type NewContent = (&'static str, Vec<u8>);

/// A path with its mode (`0` means no such file) and the id of its content.
type NewEntry<'a> = (&'a RepoPath, &'static str, String);

impl Git {
    /// Imports what `tip` (a commit or tree) needs from a private object folder. `known` is a commit or tree that this repository
    /// already has, which shortens the search. Everything is on disk when this returns.
    pub fn import_objects(&self, objects: &Path, tip: &Oid, known: Option<&Oid>) -> Result<(), GitError> {
        if let Some(id) = [Some(tip), known].into_iter().flatten().find(|id| !is_object_id(id)) {
            return Err(GitError::Unexpected { what: "pack-objects", detail: format!("{id} is not an object id") });
        }
        let since = SystemTime::now();
        let wanted = known.map_or_else(|| format!("{tip}\n"), |known| format!("{tip}\n^{known}^{{tree}}\n"));
        let pack = self.pack_private(objects).args(["--revs"]).stdin(wanted.into_bytes()).run()?;
        self.unpack(pack, &["--strict"])?;
        self.sync_object_folders(since)
    }

    /// Packs the objects of a private folder. Leaves out objects that are only in the alternates, which belong to the real
    /// repository.
    pub(super) fn pack_private(&self, objects: &Path) -> Call {
        self.plumbing("pack-objects")
            .args(["--local", "--stdout", "-q", "--window=0"])
            .env("GIT_OBJECT_DIRECTORY", objects)
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", self.alternates_variable())
    }

    /// Writes the objects of a pack. Call [`Git::sync_object_folders`] afterwards.
    pub(super) fn unpack(&self, pack: Vec<u8>, options: &[&str]) -> Result<(), GitError> {
        let count = pack.get(COUNT_AT..COUNT_AT + 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_be_bytes);
        match count {
            None => return Err(GitError::Unexpected { what: "pack-objects", detail: "not a pack".to_owned() }),
            Some(0) => {}
            Some(1..FEW) => drop(self.durable("unpack-objects").args(["-q"]).args(options).stdin(pack).run()?),
            Some(_) => drop(self.durable("index-pack").args(["--stdin"]).args(options).stdin(pack).run()?),
        }
        Ok(())
    }

    /// Replaces, adds or (without content) removes files of a tree. The new tree is on disk when this returns.
    pub fn replace_in_tree(&self, tree: &Oid, changes: &[(RepoPath, Option<NewContent>)]) -> Result<Oid, GitError> {
        if !is_object_id(tree) {
            return Err(GitError::Unexpected { what: "read-tree", detail: format!("{tree} is not an object id") });
        }
        let since = SystemTime::now();
        let mut entries = Vec::new();
        for (path, content) in changes {
            let (mode, id) = match content {
                Some((mode, bytes)) => {
                    let call = self.durable("hash-object").args(["-w", "--no-filters", "--stdin"]);
                    (*mode, call.stdin(bytes.clone()).line()?)
                }
                None => ("0", "0".repeat(tree.as_str().len())),
            };
            entries.push((path, mode, id));
        }
        let made = if changes.iter().all(|(path, _)| !path.as_bytes().contains(&b'/')) {
            self.replace_at_top(tree, &entries)?
        } else {
            self.replace_through_index(tree, &entries)?
        };
        self.sync_object_folders(since)?;
        Ok(made)
    }

    /// Replaces files at the top of a tree, where most projects have their plan. Nothing below it has to be read.
    fn replace_at_top(&self, tree: &Oid, entries: &[NewEntry<'_>]) -> Result<Oid, GitError> {
        let listed = self.plumbing("ls-tree").args(["-z", tree.as_str()]).run()?;
        let is_replaced = |line: &[u8]| {
            let name = line.iter().position(|byte| *byte == b'\t').map(|tab| &line[tab + 1..]);
            entries.iter().any(|(path, ..)| Some(path.as_bytes()) == name)
        };
        let kept = listed.split(|byte| *byte == 0).filter(|line| !line.is_empty() && !is_replaced(line));
        let mut lines: Vec<Vec<u8>> = kept.map(<[u8]>::to_vec).collect();
        for (path, mode, id) in entries.iter().filter(|(_, mode, _)| *mode != "0") {
            lines.push([format!("{mode} blob {id}\t").as_bytes(), path.as_bytes()].concat());
        }
        let input = lines.into_iter().flat_map(|line| line.into_iter().chain([0])).collect();
        self.durable("mktree").args(["-z"]).stdin(input).line().map(Oid)
    }

    fn replace_through_index(&self, tree: &Oid, entries: &[NewEntry<'_>]) -> Result<Oid, GitError> {
        let index = self.temp_index(None)?;
        let mut input = Vec::new();
        for (path, mode, id) in entries {
            input.extend_from_slice(format!("{mode} {id}\t").as_bytes());
            input.extend_from_slice(path.as_bytes());
            input.push(0);
        }
        let call = |subcommand: &str| self.durable(subcommand).env("GIT_INDEX_FILE", index.path());
        call("read-tree").args([tree.as_str()]).run()?;
        call("update-index").args(["-z", "--add", "--replace", "--index-info"]).stdin(input).run()?;
        call("write-tree").line().map(Oid)
    }
}
