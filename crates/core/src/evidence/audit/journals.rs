//! What the journals of all runs record about commits: which were made, and which should still exist.

use std::collections::BTreeMap;

use crate::base::id::{Oid, RunId, StoryId};
use crate::journal::event::Event;
use crate::verify::Proof;

/// The contents of all available journals.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Journals {
    /// The runs, and whether each journal could be read completely.
    pub runs: BTreeMap<RunId, bool>,
    pub commits: BTreeMap<Oid, JournalCommit>,
    /// In the order in which the commits were made.
    order: Vec<Oid>,
    /// The last commit of each story, keyed by plan and story.
    last: BTreeMap<(String, StoryId), Oid>,
    /// The plan of the run whose events are being read.
    plan: String,
    branch: Option<String>,
}

/// A commit in a journal.
#[derive(Debug, Clone, PartialEq)]
pub struct JournalCommit {
    pub run: RunId,
    pub story: StoryId,
    pub proof: Proof,
    pub tree: Oid,
    /// Absent in older journals.
    pub evidence: Option<String>,
    /// The tip of the branch before the commit.
    pub base: Option<Oid>,
    pub plan: String,
    pub branch: Option<String>,
    pub fate: CommitFate,
}

/// What Verdone did with a commit after making it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitFate {
    /// It should still exist.
    Stands,
    /// `verdone undo` removed it.
    Undone,
    /// Later work broke the story.
    Reopened,
    /// The same story was committed again.
    Redone,
    /// A person rejected it.
    Refused,
}

impl Journals {
    /// Whether events with this name concern commits.
    pub fn wants(kind: &[u8]) -> bool {
        matches!(
            kind,
            b"run_started" | b"committed" | b"accepted" | b"refused" | b"regressed" | b"undone" | b"reapplied" | b"landed"
        )
    }

    /// Adds an event. Call it in journal order, one run after the other.
    pub fn add_event(&mut self, run: &RunId, event: Event) {
        if let Event::RunStarted { plan, branch, .. } = event {
            (self.plan, self.branch) = (plan, branch);
        } else if let Event::Committed { place, commit, tree, proof, base, evidence, .. } = event {
            self.add(run, commit, (place.story, proof), tree, evidence, base);
        } else if let Event::Accepted { story, commit, tree, proof, base, evidence, .. } = event {
            self.add(run, commit, (story, proof), tree, Some(evidence), base);
        } else if let Event::Refused { story, .. } = event {
            self.leave(&story, CommitFate::Refused);
        } else if let Event::Regressed { story, .. } = event {
            self.leave(&story, CommitFate::Reopened);
        } else if let Event::Undone { story: Some(story), .. } = event {
            self.leave(&story, CommitFate::Undone);
        } else if let Event::Reapplied { story, was, commit, tree, base, evidence } = event {
            self.leave(&story, CommitFate::Redone);
            if let Some(known) = self.commits.get(&was).cloned() {
                let known = JournalCommit { tree, base, evidence: Some(evidence), fate: CommitFate::Stands, ..known };
                self.last.insert((known.plan.clone(), story), commit.clone());
                self.order.retain(|other| *other != commit);
                self.order.push(commit.clone());
                self.commits.insert(commit, known);
            }
        } else if let Event::Landed { branch, .. } = event {
            for known in self.commits.values_mut().filter(|known| known.run == *run) {
                known.branch = Some(branch.clone());
            }
        }
    }

    fn add(
        &mut self,
        run: &RunId,
        commit: Oid,
        (story, proof): (StoryId, Proof),
        tree: Oid,
        evidence: Option<String>,
        base: Option<Oid>,
    ) {
        self.leave(&story, CommitFate::Redone);
        let (plan, branch, run) = (self.plan.clone(), self.branch.clone(), run.clone());
        let known = JournalCommit { run, story, proof, tree, evidence, base, plan, branch, fate: CommitFate::Stands };
        self.last.insert((known.plan.clone(), known.story.clone()), commit.clone());
        self.order.retain(|other| *other != commit);
        self.order.push(commit.clone());
        self.commits.insert(commit, known);
    }

    /// In the order in which they were made.
    pub fn made(&self) -> impl Iterator<Item = (&Oid, &JournalCommit)> {
        self.order.iter().filter_map(|commit| self.commits.get_key_value(commit))
    }

    /// Records that the story's commit is no longer expected, for a legitimate reason.
    fn leave(&mut self, story: &StoryId, fate: CommitFate) {
        let last = self.last.get(&(self.plan.clone(), story.clone()));
        if let Some(known) = last.and_then(|last| self.commits.get_mut(last)).filter(|known| known.fate == CommitFate::Stands) {
            known.fate = fate;
        }
    }
}
