//! Index entries that git made from an attempt's files inside a view. One of the user's filters may have run the agent's code
//! there, so git works on a copy of the index. Only the requested entries of that copy are accepted, and new contents are hashed
//! again.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tempfile::TempDir;
use verdone_text::hex;

use super::Git;
use super::attempt_tree::{EntryState, Plan, ReadBack, TreeObstacle, examine, reserved};
use super::error::GitError;
use super::index::IndexFile;
use super::index_entries::IndexEntry;
use super::index_stat::IndexStat;
use super::path::RepoPath;

/// Regular file, executable and symlink.
const MODES: [u32; 3] = [0o100_644, 0o100_755, 0o120_000];
/// Signature, version and number of entries.
const HEADER: usize = 12;

/// Copies of the index for git inside a view, in a folder that is removed on drop.
#[derive(Debug)]
pub(super) struct LentIndex {
    folder: TempDir,
    number: u32,
}

impl LentIndex {
    pub(super) fn new(scratch: &Path) -> Result<Self, GitError> {
        let folder = tempfile::Builder::new().prefix("index-").tempdir_in(scratch).map_err(GitError::io(scratch))?;
        Ok(Self { folder, number: 0 })
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join(self.number.to_string())
    }

    /// Replaces the copy. Git compares the modification time of the index with those of files.
    pub(super) fn lend(&mut self, bytes: &[u8], modified: SystemTime) -> Result<(), GitError> {
        self.number += 1;
        if bytes.is_empty() {
            return Ok(());
        }
        let path = self.path();
        // Create a new file: an existing one was planted.
        let write = || {
            let mut file = OpenOptions::new().write(true).create_new(true).open(&path)?;
            file.write_all(bytes)?;
            file.set_modified(modified)
        };
        write().map_err(GitError::io(&path))
    }

    /// The index as git left it.
    pub(super) fn read(&self) -> Result<Vec<u8>, GitError> {
        Ok(IndexFile::read(&self.path())?.map(|index| index.bytes).unwrap_or_default())
    }
}

/// An entry that git made from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AddedEntry {
    path: RepoPath,
    mode: u32,
    id: String,
    /// False if the index already had this entry.
    is_new: bool,
}

/// The index without the removed files, because git refuses a path below what is now a symlink. Files to add lose their stat
/// data, so that git reads each of them.
pub(super) fn without_entries(bytes: &[u8], entries: &[IndexEntry<'_>], plan: &Plan) -> Vec<u8> {
    let Some(first) = entries.first() else { return Vec::new() };
    let removed: HashSet<&[u8]> = plan.removed.iter().map(RepoPath::as_bytes).collect();
    let added: HashSet<&[u8]> = plan.added.iter().map(RepoPath::as_bytes).collect();
    let unknown = IndexStat { changed: (0, 0), modified: (0, 0), inode: 0, size: 0 };
    let mut kept = bytes[..HEADER].to_vec();
    let mut count: u32 = 0;
    for entry in entries.iter().filter(|entry| !removed.contains(entry.path)) {
        let at = kept.len();
        kept.extend_from_slice(&bytes[entry.at..entry.end]);
        if added.contains(entry.path) {
            unknown.write_times(&mut kept, at);
        }
        count += 1;
    }
    kept[HEADER - 4..HEADER].copy_from_slice(&count.to_be_bytes());
    // Without a checksum, as with git's `index.skipHash`.
    kept.extend(vec![0; first.id.len()]);
    kept
}

/// The requested entries. Any other new entry in the index is an error.
pub(super) fn added_entries(
    known: &[IndexEntry<'_>],
    after: &[IndexEntry<'_>],
    asked: &[RepoPath],
) -> Result<Vec<AddedEntry>, GitError> {
    let unexpected = |detail: String| GitError::Unexpected { what: "update-index", detail };
    let known: BTreeMap<&[u8], &IndexEntry<'_>> = known.iter().map(|entry| (entry.path, entry)).collect();
    let asked: HashSet<&[u8]> = asked.iter().map(RepoPath::as_bytes).collect();
    let mut added = Vec::new();
    for entry in after {
        let path = RepoPath::new(entry.path);
        let is_new = known.get(entry.path).is_none_or(|known| (known.id, known.mode) != (entry.id, entry.mode));
        if !asked.contains(entry.path) {
            if is_new {
                return Err(unexpected(format!("{path} was added unexpectedly")));
            }
        } else if !MODES.contains(&entry.mode) {
            return Err(unexpected(format!("{path} has the mode {:o}", entry.mode)));
        } else {
            added.push(AddedEntry { path, mode: entry.mode, id: hex(entry.id), is_new });
        }
    }
    Ok(added)
}

/// Why requested files are not in the index. A file that no longer exists is not an obstacle.
pub(super) fn left_out(
    job: &ReadBack<'_>,
    asked: &[RepoPath],
    added: &[AddedEntry],
    known: &[TreeObstacle],
) -> Vec<TreeObstacle> {
    let added: HashSet<&RepoPath> = added.iter().map(|entry| &entry.path).collect();
    let is_known = |path: &RepoPath| {
        known.iter().any(|obstacle| matches!(obstacle, TreeObstacle::Refused { path: refused, .. } if refused == path))
    };
    let missing = asked.iter().filter(|path| !added.contains(path) && !is_known(path));
    let why = |path: &RepoPath| match examine(job, path) {
        Ok(EntryState::Nothing) => None,
        Ok(EntryState::File) => Some(reserved(path.clone())),
        Err(obstacle) => Some(obstacle),
    };
    missing.filter_map(why).collect()
}

/// Input for `update-index --index-info`. Removals come first, because a folder may become a file.
pub(super) fn index_info(removed: &[RepoPath], added: &[AddedEntry], id_length: usize) -> Vec<u8> {
    let zeros = "0".repeat(id_length);
    let gone = removed.iter().map(|path| (format!("0 {zeros}\t"), path));
    let new = added.iter().filter(|entry| entry.is_new).map(|entry| (format!("{:o} {}\t", entry.mode, entry.id), &entry.path));
    gone.chain(new).flat_map(|(head, path)| [head.as_bytes(), path.as_bytes(), b"\0"].concat()).collect()
}

impl Git {
    /// Imports the contents of entries from the private object folder and hashes each of them again.
    pub(super) fn import_contents(&self, job: &ReadBack<'_>, added: &[AddedEntry]) -> Result<(), GitError> {
        let ids: BTreeSet<&str> = added.iter().filter(|entry| entry.is_new).map(|entry| entry.id.as_str()).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let list: String = ids.into_iter().flat_map(|id| [id, "\n"]).collect();
        let pack = self.pack_private(job.objects).stdin(list.into_bytes()).run()?;
        self.unpack(pack, &[])
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::super::index_entries::entries;
    use super::*;

    #[test]
    fn an_index_with_entries_that_nobody_asked_for_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let git = |words: &[&str]| {
            let mut command = Command::new("git");
            command.args(["-c", "index.version=2"]).args(words).current_dir(dir.path());
            assert!(command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap().status.success(), "{words:?}");
        };
        let index = || std::fs::read(dir.path().join(".git/index")).unwrap();
        git(&["init", "-q"]);
        for name in ["known", "wanted", "foreign"] {
            std::fs::write(dir.path().join(name), name).unwrap();
        }
        git(&["add", "known"]);
        let before = index();
        let before = entries(&before).unwrap();
        git(&["add", "wanted"]);
        let after = index();
        let after = entries(&after).unwrap();
        let wanted = [RepoPath::from("wanted")];
        assert_eq!(added_entries(&before, &after, &wanted).unwrap().len(), 1);
        assert_eq!(added_entries(&[], &before, &["known".into()]).unwrap().len(), 1);
        added_entries(&before, &after, &[]).unwrap_err();
        git(&["update-index", "--add", "--cacheinfo", "160000,0123456789012345678901234567890123456789,wanted"]);
        let error = added_entries(&before, &entries(&index()).unwrap(), &wanted).unwrap_err().to_string();
        assert!(error.contains("wanted has the mode 160000"), "{error}");
    }

    #[test]
    fn an_index_without_some_entries_is_one_that_git_reads() {
        let dir = tempfile::tempdir().unwrap();
        let git = |words: &[&str]| {
            let mut command = Command::new("git");
            command.args(["-c", "index.version=2"]).args(words).current_dir(dir.path());
            let output = command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
            assert!(output.status.success(), "{words:?}: {output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        git(&["init", "-q"]);
        for name in ["a", "folder-b", "c"] {
            std::fs::write(dir.path().join(name), name).unwrap();
        }
        git(&["add", "--all"]);
        let path = dir.path().join(".git/index");
        let before = std::fs::read(&path).unwrap();
        let plan = Plan { removed: vec!["folder-b".into()], added: vec!["c".into()] };
        let lent = without_entries(&before, &entries(&before).unwrap(), &plan);
        let names: Vec<&[u8]> = entries(&lent).unwrap().into_iter().map(|entry| entry.path).collect();
        assert_eq!(names, [&b"a"[..], b"c"]);
        std::fs::write(&path, lent).unwrap();
        assert_eq!(git(&["ls-files"]), "a\nc\n");
        assert_eq!(git(&["diff", "--name-only"]), "", "git looks at it again and finds it the same");
        let all = Plan { removed: vec!["a".into(), "c".into(), "folder-b".into()], added: Vec::new() };
        let none = without_entries(&before, &entries(&before).unwrap(), &all);
        assert_eq!(entries(&none).unwrap(), []);
    }
}
