//! Stories that were committed and whose commits are gone: amended away, reset, rebased without their trailers.

use std::collections::{BTreeSet, HashMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::judge::Judge;
use super::{Audit, CommitFacts, Fate, Finding, JournalCommit, Problem};
use crate::id::{Oid, RunId, StoryId};
use crate::verify::Proof;

/// A story whose commit is gone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Missing {
    pub story: StoryId,
    /// As it was.
    pub commit: Oid,
    pub run: RunId,
    pub proof: Proof,
    /// Digest of its evidence.
    pub evidence: Option<String>,
    /// A commit with the same tree, which does not say whose it is.
    pub became: Option<Oid>,
    pub problem: Finding,
}

impl Judge<'_> {
    /// Journals know which commits there were. Where there is no journal, a note whose commit is gone tells of one that has the same
    /// tree on the same parent.
    pub(super) fn missing(&self, found: &mut Audit) {
        let journals = &self.history.journals;
        let (retold, by_tree) = (self.retold(), self.by_tree());
        let is_told = |known: &JournalCommit| retold.contains(&(known.run.as_str(), known.story.as_str()));
        for (commit, known) in journals.made().filter(|(commit, known)| self.is_due(commit, known) && !is_told(known)) {
            let became = became(&by_tree, &known.tree, known.base.as_ref());
            let of_here = known.branch.as_ref().is_some_and(|branch| self.history.branches.contains(branch));
            if !self.belongs(commit, known.base.as_ref(), became, of_here) {
                continue;
            }
            let elsewhere = self.history.apart.elsewhere.contains(commit);
            if elsewhere && !of_here {
                found.elsewhere += 1;
            } else if self.history.shallow && became.is_none() {
                found.beyond += 1;
            } else {
                let facts = (&known.story, &known.run, known.proof, known.evidence.clone());
                found.missing.push(missing(commit, facts, became, elsewhere));
            }
        }
        for (commit, note) in &self.history.notes {
            if self.known.contains_key(commit) || journals.commits.contains_key(commit) || self.is_named(Some(&note.digest())) {
                continue;
            }
            let Ok(evidence) = note.evidence() else { continue };
            let became = became(&by_tree, &evidence.tree, evidence.base.as_ref()).filter(|became| became.is_child);
            let became = became.filter(|became| self.is_asked(&became.commit.id));
            if became.is_some() && !self.history.apart.elsewhere.contains(commit) {
                let facts = (&evidence.story, &evidence.run, evidence.proof, Some(note.digest()));
                found.missing.push(missing(commit, facts, became, false));
            }
        }
    }

    /// The stories of runs for which there is another commit that no journal knows: what is wrong with that one is told there.
    fn retold(&self) -> BTreeSet<(&str, &str)> {
        let unknown = |commit: &&CommitFacts| !self.history.journals.commits.contains_key(&commit.id);
        let unknown = self.history.commits.iter().filter(unknown).map(|commit| &commit.trailers);
        unknown.filter_map(|said| Some((said.run.as_deref()?, said.story.as_deref()?))).collect()
    }

    /// Whether it ought to be somewhere, and no commit of the history says that it is the one.
    fn is_due(&self, commit: &Oid, known: &JournalCommit) -> bool {
        known.fate == Fate::Stands && !self.known.contains_key(commit) && !self.is_named(known.evidence.as_deref())
    }

    /// Whether a commit of the history names this evidence: that one is audited by itself.
    fn is_named(&self, evidence: Option<&str>) -> bool {
        evidence.is_some_and(|digest| self.named_by.contains_key(digest))
    }

    fn is_asked(&self, commit: &Oid) -> bool {
        self.history.range.as_ref().is_none_or(|range| range.contains(commit))
    }

    /// Whether it would be in the range if it were there: what it was made on is in the range, or is where that begins. What was made
    /// on its last commit comes after the range, unless its branch ends there, too.
    fn belongs(&self, commit: &Oid, base: Option<&Oid>, became: Option<Became<'_>>, of_here: bool) -> bool {
        let Some(range) = &self.history.range else { return true };
        if became.is_some_and(|became| range.contains(&became.commit.id)) {
            return true;
        }
        let start = self.history.start.as_ref();
        let parents = &self.history.apart.parents;
        let mut seen = BTreeSet::new();
        let mut next: Vec<&Oid> =
            parents.get(commit).map_or_else(|| base.into_iter().collect(), |parents| parents.iter().collect());
        while let Some(at) = next.pop() {
            // One commit by itself has no place for another.
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

    /// The commits that do not say whose they are, oldest first.
    fn by_tree(&self) -> ByTree<'_> {
        let mut by_tree = ByTree::new();
        for commit in self.history.commits.iter().rev().filter(|commit| !self.history.is_story(commit)) {
            by_tree.entry(&commit.tree).or_default().push(commit);
        }
        by_tree
    }
}

type ByTree<'a> = HashMap<&'a Oid, Vec<&'a CommitFacts>>;

#[derive(Clone, Copy)]
struct Became<'a> {
    commit: &'a CommitFacts,
    is_child: bool,
}

/// The commit with this tree that does not say whose it is; best the one on the same parent.
fn became<'a>(by_tree: &ByTree<'a>, tree: &Oid, base: Option<&Oid>) -> Option<Became<'a>> {
    let is_child = |commit: &CommitFacts| base.map_or(commit.parents.is_empty(), |base| commit.parents.contains(base));
    let same = by_tree.get(tree)?;
    let commit = same.iter().find(|commit| is_child(commit)).or_else(|| same.first())?;
    Some(Became { commit, is_child: is_child(commit) })
}

fn missing(
    commit: &Oid,
    (story, run, proof, evidence): (&StoryId, &RunId, Proof, Option<String>),
    became: Option<Became<'_>>,
    elsewhere: bool,
) -> Missing {
    let became = became.map(|became| became.commit.id.clone());
    let problem = Problem::Missing { commit: commit.clone(), run: run.clone(), became: became.clone(), elsewhere }.finding();
    Missing { story: story.clone(), commit: commit.clone(), run: run.clone(), proof, evidence, became, problem }
}
