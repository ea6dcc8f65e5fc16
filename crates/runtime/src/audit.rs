//! Collects the input of an audit: commits, notes and journals. The core interprets them.

mod rerun;

use std::collections::{BTreeMap, BTreeSet};

use verdone_core::base::id::Oid;
use verdone_core::evidence::audit::{CommitFacts, GitNote, History, Journals};
use verdone_core::journal::event::partial::kind;

use crate::git::{Git, GitError};
use crate::store::{JournalError, JournalReader, Store, StoredRun};

pub use rerun::{Allowed, RerunError, rerun};

#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    #[error("{text:?} is not a commit in this repository")]
    Unknown { text: String },
    #[error("{text:?} is not a range: use A..B or a single commit")]
    Range { text: String },
    #[error("there is no commit yet, so there is nothing to audit")]
    NoCommit,
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// Collects everything about a range of commits (`A..B` or a single commit), or about all of HEAD.
pub fn gather(git: &Git, store: &Store, range: Option<&str>) -> Result<History, AuditError> {
    let AuditRange { tip, start, range, branches } = resolve(git, range)?;
    let commits = git.commits_reachable_from(&tip)?;
    let notes = git.evidence_notes()?;
    let journals = journals(store)?;
    let claimed: Vec<&Oid> =
        commits.iter().filter(|commit| claims_bookkeeping(commit, &notes)).map(|commit| &commit.id).collect();
    let bookkeeping = git.bookkeeping(&claimed)?;
    let here: BTreeSet<&Oid> = commits.iter().map(|commit| &commit.id).collect();
    let gone = journals.commits.keys().chain(notes.keys()).filter(|commit| !here.contains(commit)).collect();
    let apart = git.outside(&tip, &gone)?;
    Ok(History { range, start, branches, bookkeeping, apart, notes, journals, shallow: git.is_shallow()?, commits })
}

fn claims_bookkeeping(commit: &CommitFacts, notes: &BTreeMap<Oid, GitNote>) -> bool {
    commit.trailers.is_bookkeeping() && !notes.contains_key(&commit.id)
}

struct AuditRange {
    /// The last commit of the history.
    tip: Oid,
    start: Option<Oid>,
    /// The requested commits.
    range: Option<BTreeSet<Oid>>,
    branches: BTreeSet<String>,
}

fn resolve(git: &Git, range: Option<&str>) -> Result<AuditRange, AuditError> {
    let named = |text: &str| {
        let name = if text.is_empty() { "HEAD" } else { text };
        git.commit_named(name)?.ok_or_else(|| AuditError::Unknown { text: text.to_owned() })
    };
    let Some(text) = range else {
        let tip = git.commit_named("HEAD")?.ok_or(AuditError::NoCommit)?;
        // Several branches may point here; use the one that is checked out.
        let branches = git.current_branch()?.into_iter().collect();
        return Ok(AuditRange { tip, start: None, range: None, branches });
    };
    match text.split_once("..") {
        _ if text.is_empty() || text == ".." => Err(AuditError::Range { text: text.to_owned() }),
        Some((_, tip)) if tip.starts_with('.') => Err(AuditError::Range { text: text.to_owned() }),
        Some((base, tip)) => {
            let (base, tip) = (named(base)?, named(tip)?);
            let (range, branches) = (Some(git.commits_between(&base, &tip)?), git.branches_at(&tip)?);
            Ok(AuditRange { tip, start: Some(base), range, branches })
        }
        None => {
            let tip = named(text)?;
            let (range, branches) = (Some(BTreeSet::from([tip.clone()])), git.branches_at(&tip)?);
            Ok(AuditRange { tip, start: None, range, branches })
        }
    }
}

fn journals(store: &Store) -> Result<Journals, AuditError> {
    let mut journals = Journals::default();
    let ids = store.ids().map_err(|source| JournalError::Io { path: store.path().to_owned(), source })?;
    for stored in ids.into_iter().map(|id| store.run(id)) {
        let whole = read_commits(&stored, &mut journals)?;
        journals.runs.insert(stored.id, whole);
    }
    Ok(journals)
}

/// Returns whether the whole journal could be read.
fn read_commits(stored: &StoredRun, journals: &mut Journals) -> Result<bool, AuditError> {
    let mut whole = !stored.was_repaired();
    let mut reader = JournalReader::open(&stored.journal())?;
    loop {
        match reader.line() {
            Ok(Some(line)) if kind(line).is_some_and(|kind| !Journals::wants(kind)) => continue,
            Ok(Some(_)) => {}
            Ok(None) => return Ok(whole),
            Err(JournalError::Newer { .. } | JournalError::Broken { .. }) => return Ok(false),
            Err(error @ JournalError::Io { .. }) => return Err(error.into()),
        }
        match reader.event() {
            Ok(Some(recorded)) => journals.add_event(&stored.id, recorded.event),
            Ok(None) => return Ok(whole),
            Err(JournalError::Newer { .. } | JournalError::Broken { .. }) => whole = false,
            Err(error @ JournalError::Io { .. }) => return Err(error.into()),
        }
    }
}
