//! Story commits against their evidence: is the note there, is it the one that the commit names, is its tree the commit's, does its
//! proof follow from its checks, is the chain whole, does the journal agree; and are all commits there that the journals speak of.
//! Looks at facts that somebody else gathered.
//!
//! It tells an edit, a loss or a mix-up of notes and commits from honest history. Whoever writes commits, notes and journals all
//! over again is out of its reach: nothing here is signed.

mod bookkeeping;
mod chain;
mod finding;
mod journals;
mod judge;
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
use judge::Judge;

pub use bookkeeping::{Bookkeeping, FileChange, bookkeeping};
pub use finding::{Finding, Problem, Remark};
pub use journals::{Fate, JournalCommit, Journals};
pub use missing::Missing;
pub use rerun::{Rejudged, Rerun, RerunOutcome};
pub use squashed::Squashed;
pub use trailers::Trailers;

/// A commit as far as an audit looks at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitFacts {
    pub id: Oid,
    pub tree: Oid,
    pub parents: Vec<Oid>,
    pub subject: String,
    pub trailers: Trailers,
}

/// What is attached to a commit under the notes ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    Bytes(Vec<u8>),
    /// So large that it cannot be evidence.
    TooLarge(u64),
}

impl Note {
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

/// Everything that an audit looks at.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// Everything that the tip is made of, children before their parents.
    pub commits: Vec<CommitFacts>,
    /// The commits to audit; all of them where it is absent.
    pub range: Option<BTreeSet<Oid>>,
    /// Where the range begins: the last commit before it, where it has one.
    pub start: Option<Oid>,
    /// The branches whose history this is.
    pub branches: BTreeSet<String>,
    pub notes: BTreeMap<Oid, Note>,
    pub journals: Journals,
    /// What the commits that say they are Verdone's bookkeeping change.
    pub bookkeeping: BTreeMap<Oid, Bookkeeping>,
    pub apart: Apart,
    /// The history is cut off somewhere.
    pub shallow: bool,
}

/// Commits that are not part of the history, as far as git still has them.
#[derive(Debug, Clone, Default)]
pub struct Apart {
    /// Those that other branches and tags have.
    pub elsewhere: BTreeSet<Oid>,
    /// The parents of those that journals speak of, and of what they are made of down to the history.
    pub parents: BTreeMap<Oid, Vec<Oid>>,
}

/// What an audit found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Audit {
    /// Format version.
    pub v: u32,
    /// Whether everything holds.
    pub holds: bool,
    /// Oldest first.
    pub stories: Vec<Audited>,
    /// Stories that were committed, and whose commits are gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
    /// Stories whose commits were squashed into others with exactly their files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub squashed: Vec<Squashed>,
    /// Stories that the journals speak of and that are on other branches.
    #[serde(default)]
    pub elsewhere: usize,
    /// Stories that could not be looked for, because the history is cut off.
    #[serde(default)]
    pub beyond: usize,
    /// Commits of Verdone's own that change nothing but marks of the plan and progress files: of the range, or since the first story.
    #[serde(default)]
    pub bookkeeping: usize,
    /// Commits that are not Verdone's: of the range, or since the first story.
    pub others: usize,
    /// Notes in the repository, whatever they are attached to.
    pub notes: usize,
    /// The checks were to run again, and not all of them did.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
}

/// A story's commit and what became of its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Audited {
    pub commit: Oid,
    pub subject: String,
    /// As its evidence says; where that cannot be read, as the commit says.
    pub story: Option<StoryId>,
    pub title: Option<String>,
    pub run: Option<RunId>,
    /// The session of the user's own whose loop made it, where no run did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    pub proof: Option<Proof>,
    /// Absent where nothing is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Digest of the note.
    pub evidence: Option<String>,
    pub tree: Oid,
    /// The checks that ran on the tree.
    pub checks: Vec<NotedCheck>,
    /// The agent's last words.
    pub claim: Option<String>,
    pub cost_usd: Option<f64>,
    /// Whether the journal of its run is here.
    pub journal: bool,
    /// Why it does not hold.
    pub problems: Vec<Finding>,
    /// What is worth knowing and no reason to doubt.
    pub remarks: Vec<Finding>,
    /// Its checks, run again on a clean checkout.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reruns: Vec<Rerun>,
}

impl Audited {
    pub fn holds(&self) -> bool {
        self.problems.is_empty()
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        self.story.as_ref().map_or(&self.subject, |story| &story.0)
    }
}

impl Audit {
    fn settle(&mut self) {
        self.holds = !self.interrupted && self.missing.is_empty() && self.stories.iter().all(Audited::holds);
    }
}

/// Looks at every commit of the range that is a story's, has a note, or says that it is Verdone's.
pub fn audit(history: &History) -> Audit {
    let judge = Judge::of(history);
    let asked = |commit: &&CommitFacts| history.range.as_ref().is_none_or(|range| range.contains(&commit.id));
    let squashed = judge.squashed();
    // A squashed commit keeps the trailers of its last story: that one is told as squashed.
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
    found.settle();
    found
}

impl History {
    fn is_story(&self, commit: &CommitFacts) -> bool {
        commit.trailers.is_story() || self.notes.contains_key(&commit.id)
    }
}

#[cfg(test)]
mod tests;
