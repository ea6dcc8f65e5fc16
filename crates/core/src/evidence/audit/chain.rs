//! Each piece of evidence names its predecessor on the branch. In a history with merges there may be several nearest predecessors.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use super::{CommitFacts, History, Problem, Remark};
use crate::base::id::Oid;
use crate::evidence::Evidence;

/// Positions of commits in the history.
type Nearest = Rc<BTreeSet<usize>>;

pub(super) struct Chain<'a> {
    commits: &'a [CommitFacts],
    /// For each link, the nearest links before it.
    before: HashMap<&'a Oid, Nearest>,
    /// The digests by which a link may be named.
    names: HashMap<usize, Vec<String>>,
}

impl<'a> Chain<'a> {
    pub(super) fn new(history: &'a History) -> Self {
        let mut names = HashMap::new();
        let mut before = HashMap::new();
        // The nearest links of each commit, including itself. Parents come first.
        let mut nearest: HashMap<&Oid, Nearest> = HashMap::new();
        for (at, commit) in history.commits.iter().enumerate().rev() {
            let from_parents = merged(commit.parents.iter().filter_map(|parent| nearest.get(parent)));
            let note = history.notes.get(&commit.id);
            if !commit.trailers.is_story() && note.is_none() {
                nearest.insert(&commit.id, from_parents);
                continue;
            }
            // If a git hook rewrote the tree or the commit was re-applied, its message names evidence that is in no note.
            let evidence = note.and_then(|note| note.evidence().ok());
            let replaced = evidence.as_ref().is_some_and(|found| found.amends.is_some());
            let in_message = if replaced { &[][..] } else { &commit.trailers.evidence };
            // A story may have been accepted after later stories were built on it. Those name the evidence from before the acceptance.
            let before_acceptance = evidence.iter().filter(|found| found.accepted.is_some()).flat_map(Evidence::amendments);
            let known = note.map(super::GitNote::digest).into_iter().chain(before_acceptance.map(Evidence::digest));
            names.insert(at, known.chain(in_message.iter().cloned()).collect());
            let mut here = BTreeSet::from([at]);
            if note.is_none() {
                // Trailers without a note may have been written by an agent, so the next story may not refer to them.
                here.extend(from_parents.iter());
            }
            before.insert(&commit.id, from_parents);
            nearest.insert(&commit.id, Rc::new(here));
        }
        Self { commits: &history.commits, before, names }
    }

    pub(super) fn judge(&self, commit: &Oid, evidence: &Evidence) -> Result<Option<Remark>, Problem> {
        let before = self.before.get(commit).cloned().unwrap_or_default();
        let Some(previous) = &evidence.previous else {
            // Notes written before the chain existed name no predecessor, which is fine.
            let begins = evidence.gates.is_some() && !before.is_empty();
            return Ok(begins.then_some(Remark::NewChain));
        };
        let is = |at: &usize| self.names.get(at).is_some_and(|names| names.contains(previous));
        if before.iter().any(is) {
            return Ok(None);
        }
        let named = self.names.keys().copied().filter(|at| is(at)).min();
        let found = before.iter().next().map(|at| self.commits[*at].id.clone());
        Err(match named {
            Some(named) => Problem::ChainBroken { named: self.commits[named].id.clone(), found },
            None => Problem::ChainLost { named: previous.clone(), found },
        })
    }
}

fn merged<'a>(mut sets: impl Iterator<Item = &'a Nearest>) -> Nearest {
    let Some(first) = sets.next() else { return Nearest::default() };
    sets.fold(Rc::clone(first), |all, set| if Rc::ptr_eq(&all, set) { all } else { Rc::new(all.union(set).copied().collect()) })
}
