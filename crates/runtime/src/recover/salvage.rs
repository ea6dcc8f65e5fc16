//! A journal that cannot be read, or is not there, must not stop the user for ever: it is set aside, what can be read of it stays,
//! and the tree is snapshotted as found, because nobody can say what was under way.

use std::fs;
use std::path::Path;

use verdone_core::id::RunId;
use verdone_core::update::{Reporter, Update};

use super::{RecoverError, io_error};
use crate::atomic::write_atomically;
use crate::git::{ChainKind, Git, SnapshotLimits};
use crate::keep::Keep;
use crate::project::Project;
use crate::store::{JournalError, Store, StoredRun, readable_lines};

/// The run that was started last.
pub(super) struct Salvaged {
    pub(super) stored: StoredRun,
    /// Whether its journal had to be mended: then it has a hole.
    pub(super) mended: bool,
}

/// Mends the journal where what matters of it cannot be read.
pub(super) fn latest(
    git: &Git,
    project: &Project,
    store: &Store,
    reporter: &mut dyn Reporter,
) -> Result<Option<Salvaged>, RecoverError> {
    let ids = store.ids().map_err(|source| JournalError::Io { path: store.path().to_owned(), source })?;
    tell_of_lost_run(git, project, store, ids.last(), reporter)?;
    let Some(id) = ids.last() else { return Ok(None) };
    let stored = store.run(id.clone());
    match stored.last_state() {
        Ok(_) => Ok(Some(Salvaged { stored, mended: false })),
        Err(broken @ JournalError::Broken { .. }) => {
            let kept = snapshot(git, project, store, id)?;
            let aside = set_aside(&stored.dir)?;
            let text = format!(
                "{broken}; what can be read of it stays, the whole is in {aside}, and the work tree as it was found is kept as {kept}"
            );
            reporter.report(Update::Notice { text: &text });
            Ok(Some(Salvaged { stored, mended: true }))
        }
        Err(error @ (JournalError::Io { .. } | JournalError::Newer { .. })) => Err(error.into()),
    }
}

/// A run that kept something and has no journal, or an empty one: where its attempt stood cannot be known.
fn tell_of_lost_run(
    git: &Git,
    project: &Project,
    store: &Store,
    newest: Option<&RunId>,
    reporter: &mut dyn Reporter,
) -> Result<(), RecoverError> {
    let is_empty = |run: &RunId| fs::metadata(store.dir(run).join("journal.jsonl")).is_ok_and(|meta| meta.len() == 0);
    let gone = |run: &RunId| newest.is_none_or(|newest| run > newest) || (newest == Some(run) && is_empty(run));
    let mut lost: Vec<RunId> = git.runs_with_refs()?.into_iter().map(RunId).filter(gone).collect();
    if lost.is_empty() {
        return Ok(());
    }
    let others = other_stores(git, project)?;
    lost.retain(|run| !others.iter().any(|store| store.has(run)));
    lost.sort();
    for run in lost.iter().rev().take(LOOKED_AT) {
        if !worked_here_and_is_not_told(git, project, run)? {
            continue;
        }
        let kept = snapshot(git, project, store, run)?;
        let text = format!(
            "the journal of run {run} is gone, so it cannot be said whether it ended properly; the work tree as it was found is kept \
             as {kept} (verdone checkpoints lists what that run kept)"
        );
        reporter.report(Update::Notice { text: &text });
        break;
    }
    Ok(())
}

/// Of the same project in the other work trees: they share the refs, and a run that landed went from one to another.
fn other_stores(git: &Git, project: &Project) -> Result<Vec<Store>, RecoverError> {
    let root = project.root.strip_prefix(git.top()).unwrap_or(Path::new(""));
    let others = git.work_trees()?.into_iter().filter(|tree| tree.path != git.top());
    Ok(others.map(|tree| Store::of(&tree.path.join(root))).collect())
}

const FOUND: &str = "as found, without a journal to say what was under way";
/// Each run without a journal costs a few processes; only the last of them matters.
const LOOKED_AT: usize = 8;

/// Nothing is said about, or added to, a run of another work tree or another project. Planning keeps a checkpoint, too, and has no
/// journal and no attempts.
fn worked_here_and_is_not_told(git: &Git, project: &Project, run: &RunId) -> Result<bool, RecoverError> {
    let kept = git.chain(run)?;
    let told = kept.first().is_some_and(|entry| entry.label == FOUND);
    if told || !kept.iter().any(|entry| entry.label.contains(" attempt ")) {
        return Ok(false);
    }
    let skip = git.repo_path(&project.root.join(".verdone")).into_iter().collect();
    let last = kept.iter().find(|entry| matches!(entry.kind, ChainKind::Checkpoint { .. }));
    // In doubt it is not ours.
    Ok(last.is_some_and(|last| git.was_taken_here(&last.id, &skip).unwrap_or(false)))
}

/// Without limits: those of the run are not known, and a file that fitted then must not keep the next run from starting.
fn snapshot(git: &Git, project: &Project, store: &Store, run: &RunId) -> Result<String, RecoverError> {
    let (run_dir, limits) = (store.dir(run), SnapshotLimits { file: u64::MAX, total: u64::MAX });
    let keep = Keep { git, root: &project.root, run, run_dir: &run_dir, limits };
    Ok(keep.checkpoint(FOUND, &[])?.id.short().to_owned())
}

/// Keeps the whole under a name that is free, then writes back the lines that can be read.
fn set_aside(run_dir: &Path) -> Result<String, RecoverError> {
    let path = run_dir.join("journal.jsonl");
    let failed = || io_error("setting the journal aside");
    let bytes = fs::read(&path).map_err(failed())?;
    let named = |number: u32| run_dir.join(format!("journal-broken-{number}.jsonl"));
    let aside = named((1..u32::MAX).find(|number| !named(*number).exists()).unwrap_or(0));
    write_atomically(&aside, &bytes).map_err(failed())?;
    write_atomically(&path, &readable_lines(&bytes)).map_err(failed())?;
    Ok(aside.display().to_string())
}
