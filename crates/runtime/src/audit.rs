//! Gathers what an audit looks at: commits, notes and journals. What they mean is decided in the core.

mod rerun;

use std::collections::BTreeSet;

use verdone_core::audit::{CommitFacts, History, JournalCommit, Journals, Note, Trailers};
use verdone_core::event::Event;
use verdone_core::event::light::kind;
use verdone_core::evidence::Evidence;
use verdone_core::id::{Oid, RunId};

use crate::git::{Git, GitError};
use crate::store::{JournalError, JournalReader, Store, StoredRun};

pub use rerun::{Allowed, RerunError, rerun};

#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    #[error("{text:?} is no commit of this repository")]
    Unknown { text: String },
    #[error("{text:?} is no range: say A..B, or one commit")]
    Range { text: String },
    #[error("there is no commit yet, so nothing to audit")]
    NoCommit,
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// Everything about a range of commits (`A..B`, or one commit), or about all of HEAD.
pub fn gather(git: &Git, store: &Store, range: Option<&str>) -> Result<History, AuditError> {
    let (tip, range) = resolve(git, range)?;
    let commits = git.commits_of(&tip)?;
    let notes = git.notes()?;
    let runs = runs_of(&commits, notes.values());
    Ok(History { commits, range, notes, journals: journals(store, &runs)?, shallow: git.is_shallow()? })
}

/// The tip of the history, and which of its commits are asked for.
fn resolve(git: &Git, range: Option<&str>) -> Result<(Oid, Option<BTreeSet<Oid>>), AuditError> {
    let named = |text: &str| {
        let name = if text.is_empty() { "HEAD" } else { text };
        git.commit_named(name)?.ok_or_else(|| AuditError::Unknown { text: text.to_owned() })
    };
    let Some(text) = range else {
        let tip = git.commit_named("HEAD")?.ok_or(AuditError::NoCommit)?;
        return Ok((tip, None));
    };
    match text.split_once("..") {
        _ if text.is_empty() || text == ".." => Err(AuditError::Range { text: text.to_owned() }),
        Some((_, tip)) if tip.starts_with('.') => Err(AuditError::Range { text: text.to_owned() }),
        Some((base, tip)) => {
            let (base, tip) = (named(base)?, named(tip)?);
            let between = git.commits_between(&base, &tip)?;
            Ok((tip, Some(between)))
        }
        None => {
            let commit = named(text)?;
            Ok((commit.clone(), Some(BTreeSet::from([commit]))))
        }
    }
}

/// The runs that commits and notes speak of. Ids from there are only compared, never made a path.
fn runs_of<'a>(commits: &[CommitFacts], notes: impl Iterator<Item = &'a Note>) -> BTreeSet<RunId> {
    let in_message = |trailers: &Trailers| trailers.run.clone().map(RunId);
    let in_note = |note: &Note| match note {
        Note::Bytes(bytes) => Evidence::from_note(bytes).ok().map(|found| found.run),
        Note::TooLarge(_) => None,
    };
    commits.iter().filter_map(|commit| in_message(&commit.trailers)).chain(notes.filter_map(in_note)).collect()
}

fn journals(store: &Store, runs: &BTreeSet<RunId>) -> Result<Journals, AuditError> {
    let mut journals = Journals::default();
    let ids = store.ids().map_err(|source| JournalError::Io { path: store.path().to_owned(), source })?;
    for stored in ids.into_iter().filter(|id| runs.contains(id)).map(|id| store.run(id)) {
        let whole = read_commits(&stored, &mut journals)?;
        journals.runs.insert(stored.id, whole);
    }
    Ok(journals)
}

/// Answers whether the journal could be read from end to end.
fn read_commits(stored: &StoredRun, journals: &mut Journals) -> Result<bool, AuditError> {
    let mut whole = !stored.was_mended();
    let mut reader = JournalReader::open(&stored.journal())?;
    loop {
        match reader.line() {
            Ok(Some(line)) if kind(line).is_some_and(|kind| kind != b"committed") => continue,
            Ok(Some(_)) => {}
            Ok(None) => return Ok(whole),
            Err(JournalError::Newer { .. } | JournalError::Broken { .. }) => return Ok(false),
            Err(error @ JournalError::Io { .. }) => return Err(error.into()),
        }
        match reader.event() {
            Ok(Some(recorded)) => {
                if let Event::Committed { place, commit, tree, verdict, evidence, .. } = recorded.event {
                    let known = JournalCommit { run: stored.id.clone(), story: place.story, verdict, tree, evidence };
                    journals.commits.insert(commit, known);
                }
            }
            Ok(None) => return Ok(whole),
            Err(JournalError::Newer { .. } | JournalError::Broken { .. }) => whole = false,
            Err(error @ JournalError::Io { .. }) => return Err(error.into()),
        }
    }
}
