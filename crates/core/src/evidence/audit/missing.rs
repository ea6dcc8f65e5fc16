//! Stories whose commits are gone: reset, rebased, or amended without their trailers.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::commit_auditor::CommitAuditor;
use super::{Audit, CommitFacts, CommitFate, Finding, JournalCommit, Problem, Squashed};
use crate::base::id::{Oid, RunId, StoryId};
use crate::verify::Proof;

/// A story whose commit is gone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Missing {
    pub story: StoryId,
    /// Its former commit.
    pub commit: Oid,
    pub run: RunId,
    pub proof: Proof,
    /// Digest of its evidence.
    pub evidence: Option<String>,
    pub problem: Finding,
}

impl CommitAuditor<'_> {
    /// Finds commits that the journals record but the history does not have.
    pub(super) fn missing(&self, squashed: &[Squashed], found: &mut Audit) {
        let journals = &self.history.journals;
        let retold = self.retold();
        let is_told = |known: &JournalCommit| retold.contains(&(known.run.as_str(), known.story.as_str()));
        let is_squashed = |commit: &Oid| squashed.iter().any(|story| story.commit == *commit);
        let is_missing =
            |commit: &Oid, known: &JournalCommit| self.is_due(commit, known) && !is_told(known) && !is_squashed(commit);
        for (commit, known) in journals.made().filter(|(commit, known)| is_missing(commit, known)) {
            let of_here = known.branch.as_ref().is_some_and(|branch| self.history.branches.contains(branch));
            if !self.belongs(commit, known.base.as_ref(), of_here) {
                continue;
            }
            let elsewhere = self.history.apart.elsewhere.contains(commit);
            if elsewhere && !of_here {
                found.elsewhere += 1;
            } else if self.history.shallow {
                found.beyond += 1;
            } else {
                let problem = Problem::Missing { commit: commit.clone(), run: known.run.clone(), elsewhere }.finding();
                let JournalCommit { story, run, proof, evidence, .. } = known.clone();
                found.missing.push(Missing { story, commit: commit.clone(), run, proof, evidence, problem });
            }
        }
    }

    /// Run and story of commits that no journal records. Their problems are reported with those commits.
    fn retold(&self) -> BTreeSet<(&str, &str)> {
        let unknown = |commit: &&CommitFacts| !self.history.journals.commits.contains_key(&commit.id);
        let unknown = self.history.commits.iter().filter(unknown).map(|commit| &commit.trailers);
        unknown.filter_map(|said| Some((said.run.as_deref()?, said.story.as_deref()?))).collect()
    }

    /// Whether the commit should exist, but no commit in the history is or claims to be it.
    fn is_due(&self, commit: &Oid, known: &JournalCommit) -> bool {
        known.fate == CommitFate::Stands && !self.known.contains_key(commit) && !self.is_named(known.evidence.as_deref())
    }

    /// Whether a commit in the history names this evidence. If so, that commit is audited itself.
    pub(super) fn is_named(&self, evidence: Option<&str>) -> bool {
        evidence.is_some_and(|digest| self.named_by.contains_key(digest))
    }

    /// Whether the missing commit would be in the range: its nearest ancestor in the history is in the range or is its start. A commit
    /// made on top of the tip comes after the range, unless its branch is one of those audited.
    fn belongs(&self, commit: &Oid, base: Option<&Oid>, of_here: bool) -> bool {
        let Some(range) = &self.history.range else { return true };
        let start = self.history.start.as_ref();
        let parents = &self.history.apart.parents;
        let mut seen = BTreeSet::new();
        let mut next: Vec<&Oid> =
            parents.get(commit).map_or_else(|| base.into_iter().collect(), |parents| parents.iter().collect());
        while let Some(at) = next.pop() {
            // A range of a single commit has no room for another.
            if start.is_some() && (start == Some(at) || range.contains(at)) {
                return of_here || self.history.commits.first().is_none_or(|tip| tip.id != *at);
            }
            if seen.insert(at) && !self.known.contains_key(at) {
                let made_on = self.history.journals.commits.get(at).and_then(|known| known.base.as_ref());
                next.extend(parents.get(at).map_or_else(|| made_on.into_iter().collect::<Vec<_>>(), |all| all.iter().collect()));
            }
        }
        false
    }
}
