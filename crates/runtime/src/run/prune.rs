//! Frees space: deletes the kept files of old runs, but not their journals. Those and the git notes preserve the evidence of every story.
//! Old sessions of the user are deleted completely, because they contain no evidence.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use verdone_core::base::id::{Oid, RunId};
use verdone_core::engine::run::Phase;

use crate::git::{Git, GitError};
use crate::session::{AbandonedLoops, Loops, StopError};
use crate::store::sessions::{own_sessions, sessions};
use crate::store::{JournalError, LockError, RunLock, Store, StoredRun};

#[derive(Debug, thiserror::Error)]
pub enum PruneError {
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Loops(#[from] StopError),
    #[error("{path}: {source}", path = path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// What a prune deleted, or would delete.
#[derive(Debug, Default)]
pub struct Pruned {
    pub runs: Vec<RunId>,
    /// The number of attempts that were not accepted.
    pub attempts: usize,
    /// Run branches that have landed completely.
    pub branches: Vec<String>,
    /// The number of the user's own sessions.
    pub sessions: usize,
    pub bytes: u64,
    /// Leftover copies of loops that are no longer needed.
    pub loops: usize,
}

/// A session counts as over after this much silence. If an active one is pruned anyway, it only forgets which files it has read.
const QUIET: Duration = Duration::from_hours(24);
/// The name of a sessions folder while it is being deleted. No session can have this name.
const GOING: &str = ".pruned";

/// Deletes prompts, outputs, kept attempts and landed branches of all but the newest `keep` runs, and the hook records of all but the
/// newest `keep` sessions of the user. Skips runs that have not ended and sessions that were active in the last day.
pub fn prune(git: &Git, root: &Path, keep: usize, dry_run: bool) -> Result<Pruned, PruneError> {
    let _lock = RunLock::acquire(git.git_dir())?;
    let store = Store::new(root);
    let ids = store.ids().map_err(|source| PruneError::Io { path: root.join(".verdone/runs"), source })?;
    let mut pruned = Pruned::default();
    let mut in_use: HashSet<String> = HashSet::new();
    for id in ids.iter().rev().take(keep) {
        in_use.extend(branch_of(&store.run(id.clone())).map(|(branch, _)| branch));
    }
    for id in ids.iter().rev().skip(keep) {
        let stored = store.run(id.clone());
        let state = stored.last_state()?;
        let branch = branch_of(&stored).filter(|(branch, _)| !in_use.contains(branch));
        if !matches!(state.phase, Phase::Stopped { .. }) {
            in_use.extend(branch.map(|(branch, _)| branch));
            continue;
        }
        let dir = store.dir(id);
        let bytes = size_without_journal(&dir).map_err(|source| PruneError::Io { path: dir.clone(), source })?;
        // Runs of the first edition kept their work in a separate ref.
        let has_ref = git.runs_with_refs()?.iter().any(|name| name == id.as_str());
        let attempts = git.kept_attempts(Some(id))?.len();
        let landed = match branch {
            Some((branch, target)) => landed_tip(git, &branch, target.as_deref())?.map(|tip| (branch, tip)),
            None => None,
        };
        if bytes == 0 && !has_ref && attempts == 0 && landed.is_none() {
            continue;
        }
        if !dry_run {
            git.forget_run(id)?;
            git.forget_attempts(id)?;
            if let Some((branch, tip)) = &landed {
                git.delete_branch(branch, tip)?;
            }
            empty(&dir).map_err(|source| PruneError::Io { path: dir.clone(), source })?;
        }
        pruned.bytes += bytes;
        pruned.attempts += attempts;
        if let Some((branch, _)) = landed {
            in_use.insert(branch.clone());
            pruned.branches.push(branch);
        }
        pruned.runs.push(id.clone());
    }
    let left = AbandonedLoops::find(root);
    pruned.loops = left.count();
    if !dry_run {
        left.remove()?;
    }
    let folder = own_sessions(root);
    let now = SystemTime::now();
    let loops = Loops::new(root);
    let is_held = |name: &str| loops.named(name).is_held();
    prune_sessions(&folder, (keep, now, dry_run), &is_held, &mut pruned)
        .map_err(|source| PruneError::Io { path: folder.clone(), source })?;
    Ok(pruned)
}

fn branch_of(stored: &StoredRun) -> Option<(String, Option<String>)> {
    // An unreadable journal names no branch.
    stored.branches().ok().flatten()
}

/// The tip of a branch named by Verdone, if all of its commits are on the user's branch and it is not checked out anywhere.
fn landed_tip(git: &Git, branch: &str, target: Option<&str>) -> Result<Option<Oid>, GitError> {
    let Some(tip) = git.branch_tip(branch)?.filter(|_| branch.starts_with("verdone/")) else { return Ok(None) };
    if git.checked_out_at(branch)?.is_some() {
        return Ok(None);
    }
    let target = target.filter(|target| *target != branch).map(|target| git.branch_tip(target)).transpose()?.flatten();
    for into in git.status()?.head.iter().chain(&target) {
        if git.is_part_of(&tip, into)? {
            return Ok(Some(tip));
        }
    }
    Ok(None)
}

fn prune_sessions(
    folder: &Path,
    (keep, now, dry_run): (usize, SystemTime, bool),
    is_held: &dyn Fn(&str) -> bool,
    pruned: &mut Pruned,
) -> io::Result<()> {
    if !fs::symlink_metadata(folder).is_ok_and(|meta| meta.is_dir()) {
        return Ok(());
    }
    let going = folder.join(GOING);
    if !dry_run && fs::symlink_metadata(&going).is_ok_and(|meta| meta.is_dir()) {
        fs::remove_dir_all(&going)?;
    }
    // A time in the future means that the clock was set back, so the session may be new.
    let is_quiet = |changed: SystemTime| now.duration_since(changed).is_ok_and(|age| age > QUIET);
    for session in sessions(folder)?.into_iter().skip(keep).filter(|session| is_quiet(session.changed)) {
        // Deleting it would drop its loop, and the session would not be held after a resume.
        if is_held(&session.name) {
            continue;
        }
        let bytes = size(&session.dir)?;
        if !dry_run {
            // Move it away in one step, so that a concurrent hook sees either the whole session or nothing.
            fs::rename(&session.dir, &going)?;
            fs::remove_dir_all(&going)?;
        }
        pruned.bytes += bytes;
        pruned.sessions += 1;
    }
    for name in ["faults.jsonl", "faults.1.jsonl"] {
        let path = folder.join(name);
        if let Some(meta) = fs::symlink_metadata(&path).ok().filter(|meta| meta.is_file() && meta.modified().is_ok_and(is_quiet))
        {
            if !dry_run {
                fs::remove_file(&path)?;
            }
            pruned.bytes += meta.len();
        }
    }
    Ok(())
}

/// The disk usage of `.verdone/runs/` in bytes.
pub fn disk_use(root: &Path) -> io::Result<u64> {
    size(&root.join(".verdone/runs"))
}

/// The disk usage of hook records of the user's own sessions, in bytes.
pub fn sessions_disk_use(root: &Path) -> io::Result<u64> {
    size(&own_sessions(root))
}

fn empty(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_name() == "journal.jsonl" {
            continue;
        }
        if entry.file_type()?.is_dir() { fs::remove_dir_all(entry.path())? } else { fs::remove_file(entry.path())? }
    }
    Ok(())
}

fn size_without_journal(dir: &Path) -> io::Result<u64> {
    let journal = fs::symlink_metadata(dir.join("journal.jsonl")).map_or(0, |meta| meta.len());
    Ok(size(dir)?.saturating_sub(journal))
}

/// Counts links themselves and never follows them.
pub(crate) fn size(dir: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        let entries = match fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            let meta = entry.metadata()?;
            if meta.is_dir() { open.push(entry.path()) } else { bytes += meta.len() }
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    const HOUR: Duration = Duration::from_hours(1);

    fn session(folder: &Path, name: &str, at: SystemTime) {
        let dir = folder.join(name);
        fs::create_dir_all(dir.join("known/ab")).unwrap();
        fs::write(dir.join("known/ab/cd"), "").unwrap();
        fs::write(dir.join("events.jsonl"), "0123456789").unwrap();
        for path in [dir.join("events.jsonl"), dir.join("known"), dir] {
            File::open(path).unwrap().set_modified(at).unwrap();
        }
    }

    fn left(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_session_that_a_loop_holds_is_never_pruned() {
        let temp = tempfile::tempdir().unwrap();
        let old = SystemTime::now() - HOUR * 100;
        let folder = temp.path().join("sessions");
        session(&folder, "held", old);
        session(&folder, "free", old);
        let mut pruned = Pruned::default();
        prune_sessions(&folder, (0, SystemTime::now(), false), &|name| name == "held", &mut pruned).unwrap();
        assert!(pruned.sessions == 1 && folder.join("held").exists());
    }

    #[test]
    fn old_sessions_go_but_for_the_newest_and_those_that_may_be_alive() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join("sessions");
        let now = SystemTime::now();
        for (name, hours) in [("a-live", 0), ("b-today", 20), ("c-old", 50), ("d-older", 60), ("e-oldest", 70)] {
            session(&folder, name, now - HOUR * hours);
        }
        session(&folder, "f-ahead", now + HOUR * 50);
        fs::write(folder.join(".gitignore"), "*\n").unwrap();
        fs::write(folder.join("faults.jsonl"), "{}").unwrap();
        fs::write(folder.join("faults.1.jsonl"), "{}").unwrap();
        File::open(folder.join("faults.1.jsonl")).unwrap().set_modified(now - HOUR * 50).unwrap();
        let prune = |keep, dry_run| {
            let mut pruned = Pruned::default();
            prune_sessions(&folder, (keep, now, dry_run), &|_| false, &mut pruned).unwrap();
            (pruned.sessions, pruned.bytes)
        };
        let before = left(&folder);
        assert_eq!(prune(4, true), (2, 22));
        assert_eq!(left(&folder), before, "a dry run deletes nothing");
        assert_eq!(prune(4, false), (2, 22));
        assert_eq!(left(&folder), [".gitignore", "a-live", "b-today", "c-old", "f-ahead", "faults.jsonl"]);
        assert_eq!(prune(0, false), (1, 10));
        assert_eq!(left(&folder), [".gitignore", "a-live", "b-today", "f-ahead", "faults.jsonl"]);
    }

    #[test]
    fn a_prune_that_was_killed_is_finished_and_a_link_is_not_followed() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join("sessions");
        let old = SystemTime::now() - HOUR * 100;
        session(&folder, GOING, old);
        session(&folder, "old", old);
        let linked = temp.path().join("linked");
        std::os::unix::fs::symlink(&folder, &linked).unwrap();
        prune_sessions(&linked, (0, SystemTime::now(), false), &|_| false, &mut Pruned::default()).unwrap();
        assert_eq!(left(&folder), [GOING, "old"]);
        prune_sessions(&folder, (0, SystemTime::now(), false), &|_| false, &mut Pruned::default()).unwrap();
        assert_eq!(left(&folder), Vec::<String>::new());
    }
}
