//! Rollback: the work tree, index and branch as they were at a checkpoint.
//!
//! The caller has taken a checkpoint of the present state first; that is what makes every deletion here undoable. What such a
//! checkpoint cannot hold, because ignore rules of the attempt hide it, is moved aside and not deleted. HEAD and index go back
//! first, so that git itself then says which files differ; passes are repeated until it says none do. Interrupted halfway, a new
//! checkpoint and the same call finish the work.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use verdone_core::event::Checkpoint;
use verdone_core::id::Oid;

use super::error::GitError;
use super::files::{self, Found, Stat};
use super::index::IndexFile;
use super::path::{PathSet, RepoPath};
use super::snapshot::{Kept, Snapshot, State, time_of};
use super::status::{Change, Entry, Kind, Status};
use super::{Git, is_object_id};
use crate::fault::{self, Point};

/// One pass does the work, a second one finds what an ignore rule of the attempt had hidden, a third one sees that all is well.
const PASSES: u32 = 6;
const CHECKOUTS: u32 = 2;

#[derive(Debug)]
pub struct RestoreRules {
    /// Paths that are left as they are.
    pub skip: PathSet,
    /// Where repositories made by the attempt, and ignored files that cannot stay, are moved. On the same file system, and not
    /// visible to git: ignored, or in `skip`.
    pub aside: PathBuf,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restored {
    /// Files written or removed.
    pub files: u32,
    /// What was moved aside, and where to.
    pub aside: Vec<PathBuf>,
}

impl Git {
    /// Puts a checkpoint back: branch, raw index, and every file that differs, byte for byte. Files that came later are removed,
    /// except ignored ones; ignored files are neither restored nor deleted.
    pub fn restore(&self, to: &Checkpoint, rules: &RestoreRules) -> Result<Restored, GitError> {
        let snapshot = self.snapshot(&to.id)?;
        // Read before anything is changed: a checkpoint that was remembered may have been pruned and collected since.
        let index = self.index_of(&snapshot)?;
        self.forget_operation()?;
        let now = self.status()?;
        let saved = self.saved_by_a_checkpoint(&now)?;
        fault::point(Point::RestoreHead).map_err(GitError::io(Path::new("HEAD")))?;
        self.put_back_head(&snapshot.checkpoint, &now)?;
        fault::point(Point::RestoreIndex).map_err(GitError::io(&self.index_path()))?;
        if IndexFile::read(&self.index_path())? != index {
            self.install_index(index.as_ref())?;
        }
        let mut work = Work {
            git: self,
            snapshot: &snapshot,
            rules,
            saved,
            checked_out: BTreeMap::new(),
            touched: BTreeSet::new(),
            aside: Vec::new(),
        };
        let mut last = BTreeSet::new();
        for _ in 0..PASSES {
            last = work.pass()?;
            if last.is_empty() {
                break;
            }
        }
        if !last.is_empty() {
            return Err(GitError::Unsettled { paths: last.into_iter().collect() });
        }
        fault::point(Point::RestoreExtra).map_err(GitError::io(&self.top))?;
        let extra = work.put_back_extra()?;
        fault::pass(Point::RestoreDone);
        Ok(Restored { files: work.touched.len() as u32 + extra, aside: work.aside })
    }

    /// An attempt may leave a merge or rebase half done; a checkpoint is never taken in one.
    fn forget_operation(&self) -> Result<(), GitError> {
        while let Some(operation) = self.operation_in_progress() {
            if operation != "bisect" {
                self.plumbing(operation).args(["--quit"]).run()?;
            }
            let signs = ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "BISECT_START", "BISECT_NAMES"];
            let more = ["BISECT_TERMS", "BISECT_EXPECTED_REV", "BISECT_ANCESTORS_OK", "BISECT_RUN", "MERGE_MSG", "MERGE_MODE"];
            for sign in signs.iter().chain(&more) {
                let _ = std::fs::remove_file(self.git_dir.join(sign));
            }
            if self.operation_in_progress() == Some(operation) {
                return Err(GitError::Unexpected { what: "restore", detail: format!("a {operation} is in progress") });
            }
        }
        Ok(())
    }

    /// Paths whose present content a checkpoint or a commit holds: everything that git tracks or reports.
    fn saved_by_a_checkpoint(&self, now: &Status) -> Result<HashSet<RepoPath>, GitError> {
        let tracked = self.plumbing("ls-files").args(["-z"]).run()?;
        let tracked = tracked.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(RepoPath::new);
        Ok(tracked.chain(now.entries.iter().map(|entry| entry.path.clone())).collect())
    }

    fn put_back_head(&self, to: &Checkpoint, now: &Status) -> Result<(), GitError> {
        if let Some(bad) = to.head.as_ref().filter(|id| !is_object_id(id)) {
            return Err(GitError::NotACheckpoint { id: bad.0.clone() });
        }
        let reflog = format!("{}: restore checkpoint", self.own_reflog_mark());
        let Some(branch) = &to.branch else {
            let Some(head) = &to.head else { return Ok(()) };
            if now.branch.is_some() || now.head.as_ref() != Some(head) {
                self.plumbing("update-ref").args(["--no-deref", "-m", &reflog, "HEAD", head.as_str()]).run()?;
            }
            return Ok(());
        };
        let name = format!("refs/heads/{branch}");
        let current = if now.branch.as_ref() == Some(branch) {
            now.head.clone()
        } else {
            self.plumbing("symbolic-ref").args(["-m", &reflog, "HEAD", &name]).run()?;
            self.resolve(&name)?
        };
        // The old value is named too, so that a concurrent move is an error and not a loss.
        let old = current.as_ref().map_or("", Oid::as_str);
        match (&to.head, &current) {
            (wanted, current) if wanted == current => {}
            (Some(wanted), _) => drop(self.plumbing("update-ref").args(["-m", &reflog, &name, wanted.as_str(), old]).run()?),
            (None, _) => drop(self.plumbing("update-ref").args(["-m", &reflog, "-d", &name, old]).run()?),
        }
        Ok(())
    }

    /// The index file as it was at a checkpoint.
    pub(super) fn index_of(&self, snapshot: &Snapshot) -> Result<Option<IndexFile>, GitError> {
        let id = &snapshot.checkpoint.id;
        let name = if snapshot.manifest.index_ns.is_some() { "index" } else { "manifest.json" };
        let bytes = self.blobs(id, &[name.to_owned()])?.into_iter().next().flatten();
        let bytes = bytes.ok_or_else(|| GitError::NotACheckpoint { id: id.0.clone() })?;
        Ok(snapshot.manifest.index_ns.map(|modified| IndexFile { bytes, modified: time_of(modified) }))
    }
}

/// One restore at work.
struct Work<'a> {
    git: &'a Git,
    snapshot: &'a Snapshot,
    rules: &'a RestoreRules,
    saved: HashSet<RepoPath>,
    /// How often each file was written by git.
    checked_out: BTreeMap<RepoPath, u32>,
    touched: BTreeSet<RepoPath>,
    aside: Vec<PathBuf>,
}

impl Work<'_> {
    /// Compares with the checkpoint and repairs what differs; gives the paths that did.
    fn pass(&mut self) -> Result<BTreeSet<RepoPath>, GitError> {
        let status = self.git.status()?;
        let mut repaired = BTreeSet::new();
        self.remove_new(&status, &mut repaired)?;
        self.put_back_kept(&mut repaired)?;
        self.check_out_clean(&status, &mut repaired)?;
        self.touched.extend(repaired.iter().cloned());
        Ok(repaired)
    }

    fn remove_new(&mut self, status: &Status, repaired: &mut BTreeSet<RepoPath>) -> Result<(), GitError> {
        for Entry { path, kind } in &status.entries {
            if self.snapshot.protects(path) || self.snapshot.entries.contains_key(path) || self.is_not_ours(path) {
                continue;
            }
            match kind {
                Kind::Untracked => {
                    if self.give_way(path)? {
                        repaired.insert(path.clone());
                    }
                }
                Kind::Nested => {
                    self.set_aside(path)?;
                    repaired.insert(path.clone());
                }
                Kind::Tracked { .. } | Kind::Submodule { .. } | Kind::Unmerged { .. } | Kind::Ignored => {}
            }
        }
        Ok(())
    }

    /// Files that were clean at the checkpoint come from git, so that the user's filters apply.
    fn check_out_clean(&mut self, status: &Status, repaired: &mut BTreeSet<RepoPath>) -> Result<(), GitError> {
        // Attributes say how the other files are written, so they come first.
        let (mut attributes, mut others) = (Vec::new(), Vec::new());
        for Entry { path, kind } in &status.entries {
            let differs = matches!(kind, Kind::Tracked { work, .. } if *work != Change::None);
            if !differs || self.snapshot.entries.contains_key(path) || self.is_not_ours(path) {
                continue;
            }
            let times = self.checked_out.entry(path.clone()).or_default();
            *times += 1;
            // Some files differ from their blob however often git writes them (line ends committed against the attributes).
            if *times > CHECKOUTS {
                continue;
            }
            // Only the first time: afterwards it is what git itself wrote.
            if *times == 1 && !self.saved.contains(path) {
                self.give_way(path)?;
            }
            self.clear_way(path)?;
            let list = if path.as_bytes().ends_with(b".gitattributes") { &mut attributes } else { &mut others };
            list.extend_from_slice(path.as_bytes());
            list.push(0);
            repaired.insert(path.clone());
        }
        for list in [attributes, others].into_iter().filter(|list| !list.is_empty()) {
            fault::point(Point::RestoreCheckout).map_err(GitError::io(&self.git.top))?;
            self.git.plumbing("checkout-index").args(["-f", "-q", "-z", "--stdin"]).stdin(list).run()?;
        }
        Ok(())
    }

    fn put_back_kept(&mut self, repaired: &mut BTreeSet<RepoPath>) -> Result<(), GitError> {
        let (snapshot, rules) = (self.snapshot, self.rules);
        let kept = || snapshot.entries.values().filter(|kept| !rules.skip.contains(&kept.path));
        // Removals first: a file may stand where a directory has to be.
        for absent in kept().filter(|kept| matches!(kept.state, State::Absent)) {
            if self.give_way(&absent.path)? {
                repaired.insert(absent.path.clone());
            }
        }
        let mut suspects = Vec::new();
        for kept in kept() {
            match &kept.state {
                State::File { file, stat } => {
                    let meta = files::stat(&self.git.top, &kept.path).map_err(GitError::io(kept.path.as_path()))?;
                    if !meta.is_some_and(|meta| snapshot.untouched(stat, &Stat::of(&meta))) {
                        suspects.push((kept, *file, stat.size));
                    }
                }
                State::Symlink { file } => suspects.push((kept, *file, 0)),
                State::Absent => {}
            }
        }
        self.git.each_kept(&snapshot.checkpoint.id, suspects, |kept, bytes| {
            let found = files::read(&self.git.top, &kept.path).map_err(GitError::io(kept.path.as_path()))?;
            let place = self.git.top.join(kept.path.as_path());
            let repair = Repair::of(kept, &found, &bytes);
            if repair == Repair::Nothing {
                return Ok(());
            }
            if !self.saved.contains(&kept.path) && repair.replaces() && !matches!(found, Found::Nothing) {
                self.set_aside(&kept.path)?;
            }
            self.clear_way(&kept.path)?;
            repair.perform(&place, &bytes)?;
            repaired.insert(kept.path.clone());
            Ok(())
        })
    }

    fn put_back_extra(&self) -> Result<u32, GitError> {
        let mut written = 0;
        let mut wanted = Vec::new();
        for kept in &self.snapshot.manifest.extra {
            let place = Path::new(OsStr::from_bytes(kept.path.as_bytes()));
            match &kept.state {
                State::File { file, stat } => wanted.push((kept, *file, stat.size)),
                State::Symlink { file } => wanted.push((kept, *file, 0)),
                State::Absent if place.is_file() || place.is_symlink() => {
                    std::fs::remove_file(place).map_err(GitError::io(place))?;
                    written += 1;
                }
                State::Absent => {}
            }
        }
        self.git.each_kept(&self.snapshot.checkpoint.id, wanted, |kept, bytes| {
            let place = Path::new(OsStr::from_bytes(kept.path.as_bytes()));
            let repair = Repair::of(kept, &files::read_outside(place).map_err(GitError::io(place))?, &bytes);
            if repair != Repair::Nothing {
                let parent = place.parent().unwrap_or(Path::new("/"));
                std::fs::create_dir_all(parent).map_err(GitError::io(parent))?;
                repair.perform(place, &bytes)?;
                written += 1;
            }
            Ok(())
        })?;
        Ok(written)
    }

    fn is_not_ours(&self, path: &RepoPath) -> bool {
        self.rules.skip.contains(path) || !self.snapshot.covers(path)
    }

    /// Removes a file whose content is saved, moves any other aside.
    fn give_way(&mut self, path: &RepoPath) -> Result<bool, GitError> {
        if self.saved.contains(path) {
            return files::remove(&self.git.top, path).map_err(GitError::io(path.as_path()));
        }
        let there = files::stat(&self.git.top, path).map_err(GitError::io(path.as_path()))?.is_some_and(|meta| !meta.is_dir());
        if there {
            self.set_aside(path)?;
        }
        Ok(there)
    }

    fn set_aside(&mut self, path: &RepoPath) -> Result<(), GitError> {
        let moved = files::set_aside(&self.git.top, path, &self.rules.aside).map_err(GitError::io(path.as_path()))?;
        files::prune(&self.git.top, path);
        self.aside.push(moved);
        Ok(())
    }

    fn clear_way(&mut self, path: &RepoPath) -> Result<(), GitError> {
        let moved = files::clear_way(&self.git.top, path, &self.rules.aside).map_err(GitError::io(path.as_path()))?;
        self.aside.extend(moved);
        Ok(())
    }
}

/// What a kept file needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repair {
    Nothing,
    Mode(u32),
    File(u32),
    Symlink,
}

impl Repair {
    pub(super) fn of(kept: &Kept, found: &Found, bytes: &[u8]) -> Self {
        match (&kept.state, found) {
            (State::Absent, _) => Self::Nothing,
            (State::File { stat, .. }, Found::File { bytes: now, stat: is }) if now == bytes => {
                if stat.mode == is.mode {
                    Self::Nothing
                } else {
                    Self::Mode(stat.mode)
                }
            }
            (State::File { stat, .. }, Found::Nothing | Found::File { .. } | Found::Symlink { .. }) => Self::File(stat.mode),
            (State::Symlink { .. }, Found::Symlink { target }) if target == bytes => Self::Nothing,
            (State::Symlink { .. }, Found::Nothing | Found::File { .. } | Found::Symlink { .. }) => Self::Symlink,
        }
    }

    /// True when the old content would be gone.
    fn replaces(self) -> bool {
        matches!(self, Self::File(_) | Self::Symlink)
    }

    fn perform(self, place: &Path, bytes: &[u8]) -> Result<(), GitError> {
        let done = match self {
            Self::Nothing => Ok(()),
            Self::Mode(mode) => files::set_mode(place, mode),
            Self::File(mode) => files::write_file(place, bytes, mode),
            Self::Symlink => files::write_symlink(place, bytes),
        };
        done.map_err(GitError::io(place))
    }
}
