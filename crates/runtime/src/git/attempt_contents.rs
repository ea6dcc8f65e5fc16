//! What git made of an attempt's files: the contents that are new become part of the real repository. A filter of the user's may have
//! run a program of the agent's beside git, so neither the index nor the objects that it left are believed.

use std::collections::{BTreeSet, HashMap, HashSet};

use verdone_core::id::hex;

use super::Git;
use super::attempt_tree::{ReadBack, TreeObstacle, reserved};
use super::error::GitError;
use super::index_entries::{self, IndexEntry};
use super::path::RepoPath;

/// A file, a program and a link.
const MODES: [u32; 3] = [0o100_644, 0o100_755, 0o120_000];

/// The contents of the files that git was asked to add and that the index did not have before. Files that git left out are obstacles.
pub(super) fn new_contents(
    before: &[u8],
    after: &[u8],
    asked: &[&[u8]],
    obstacles: &mut Vec<TreeObstacle>,
) -> Result<BTreeSet<String>, GitError> {
    let unexpected = |detail: String| GitError::Unexpected { what: "update-index", detail };
    let parse = |bytes| index_entries::entries(bytes).ok_or_else(|| unexpected("the index is not understood".to_owned()));
    let known: HashMap<&[u8], IndexEntry<'_>> = parse_known(before, parse)?;
    let asked: HashSet<&[u8]> = asked.iter().map(|path| path.strip_suffix(b"\0").unwrap_or(path)).collect();
    let mut added = HashSet::new();
    let mut new = BTreeSet::new();
    for entry in parse(after)? {
        let is_same = known.get(entry.path).is_some_and(|known| (known.id, known.mode) == (entry.id, entry.mode));
        if asked.contains(entry.path) {
            added.insert(entry.path);
        } else if !is_same {
            return Err(unexpected(format!("{} was not to be added", RepoPath::new(entry.path))));
        }
        if !is_same {
            if !MODES.contains(&entry.mode) {
                return Err(unexpected(format!("{} has the mode {:o}", RepoPath::new(entry.path), entry.mode)));
            }
            new.insert(hex(entry.id));
        }
    }
    let is_refused = |path: &RepoPath, obstacles: &[TreeObstacle]| {
        obstacles.iter().any(|obstacle| matches!(obstacle, TreeObstacle::Refused { path: refused, .. } if refused == path))
    };
    for path in asked.difference(&added).map(|path| RepoPath::new(path)) {
        if !is_refused(&path, obstacles) {
            obstacles.push(reserved(path));
        }
    }
    Ok(new)
}

fn parse_known<'i>(
    bytes: &'i [u8],
    parse: impl Fn(&'i [u8]) -> Result<Vec<IndexEntry<'i>>, GitError>,
) -> Result<HashMap<&'i [u8], IndexEntry<'i>>, GitError> {
    // A branch without a commit has no index yet.
    let entries = if bytes.is_empty() { Vec::new() } else { parse(bytes)? };
    Ok(entries.into_iter().map(|entry| (entry.path, entry)).collect())
}

impl Git {
    /// Brings contents from the private object folder. Each is hashed again.
    pub(super) fn import_contents(&self, job: &ReadBack<'_>, ids: &BTreeSet<String>) -> Result<(), GitError> {
        if ids.is_empty() {
            return Ok(());
        }
        let list: String = ids.iter().flat_map(|id| [id, "\n"]).collect();
        let pack = self.pack_private(job.objects).stdin(list.into_bytes()).run()?;
        self.unpack(pack, &[])
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

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
        git(&["add", "wanted"]);
        let wanted: [&[u8]; 1] = [b"wanted\0"];
        let mut obstacles = Vec::new();
        assert_eq!(new_contents(&before, &index(), &wanted, &mut obstacles).unwrap().len(), 1);
        assert_eq!(new_contents(b"", &before, &[b"known\0"], &mut obstacles).unwrap().len(), 1);
        assert_eq!(obstacles, []);
        new_contents(&before, &index(), &[], &mut obstacles).unwrap_err();
        let missing: [&[u8]; 2] = [b"wanted\0", b"missing\0"];
        new_contents(&before, &index(), &missing, &mut obstacles).unwrap();
        assert_eq!(obstacles, [reserved("missing".into())]);
        git(&["update-index", "--add", "--cacheinfo", "160000,0123456789012345678901234567890123456789,wanted"]);
        let error = new_contents(&before, &index(), &wanted, &mut obstacles).unwrap_err().to_string();
        assert!(error.contains("wanted has the mode 160000"), "{error}");
    }
}
