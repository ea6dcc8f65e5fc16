//! Stories whose commits were squashed: the commits are gone, but another commit has exactly the last verified files.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::commit_auditor::CommitAuditor;
use super::{CommitFacts, CommitFate};
use crate::base::id::{Oid, RunId, StoryId};
use crate::evidence::Evidence;
use crate::verify::Proof;

/// A story whose commit is now part of another one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Squashed {
    pub story: StoryId,
    /// Its own commit.
    pub commit: Oid,
    pub run: RunId,
    pub proof: Proof,
    /// Digest of its evidence.
    pub evidence: Option<String>,
    /// The commit that now contains its files.
    pub into: Oid,
    /// Whether that commit also contains a later story that was built on this one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_later: bool,
}

/// A story commit that a journal or a note records but the history does not have.
struct LostCommit<'a> {
    commit: &'a Oid,
    story: StoryId,
    run: RunId,
    proof: Proof,
    evidence: Option<String>,
    tree: Oid,
    base: Option<Oid>,
    previous: Option<String>,
}

impl CommitAuditor<'_> {
    /// Recognised by the tree. Earlier stories that the squashed one was built on, as named by the chain of evidence, are in the same
    /// commit.
    pub(super) fn squashed(&self) -> Vec<Squashed> {
        let gone = self.gone();
        let by_commit: HashMap<&Oid, usize> = gone.iter().enumerate().map(|(at, one)| (one.commit, at)).collect();
        let digests = gone.iter().enumerate().filter_map(|(at, one)| Some((one.evidence.as_deref()?, at)));
        let by_digest: HashMap<&str, usize> = digests.collect();
        let before = |one: &LostCommit<'_>| {
            let by_evidence = one.previous.as_deref().and_then(|digest| by_digest.get(digest));
            by_evidence.or_else(|| by_commit.get(one.base.as_ref()?)).copied()
        };
        let by_tree = self.by_tree();
        let position: HashMap<&Oid, usize> =
            self.history.commits.iter().enumerate().map(|(at, commit)| (&commit.id, at)).collect();
        let mut into: Vec<Option<(&CommitFacts, bool)>> = Vec::new();
        for one in &gone {
            // The commit from which the work started, if the history has it. Commits before it cannot contain the work.
            let mut first = one;
            let mut steps = 0;
            while let Some(at) = before(first).filter(|_| steps < gone.len()) {
                (first, steps) = (&gone[at], steps + 1);
            }
            let began = first.base.as_ref().and_then(|base| position.get(base));
            let is_later =
                |commit: &&&CommitFacts| began.is_none_or(|began| position.get(&commit.id).is_some_and(|at| at < began));
            let same = by_tree.get(&one.tree).into_iter().flatten();
            let names_it =
                |commit: &&CommitFacts| one.evidence.as_ref().is_some_and(|digest| commit.trailers.evidence.contains(digest));
            let mut found: Vec<&CommitFacts> = same.filter(is_later).copied().collect();
            found.sort_by_key(|commit| !names_it(commit));
            into.push(found.first().map(|commit| (*commit, false)));
        }
        for at in 0..gone.len() {
            let Some((commit, false)) = into[at] else { continue };
            let mut next = before(&gone[at]);
            let mut steps = 0;
            while let Some(earlier) = next.filter(|earlier| into[*earlier].is_none() && steps < gone.len()) {
                // If a commit names this evidence, it is audited there.
                if !self.is_named(gone[earlier].evidence.as_deref()) {
                    into[earlier] = Some((commit, true));
                }
                (next, steps) = (before(&gone[earlier]), steps + 1);
            }
        }
        let squashed = gone.into_iter().zip(into).filter_map(|(one, into)| {
            let (commit, with_later) = into?;
            let LostCommit { story, run, proof, evidence, .. } = one;
            Some(Squashed { story, commit: one.commit.clone(), run, proof, evidence, into: commit.id.clone(), with_later })
        });
        squashed.collect()
    }

    fn gone(&self) -> Vec<LostCommit<'_>> {
        let journals = &self.history.journals;
        let read = |commit: &Oid| -> Option<Evidence> { self.history.notes.get(commit)?.evidence().ok() };
        let mut gone = Vec::new();
        for (commit, known) in journals.made().filter(|(commit, known)| known.fate == CommitFate::Stands && self.is_gone(commit))
        {
            gone.push(LostCommit {
                commit,
                story: known.story.clone(),
                run: known.run.clone(),
                proof: known.proof,
                evidence: known.evidence.clone(),
                tree: known.tree.clone(),
                base: known.base.clone(),
                previous: read(commit).and_then(|evidence| evidence.previous),
            });
        }
        let unknown = |commit: &Oid| self.is_gone(commit) && !journals.commits.contains_key(commit);
        for (commit, note) in self.history.notes.iter().filter(|(commit, _)| unknown(commit)) {
            // No journal vouches for it, so its note has to contain the proof.
            let Some(evidence) = note.evidence().ok().filter(|evidence| evidence.overclaim().is_none()) else { continue };
            let Evidence { story, run, proof, tree, base, previous, .. } = evidence;
            gone.push(LostCommit { commit, story, run, proof, evidence: Some(note.digest()), tree, base, previous });
        }
        gone
    }

    fn is_gone(&self, commit: &Oid) -> bool {
        !self.known.contains_key(commit)
    }

    /// Commits without evidence, by tree, oldest first.
    fn by_tree(&self) -> HashMap<&Oid, Vec<&CommitFacts>> {
        let mut by_tree: HashMap<&Oid, Vec<&CommitFacts>> = HashMap::new();
        for commit in self.history.commits.iter().rev().filter(|commit| !self.history.notes.contains_key(&commit.id)) {
            by_tree.entry(&commit.tree).or_default().push(commit);
        }
        by_tree
    }
}
