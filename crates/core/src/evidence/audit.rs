//! Checks story commits against their evidence. For each commit: does the note exist, does the commit name it, does its tree match,
//! does its proof follow from its checks, is the chain intact, does the journal agree? And is every commit that the journals record
//! still there? Works on facts collected elsewhere.
//!
//! Detects notes and commits that were edited, lost or mixed up. It cannot detect someone who rewrites commits, notes and journals
//! consistently: nothing is signed.

mod bookkeeping;
mod chain;
mod commit_auditor;
mod finding;
mod journals;
mod missing;
mod rerun;
mod squashed;
mod trailers;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::id::{Oid, RunId, StoryId};
use crate::evidence::{Evidence, NotedCheck, note_digest};
use crate::journal::event::SCHEMA_VERSION;
use crate::verify::{Outcome, Proof};
use commit_auditor::CommitAuditor;

pub use bookkeeping::{Bookkeeping, FileChange, bookkeeping};
pub use finding::{Finding, Problem, Remark};
pub use journals::{CommitFate, JournalCommit, Journals};
pub use missing::Missing;
pub use rerun::{Rejudged, Rerun, RerunOutcome};
pub use squashed::Squashed;
pub use trailers::Trailers;

/// The parts of a commit that an audit needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitFacts {
    pub id: Oid,
    pub tree: Oid,
    pub parents: Vec<Oid>,
    pub subject: String,
    pub trailers: Trailers,
}

/// The note attached to a commit under the notes ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GitNote {
    Bytes(Vec<u8>),
    /// Too large to be evidence.
    TooLarge(u64),
}

impl GitNote {
    fn digest(&self) -> String {
        match self {
            Self::Bytes(bytes) => note_digest(bytes),
            Self::TooLarge(size) => format!("{size} bytes"),
        }
    }

    fn evidence(&self) -> Result<Evidence, String> {
        match self {
            Self::Bytes(bytes) => Evidence::from_note(bytes).map_err(|error| error.to_string()),
            Self::TooLarge(size) => Err(format!("it has {size} bytes")),
        }
    }
}

/// The input of an audit.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// All commits reachable from the tip, children before their parents.
    pub commits: Vec<CommitFacts>,
    /// The commits to audit; `None` means all of them.
    pub range: Option<BTreeSet<Oid>>,
    /// The last commit before the range, if there is one.
    pub start: Option<Oid>,
    /// The branches that point to this history.
    pub branches: BTreeSet<String>,
    pub notes: BTreeMap<Oid, GitNote>,
    pub journals: Journals,
    /// The changes made by commits that claim to be Verdone's bookkeeping.
    pub bookkeeping: BTreeMap<Oid, Bookkeeping>,
    pub apart: UnreachableCommits,
    /// The repository is a shallow clone, so the history is incomplete.
    pub shallow: bool,
}

/// Commits outside the history that git still has.
#[derive(Debug, Clone, Default)]
pub struct UnreachableCommits {
    /// Commits reachable from other branches and tags.
    pub elsewhere: BTreeSet<Oid>,
    /// The parents of commits named in journals, and of their ancestors down to the history.
    pub parents: BTreeMap<Oid, Vec<Oid>>,
}

/// The result of an audit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Audit {
    /// Format version.
    pub v: u32,
    /// Whether the audit found no problems.
    pub holds: bool,
    /// Oldest first.
    pub stories: Vec<Audited>,
    /// Stories whose commits are gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
    /// Stories whose commits were squashed into a commit with exactly the same files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub squashed: Vec<Squashed>,
    /// Number of stories recorded in journals whose commits are on other branches.
    #[serde(default)]
    pub elsewhere: usize,
    /// Number of stories that could not be looked up because the history is shallow.
    #[serde(default)]
    pub beyond: usize,
    /// Number of Verdone's own commits that change only plan marks and progress files, within the range or since the first story.
    #[serde(default)]
    pub bookkeeping: usize,
    /// Number of commits not made by Verdone, within the range or since the first story.
    pub others: usize,
    /// Number of notes in the repository, whatever they are attached to.
    pub notes: usize,
    /// A rerun of the checks was requested but did not finish.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
}

/// A story's commit and the state of its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Audited {
    pub commit: Oid,
    pub subject: String,
    /// From the evidence, or from the commit message if the evidence cannot be read.
    pub story: Option<StoryId>,
    pub title: Option<String>,
    pub run: Option<RunId>,
    /// The user's own session whose loop made the commit, if it was not made by a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    pub proof: Option<Proof>,
    /// Absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Digest of the note.
    pub evidence: Option<String>,
    pub tree: Oid,
    /// The checks that ran on the tree.
    pub checks: Vec<NotedCheck>,
    /// The agent's final message.
    pub claim: Option<String>,
    pub cost_usd: Option<f64>,
    /// Whether the journal of its run is available.
    pub journal: bool,
    /// Why the evidence does not hold up.
    pub problems: Vec<Finding>,
    /// Worth knowing, but no reason for doubt.
    pub remarks: Vec<Finding>,
    /// The checks, run again on a clean checkout.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reruns: Vec<Rerun>,
}

impl Audited {
    pub fn holds(&self) -> bool {
        self.problems.is_empty()
    }

    /// The story id, or the commit's subject if there is none.
    pub fn name(&self) -> &str {
        self.story.as_ref().map_or(&self.subject, |story| &story.0)
    }
}

impl Audit {
    fn decide(&mut self) {
        self.holds = !self.interrupted && self.missing.is_empty() && self.stories.iter().all(Audited::holds);
    }
}

/// Audits every commit in the range that belongs to a story, has a note, or claims to be Verdone's.
pub fn audit(history: &History) -> Audit {
    let judge = CommitAuditor::new(history);
    let asked = |commit: &&CommitFacts| history.range.as_ref().is_none_or(|range| range.contains(&commit.id));
    let squashed = judge.squashed();
    // A squashed commit keeps the trailers of its last story. Report that story as squashed only.
    let is_squash = |commit: &CommitFacts| {
        let names = |story: &Squashed| story.evidence.as_ref().is_some_and(|digest| commit.trailers.evidence.contains(digest));
        squashed.iter().any(|story| story.into == commit.id && !story.with_later && names(story))
    };
    let story = |commit: &CommitFacts| history.is_story(commit) && !is_squash(commit);
    let look = |commit: &CommitFacts| match history.bookkeeping.get(&commit.id) {
        _ if story(commit) => Some(judge.story(commit)),
        Some(Bookkeeping::Other { path }) => Some(judge.impostor(commit, &Problem::NotBookkeeping { path: path.clone() })),
        Some(Bookkeeping::Ours { done }) => judge.without_evidence(done).map(|problem| judge.impostor(commit, &problem)),
        None => None,
    };
    let stories: Vec<Audited> = history.commits.iter().rev().filter(asked).filter_map(look).collect();
    let since_first = history.commits.iter().rposition(story).map_or(0, |at| at + 1);
    let counted = if history.range.is_some() { history.commits.len() } else { since_first };
    let rest: Vec<&CommitFacts> = history.commits[..counted].iter().filter(asked).filter(|commit| !story(commit)).collect();
    let of = |commit: &&&CommitFacts| history.bookkeeping.get(&commit.id);
    let is_ours = |known: &Bookkeeping| matches!(known, Bookkeeping::Ours { done } if judge.without_evidence(done).is_none());
    let bookkeeping = rest.iter().filter(|commit| of(commit).is_some_and(is_ours)).count();
    let others = rest.iter().filter(|commit| of(commit).is_none()).count();
    let notes = history.notes.len();
    let mut found = Audit {
        v: SCHEMA_VERSION,
        holds: false,
        stories,
        missing: Vec::new(),
        squashed: Vec::new(),
        elsewhere: 0,
        beyond: 0,
        bookkeeping,
        others,
        notes,
        interrupted: false,
    };
    judge.missing(&squashed, &mut found);
    let is_asked = |story: &Squashed| history.range.as_ref().is_none_or(|range| range.contains(&story.into));
    found.squashed = squashed.into_iter().filter(is_asked).collect();
    found.decide();
    found
}

impl History {
    fn is_story(&self, commit: &CommitFacts) -> bool {
        commit.trailers.is_story() || self.notes.contains_key(&commit.id)
    }
}

#[cfg(test)]
mod tests;
