//! Brings kept changes back onto a HEAD that has moved on: all of them, byte for byte, or none.
//!
//! Only where nothing stands against them. A path that the commits since have changed too, or where something else is now, is
//! an overlap; then nothing is touched. The rest is a restore of a checkpoint that is the present state with the changes in it,
//! so being interrupted halfway is no harm: the same call finishes the work.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use verdone_core::event::Checkpoint;
use verdone_core::id::{Oid, RunId};

use super::Git;
use super::candidate::{History, Plan};
use super::error::GitError;
use super::files::{self, Found};
use super::index::{IndexFile, TempIndex};
use super::path::RepoPath;
use super::restore::{Repair, RestoreRules};
use super::snapshot::{Kept, Snapshot, State};
use super::status::{Blob, Change, Kind};

/// What became of changes that were to come back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Return {
    Done {
        files: u32,
    },
    /// Commits changed these too.
    Overlap(Vec<RepoPath>),
    /// Something else is there now.
    InTheWay(Vec<RepoPath>),
    /// Git is in the middle of something.
    Operation(&'static str),
}

impl Git {
    /// Why HEAD is not where commits on top of `since` would have brought it; none where it is.
    pub fn moved_since(&self, since: &Checkpoint) -> Result<Option<String>, GitError> {
        Ok(match self.history(since, &self.status()?)? {
            History::Same | History::Advanced => None,
            History::Moved { reason } => Some(reason),
        })
    }

    /// Puts `paths` into the work tree and the index as they are in the checkpoint `from`. Everything else stays as it is in
    /// `now`, a checkpoint of the present state.
    pub fn put_back(
        &self,
        chain: &RunId,
        from: &Checkpoint,
        paths: &[RepoPath],
        now: &Checkpoint,
        rules: &RestoreRules,
    ) -> Result<Return, GitError> {
        if let Some(operation) = self.operation_in_progress() {
            return Ok(Return::Operation(operation));
        }
        let (source, present) = (self.snapshot(&from.id)?, self.snapshot(&now.id)?);
        let changes: BTreeMap<&RepoPath, &Kept> = paths.iter().filter_map(|path| source.entries.get_key_value(path)).collect();
        if changes.is_empty() {
            return Ok(Return::Done { files: 0 });
        }
        let overlap = self.overlap(from.head.as_ref(), now.head.as_ref(), &changes)?;
        if !overlap.is_empty() {
            return Ok(Return::Overlap(overlap));
        }
        let others = self.others(&source, &changes, now.head.as_ref())?;
        if !others.is_empty() {
            return Ok(Return::InTheWay(others));
        }
        let together = self.together(chain, &source, &present, &changes)?;
        self.restore(&together, rules)?;
        Ok(Return::Done { files: changes.len() as u32 })
    }

    /// Changed paths that also differ between the two commits, or that cannot be beside one that does.
    fn overlap(
        &self,
        base: Option<&Oid>,
        head: Option<&Oid>,
        changes: &BTreeMap<&RepoPath, &Kept>,
    ) -> Result<Vec<RepoPath>, GitError> {
        let moved = match (base, head) {
            (base, head) if base == head => return Ok(Vec::new()),
            (base, Some(head)) => self.changed_paths(base, head)?,
            (Some(base), None) => self.changed_paths(None, base)?,
            (None, None) => return Ok(Vec::new()),
        };
        let moved: HashSet<RepoPath> = moved.iter().map(|changed| without_case(&changed.path)).collect();
        let above: HashSet<RepoPath> = moved.iter().flat_map(RepoPath::parents).collect();
        let collides = |path: &RepoPath| {
            let path = without_case(path);
            moved.contains(&path) || above.contains(&path) || path.parents().any(|parent| moved.contains(&parent))
        };
        Ok(changes.keys().filter(|path| collides(path)).map(|path| (*path).clone()).collect())
    }

    /// Paths where neither HEAD's version nor the changed one is: somebody else's work. Nothing at all is nobody's: git removes
    /// a file before it writes it, and may have been killed in between.
    fn others(
        &self,
        source: &Snapshot,
        changes: &BTreeMap<&RepoPath, &Kept>,
        head: Option<&Oid>,
    ) -> Result<Vec<RepoPath>, GitError> {
        let in_head = self.entries_of(head, changes)?;
        let differs = self.differs_from_head(&source.checkpoint.id, changes, &in_head)?;
        let mut others = BTreeSet::new();
        let mut unsure = Vec::new();
        for (path, kept) in changes {
            let is_heads =
                if in_head.contains_key(*path) { !differs.contains(*path) } else { matches!(self.read(path)?, Found::Nothing) };
            match &kept.state {
                State::Absent if is_heads => continue,
                State::Absent => {
                    if !self.read(path)?.is_empty() {
                        others.insert((*path).clone());
                    }
                    continue;
                }
                State::File { file, stat } if !is_heads => unsure.push((*kept, *file, stat.size)),
                State::Symlink { file } if !is_heads => unsure.push((*kept, *file, 0)),
                State::File { .. } | State::Symlink { .. } => {}
            }
            let goes = |path: &RepoPath| changes.contains_key(path);
            others.extend(files::in_the_way(&self.top, path, &goes).map_err(GitError::io(path.as_path()))?);
        }
        self.each_kept(&source.checkpoint.id, unsure, |kept, bytes| {
            let found = self.read(&kept.path)?;
            if Repair::of(kept, &found, &bytes) != Repair::Nothing && !found.is_empty() {
                others.insert(kept.path.clone());
            }
            Ok(())
        })?;
        Ok(others.into_iter().collect())
    }

    fn read(&self, path: &RepoPath) -> Result<Found, GitError> {
        files::read(&self.top, path).map_err(GitError::io(path.as_path()))
    }

    /// What a commit has at these paths.
    fn entries_of(
        &self,
        commit: Option<&Oid>,
        wanted: &BTreeMap<&RepoPath, &Kept>,
    ) -> Result<BTreeMap<RepoPath, Blob>, GitError> {
        let Some(commit) = commit else { return Ok(BTreeMap::new()) };
        let listed = self.plumbing("ls-tree").args(["-r", "-z", "--full-tree", commit.as_str()]).run()?;
        let entries = listed.split(|byte| *byte == 0).filter_map(read_entry);
        let mut found = BTreeMap::new();
        for (path, [mode, _kind, id]) in entries {
            let path = RepoPath::new(path);
            if wanted.contains_key(&path) {
                found.insert(path, Blob { mode: mode.to_owned(), id: Oid::from(id) });
            }
        }
        Ok(found)
    }

    /// Files that are not as HEAD has them, whatever the index says about them.
    fn differs_from_head(
        &self,
        like: &Oid,
        changes: &BTreeMap<&RepoPath, &Kept>,
        in_head: &BTreeMap<RepoPath, Blob>,
    ) -> Result<BTreeSet<RepoPath>, GitError> {
        let index = self.copy_index()?;
        let mut plan = Plan::like(like);
        for path in changes.keys() {
            plan.set(path, in_head.get(*path));
        }
        self.update_index(&index, &plan)?;
        let entries = self.status_by(&index)?.entries.into_iter();
        let differs = entries.filter(|entry| matches!(&entry.kind, Kind::Tracked { work, .. } if *work != Change::None));
        Ok(differs.map(|entry| entry.path).collect())
    }

    /// The present state with the changes in it.
    fn together(
        &self,
        chain: &RunId,
        source: &Snapshot,
        present: &Snapshot,
        changes: &BTreeMap<&RepoPath, &Kept>,
    ) -> Result<Checkpoint, GitError> {
        let index = self.temp_index(self.index_of(source)?.as_ref())?;
        let mut plan = Plan::like(&source.checkpoint.id);
        let (theirs, here) = (self.staged(Some(&index))?, self.staged(None)?);
        let all: BTreeSet<&RepoPath> = theirs.keys().chain(here.keys()).collect();
        for path in all.into_iter().filter(|path| !changes.contains_key(*path)) {
            if theirs.get(path) != here.get(path) {
                plan.set(path, here.get(path));
            }
        }
        if !plan.is_empty() {
            self.update_index(&index, &plan)?;
        }
        let parts = self.parts(source, changes.values().copied())?;
        let (index, paths) = (IndexFile::read(&index.path())?, changes.keys().copied().cloned());
        self.derive(chain, "with the user's changes again", present, index.as_ref(), paths, parts)
    }

    /// The entries of an index; of the user's where none is named.
    fn staged(&self, index: Option<&TempIndex>) -> Result<BTreeMap<RepoPath, Blob>, GitError> {
        let call = self.plumbing("ls-files").args(["-s", "-z"]);
        let call = if let Some(index) = index { call.env("GIT_INDEX_FILE", index.path()) } else { call };
        let listed = call.run()?;
        let entries = listed.split(|byte| *byte == 0).filter_map(read_entry);
        let entry =
            |(path, [mode, id, _stage]): (&[u8], [&str; 3])| (RepoPath::new(path), Blob { mode: mode.to_owned(), id: id.into() });
        Ok(entries.map(entry).collect())
    }
}

/// `<word> <word> <word>\t<path>`.
fn read_entry(record: &[u8]) -> Option<(&[u8], [&str; 3])> {
    let tab = record.iter().position(|byte| *byte == b'\t')?;
    let mut words = std::str::from_utf8(&record[..tab]).ok()?.split(' ');
    Some((&record[tab + 1..], [words.next()?, words.next()?, words.next()?]))
}

/// On some file systems, names that differ only in this are the same file.
fn without_case(path: &RepoPath) -> RepoPath {
    match std::str::from_utf8(path.as_bytes()) {
        Ok(text) => RepoPath::new(text.to_lowercase().as_bytes()),
        Err(_) => RepoPath::new(&path.as_bytes().to_ascii_lowercase()),
    }
}
