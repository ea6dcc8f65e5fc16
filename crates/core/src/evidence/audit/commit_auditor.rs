//! Checks one commit against its evidence, its message, the chain and its journal.

use std::collections::{BTreeSet, HashMap};

use super::chain::Chain;
use super::{Audited, CommitFacts, Finding, GitNote, History, JournalCommit, Problem, Remark};
use crate::base::id::{Oid, RunId, StoryId};
use crate::evidence::{Evidence, one_line};
use crate::verify::{Outcome, Proof};

pub(super) struct CommitAuditor<'a> {
    pub(super) history: &'a History,
    pub(super) known: HashMap<&'a Oid, &'a CommitFacts>,
    /// For each digest, the oldest commit whose message names it.
    pub(super) named_by: HashMap<&'a str, &'a CommitFacts>,
    /// For each digest, the commit whose note has it.
    notes: HashMap<String, &'a Oid>,
    chain: Chain<'a>,
    /// Stories that have a note in this history.
    noted: BTreeSet<StoryId>,
}

impl<'a> CommitAuditor<'a> {
    pub(super) fn new(history: &'a History) -> Self {
        let mut named_by = HashMap::new();
        for commit in history.commits.iter().rev() {
            for digest in &commit.trailers.evidence {
                named_by.entry(digest.as_str()).or_insert(commit);
            }
        }
        let noted = history.commits.iter().filter_map(|commit| history.notes.get(&commit.id)?.evidence().ok());
        Self {
            history,
            noted: noted.map(|evidence| evidence.story).collect(),
            known: history.commits.iter().map(|commit| (&commit.id, commit)).collect(),
            named_by,
            notes: history.notes.iter().map(|(commit, note)| (note.digest(), commit)).collect(),
            chain: Chain::new(history),
        }
    }

    pub(super) fn story(&self, commit: &CommitFacts) -> Audited {
        let note = self.history.notes.get(&commit.id);
        let mut problems = Vec::new();
        let mut remarks = Vec::new();
        let evidence = note.and_then(|note| self.read(commit, note, &mut problems, &mut remarks));
        if note.is_none() {
            problems.push(self.without_note(commit));
        }
        self.repeated(commit, &mut problems);
        if let Some(evidence) = &evidence {
            self.compare(commit, evidence, &mut problems, &mut remarks);
        }
        let digest = note.map(GitNote::digest);
        let run = evidence.as_ref().map(|found| found.run.clone()).or_else(|| commit.trailers.run.clone().map(RunId));
        let journal = run.as_ref().is_some_and(|run| self.history.journals.runs.contains_key(run));
        if let Some(run) = run.as_ref().filter(|_| journal) {
            self.ask_journal(commit, run, evidence.as_ref(), digest.as_deref(), &mut problems, &mut remarks);
        }
        let found = evidence.as_ref();
        Audited {
            commit: commit.id.clone(),
            subject: commit.subject.clone(),
            story: found.map(|found| found.story.clone()).or_else(|| commit.trailers.story.clone().map(StoryId)),
            title: found.map(|found| found.title.clone()),
            run,
            session: found.and_then(|found| found.session.clone()),
            proof: found.map(|found| found.proof),
            outcome: found.map(|found| found.outcome),
            evidence: digest,
            tree: commit.tree.clone(),
            checks: found.map_or_else(Vec::new, |found| found.after.clone()),
            claim: found.and_then(|found| found.claim.clone()),
            cost_usd: found.and_then(|found| found.cost_usd),
            journal,
            problems: problems.iter().map(Problem::finding).collect(),
            remarks: remarks.iter().map(Remark::finding).collect(),
            reruns: Vec::new(),
        }
    }

    /// A commit that claims to be bookkeeping but changes other files.
    pub(super) fn impostor(&self, commit: &CommitFacts, problem: &Problem) -> Audited {
        let run = commit.trailers.run.clone().map(RunId);
        let journal = run.as_ref().is_some_and(|run| self.history.journals.runs.contains_key(run));
        Audited { run, journal, ..bare(commit, vec![problem.finding()]) }
    }

    /// Stories that bookkeeping marks as done although no commit in the history is about them. Problems of such a commit itself are
    /// reported separately.
    pub(super) fn without_evidence(&self, done: &[StoryId]) -> Option<Problem> {
        let is_known = |story: &&StoryId| {
            let by_message = |commit: &CommitFacts| commit.trailers.story.as_deref() == Some(&*one_line(story.as_str()));
            self.history.commits.iter().any(by_message) || self.noted.contains(story)
        };
        let stories: Vec<String> = done.iter().filter(|story| !is_known(story)).map(|story| one_line(story.as_str())).collect();
        // In a shallow clone the commit may be beyond the cut.
        (!stories.is_empty() && !self.history.shallow).then_some(Problem::MarkedWithoutEvidence { stories })
    }

    /// Reads the evidence in the note, unless the note belongs to another commit.
    fn read(
        &self,
        commit: &CommitFacts,
        note: &GitNote,
        problems: &mut Vec<Problem>,
        remarks: &mut Vec<Remark>,
    ) -> Option<Evidence> {
        let (digest, evidence) = (note.digest(), note.evidence());
        let named = &commit.trailers.evidence;
        let amends = |evidence: &Evidence| evidence.amendments().any(|first| named.contains(&first.digest()));
        let another = self.named_by.get(digest.as_str()).filter(|other| other.id != commit.id);
        if named.contains(&digest) {
            if named.iter().any(|other| *other != digest) {
                problems.push(Problem::NamesSeveral);
            }
        } else if evidence.as_ref().is_ok_and(amends) {
            let reapplied = evidence.as_ref().is_ok_and(Evidence::was_reapplied);
            let is_new_tree = |found: &Evidence| found.amended().is_some_and(|first| first.tree != found.tree);
            remarks.extend(match (reapplied, evidence.as_ref().is_ok_and(is_new_tree)) {
                (true, _) => Some(Remark::Reapplied),
                (false, true) => Some(Remark::Amended),
                // A person accepted it later.
                (false, false) => None,
            });
        } else if let Some(other) = another {
            problems.push(Problem::NoteOfAnother { of: other.id.clone(), subject: other.subject.clone() });
            return None;
        } else if let Some(named) = named.first() {
            problems.push(Problem::NoteEdited { named: named.clone(), found: digest });
        } else if self.vouched(commit, &digest) {
            remarks.push(Remark::NoTrailers);
        } else {
            problems.push(Problem::NamesNone);
        }
        match evidence {
            Ok(evidence) => Some(evidence),
            Err(why) => {
                problems.push(Problem::Unreadable { why });
                None
            }
        }
    }

    /// Whether the journal records this commit with exactly this evidence.
    fn vouched(&self, commit: &CommitFacts, digest: &str) -> bool {
        let known = self.history.journals.commits.get(&commit.id);
        known.is_some_and(|known| known.evidence.as_deref() == Some(digest))
    }

    fn without_note(&self, commit: &CommitFacts) -> Problem {
        let elsewhere = commit.trailers.evidence.iter().find_map(|digest| self.notes.get(digest));
        match elsewhere {
            Some(other) if self.known.contains_key(*other) => Problem::NoteMoved { to: (*other).clone() },
            Some(other) => Problem::Rewritten { from: (*other).clone() },
            None => Problem::NoNote,
        }
    }

    /// Evidence is about one commit. A second commit that names it is a copy.
    fn repeated(&self, commit: &CommitFacts, problems: &mut Vec<Problem>) {
        let first = commit.trailers.evidence.iter().find_map(|digest| self.named_by.get(digest.as_str()));
        if let Some(first) = first.filter(|first| first.id != commit.id) {
            problems.push(Problem::Copied { of: first.id.clone() });
        }
    }

    fn compare(&self, commit: &CommitFacts, evidence: &Evidence, problems: &mut Vec<Problem>, remarks: &mut Vec<Remark>) {
        if evidence.tree != commit.tree {
            problems.push(Problem::TreeDiffers { checked: evidence.tree.clone(), committed: commit.tree.clone() });
        }
        let trailers = &commit.trailers;
        let said = [
            ("story", trailers.story.as_deref(), one_line(evidence.story.as_str())),
            ("run", trailers.run.as_deref(), evidence.run.0.clone()),
            ("session", trailers.session.as_deref(), evidence.session.as_deref().map_or_else(|| "none".to_owned(), one_line)),
            ("proof", trailers.proof.as_deref().map(as_now), evidence.proof.name().to_owned()),
        ];
        for (what, message, note) in said {
            if let Some(message) = message.filter(|message| *message != note) {
                problems.push(Problem::MessageDiffers { what, message: message.to_owned(), note });
            }
        }
        if let Some(why) = evidence.overclaim() {
            problems.push(Problem::Overclaimed { proof: evidence.proof, why });
        }
        if evidence.outcome == Outcome::NeedsReview {
            remarks.push(Remark::NeedsReview);
        }
        if let Some(accepted) = &evidence.accepted {
            remarks.push(Remark::Accepted { by: accepted.by.clone(), reasons: accepted.reasons.clone() });
        }
        if !evidence.protected.is_empty() {
            remarks
                .push(Remark::ProtectedChanged { files: evidence.protected.iter().map(|change| change.path.clone()).collect() });
        }
        let unproven = evidence.criteria.iter().filter(|criterion| criterion.prover.is_none());
        let criteria: Vec<String> = unproven.map(|criterion| criterion.text.clone()).collect();
        if !criteria.is_empty() {
            remarks.push(Remark::Unproven { criteria, of: evidence.criteria.len() });
        }
        match &evidence.base {
            Some(base) if !self.known.contains_key(base) && self.history.shallow => remarks.push(Remark::CutOff),
            Some(base) if !self.known.contains_key(base) => problems.push(Problem::Rebased { base: base.clone() }),
            Some(_) | None => {}
        }
        match self.chain.judge(&commit.id, evidence) {
            Ok(remark) => remarks.extend(remark),
            // In a shallow clone the predecessor may be beyond the cut.
            Err(Problem::ChainLost { .. }) if self.history.shallow => remarks.push(Remark::CutOff),
            Err(problem) => problems.push(problem),
        }
        remarks.dedup();
    }

    fn ask_journal(
        &self,
        commit: &CommitFacts,
        run: &RunId,
        evidence: Option<&Evidence>,
        digest: Option<&str>,
        problems: &mut Vec<Problem>,
        remarks: &mut Vec<Remark>,
    ) {
        let journals = &self.history.journals;
        let Some(known) = journals.commits.get(&commit.id) else {
            if journals.runs.get(run) == Some(&false) {
                remarks.push(Remark::JournalDamaged { run: run.clone() });
                return;
            }
            let same = |known: &JournalCommit| {
                known.run == *run && evidence.is_some_and(|found| found.story == known.story && found.proof == known.proof)
            };
            let as_commit = journals.commits.iter().find(|(_, known)| same(known)).map(|(id, _)| id.clone());
            problems.push(Problem::NotInJournal { run: run.clone(), as_commit });
            return;
        };
        let mut differs = |what| problems.push(Problem::JournalDiffers { run: run.clone(), what });
        if known.run != *run {
            differs("the run");
        }
        if known.tree != commit.tree {
            differs("the tree");
        }
        if evidence.is_some_and(|found| found.story != known.story) {
            differs("the story");
        }
        if evidence.is_some_and(|found| found.proof != known.proof) {
            differs("the proof");
        }
        if known.evidence.as_deref().is_some_and(|known| digest.is_some_and(|digest| digest != known)) {
            differs("the evidence");
        }
    }
}

/// Uses only what the commit itself says.
fn bare(commit: &CommitFacts, problems: Vec<Finding>) -> Audited {
    Audited {
        commit: commit.id.clone(),
        subject: commit.subject.clone(),
        story: None,
        title: None,
        run: None,
        session: None,
        proof: None,
        outcome: None,
        evidence: None,
        tree: commit.tree.clone(),
        checks: Vec::new(),
        claim: None,
        cost_usd: None,
        journal: false,
        problems,
        remarks: Vec::new(),
        reruns: Vec::new(),
    }
}

/// The current spelling of a word from a trailer.
fn as_now(word: &str) -> &str {
    match word.parse::<Proof>() {
        Ok(proof) => proof.name(),
        Err(_) => word,
    }
}
