//! Story commits against their evidence: is the note there, is it the one that the commit names, is its tree the commit's, does its
//! verdict follow from its checks, is the chain whole, does the journal agree. Looks at facts that somebody else gathered.
//!
//! It tells an edit, a loss or a mix-up of notes and commits from honest history. Whoever writes commits, notes and journals all
//! over again is out of its reach: nothing here is signed.

mod chain;
mod finding;
mod trailers;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::SCHEMA_VERSION;
use crate::evidence::{Evidence, NotedAlarm, Proof, note_digest, one_line};
use crate::id::{Oid, RunId, StoryId};
use crate::verdict::StoryVerdict;
use chain::Chain;

pub use finding::{Finding, Problem, Remark};
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

/// What the journals that are here say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Journals {
    /// The runs, and whether each journal could be read from end to end.
    pub runs: BTreeMap<RunId, bool>,
    pub commits: BTreeMap<Oid, JournalCommit>,
}

/// A commit in a journal.
#[derive(Debug, Clone, PartialEq)]
pub struct JournalCommit {
    pub run: RunId,
    pub story: StoryId,
    pub verdict: StoryVerdict,
    pub tree: Oid,
    /// Absent in older journals.
    pub evidence: Option<String>,
}

/// Everything that an audit looks at.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// Everything that the tip is made of, children before their parents.
    pub commits: Vec<CommitFacts>,
    /// The commits to audit; all of them where it is absent.
    pub range: Option<BTreeSet<Oid>>,
    pub notes: BTreeMap<Oid, Note>,
    pub journals: Journals,
    /// The history is cut off somewhere.
    pub shallow: bool,
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
    /// Commits that are not Verdone's: of the range, or since the first story.
    pub others: usize,
    /// Notes in the repository, whatever they are attached to.
    pub notes: usize,
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
    pub verdict: Option<StoryVerdict>,
    /// Digest of the note.
    pub evidence: Option<String>,
    pub tree: Oid,
    /// The checks that ran on the tree.
    pub checks: Vec<Proof>,
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

/// A check that was run again, or was not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rerun {
    pub name: String,
    pub command: String,
    pub outcome: RerunOutcome,
    /// How it ended, in words.
    pub text: String,
    pub duration_ms: u64,
}

/// Ordered from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RerunOutcome {
    Passed,
    /// It failed, and passed when it was run once more on the same checkout.
    Flaky,
    /// Not this project's command, and nobody allowed it.
    NotAllowed,
    /// The audit was stopped.
    Interrupted,
    Failed,
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
    /// Takes in what running a story's checks again has shown.
    pub fn rerun(&mut self, commit: &Oid, reruns: Vec<Rerun>) {
        let Some(story) = self.stories.iter_mut().find(|story| story.commit == *commit) else { return };
        let advisory = |name: &str| story.checks.iter().any(|proof| proof.advisory && proof.name == name);
        for run in &reruns {
            match run.outcome {
                RerunOutcome::Failed if advisory(&run.name) => {
                    story.remarks.push(Remark::AdvisoryFails { name: run.name.clone() }.finding());
                }
                RerunOutcome::Failed => {
                    let (name, text) = (run.name.clone(), run.text.clone());
                    story.problems.push(Problem::FailsNow { name, text }.finding());
                }
                RerunOutcome::Flaky => story.remarks.push(Remark::FlakyNow { name: run.name.clone() }.finding()),
                RerunOutcome::NotAllowed => story.remarks.push(Remark::NotAllowed { command: run.command.clone() }.finding()),
                RerunOutcome::Passed | RerunOutcome::Interrupted => {}
            }
        }
        story.reruns = reruns;
        self.holds = self.stories.iter().all(Audited::holds);
    }
}

/// Looks at every commit of the range that is a story's or has a note.
pub fn audit(history: &History) -> Audit {
    let judge = Judge::of(history);
    let asked = |commit: &&CommitFacts| history.range.as_ref().is_none_or(|range| range.contains(&commit.id));
    let ours = |commit: &CommitFacts| commit.trailers.is_story() || history.notes.contains_key(&commit.id);
    let stories: Vec<Audited> =
        history.commits.iter().rev().filter(asked).filter(|commit| ours(commit)).map(|commit| judge.story(commit)).collect();
    let since_first = history.commits.iter().rposition(&ours).map_or(0, |at| at + 1);
    let counted = if history.range.is_some() { history.commits.len() } else { since_first };
    let others = history.commits[..counted].iter().filter(asked).filter(|commit| !ours(commit)).count();
    Audit { v: SCHEMA_VERSION, holds: stories.iter().all(Audited::holds), stories, others, notes: history.notes.len() }
}

struct Judge<'a> {
    history: &'a History,
    known: HashMap<&'a Oid, &'a CommitFacts>,
    /// Who names a digest in the message, oldest commit.
    named_by: HashMap<&'a str, &'a CommitFacts>,
    /// Where the note with a digest is.
    notes: HashMap<String, &'a Oid>,
    chain: Chain<'a>,
}

impl<'a> Judge<'a> {
    fn of(history: &'a History) -> Self {
        let mut named_by = HashMap::new();
        for commit in history.commits.iter().rev() {
            for digest in &commit.trailers.evidence {
                named_by.entry(digest.as_str()).or_insert(commit);
            }
        }
        Self {
            history,
            known: history.commits.iter().map(|commit| (&commit.id, commit)).collect(),
            named_by,
            notes: history.notes.iter().map(|(commit, note)| (note.digest(), commit)).collect(),
            chain: Chain::of(history),
        }
    }

    fn story(&self, commit: &CommitFacts) -> Audited {
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
        let digest = note.map(Note::digest);
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
            verdict: found.map(|found| found.verdict),
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

    /// The evidence in the note, unless it is another commit's.
    fn read(
        &self,
        commit: &CommitFacts,
        note: &Note,
        problems: &mut Vec<Problem>,
        remarks: &mut Vec<Remark>,
    ) -> Option<Evidence> {
        let (digest, evidence) = (note.digest(), note.evidence());
        let named = &commit.trailers.evidence;
        let amends = |evidence: &Evidence| evidence.amended().is_some_and(|first| named.contains(&first.digest()));
        let another = self.named_by.get(digest.as_str()).filter(|other| other.id != commit.id);
        if named.contains(&digest) {
            if named.iter().any(|other| *other != digest) {
                problems.push(Problem::NamesSeveral);
            }
        } else if evidence.as_ref().is_ok_and(amends) {
            remarks.push(Remark::Amended);
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

    /// Whether the journal knows this commit with this very evidence.
    fn vouched(&self, commit: &CommitFacts, digest: &str) -> bool {
        let known = self.history.journals.commits.get(&commit.id);
        known.is_some_and(|known| known.evidence.as_deref() == Some(digest))
    }

    fn without_note(&self, commit: &CommitFacts) -> Problem {
        let elsewhere = commit.trailers.evidence.iter().find_map(|digest| self.notes.get(digest));
        match elsewhere {
            Some(other) if self.known.contains_key(*other) => Problem::NoteMoved { to: (*other).clone() },
            Some(other) => {
                let verified = self.history.notes.get(*other).and_then(|note| note.evidence().ok()).map(|found| found.tree);
                Problem::Rewritten { from: (*other).clone(), same_tree: verified.as_ref() == Some(&commit.tree) }
            }
            None => Problem::NoNote,
        }
    }

    /// Evidence is about one commit: a second one that names it was copied from the first.
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
            ("verdict", trailers.verdict.as_deref(), evidence.verdict.words().to_owned()),
        ];
        for (what, message, note) in said {
            if let Some(message) = message.filter(|message| *message != note) {
                problems.push(Problem::MessageDiffers { what, message: message.to_owned(), note });
            }
        }
        if let Some(why) = evidence.overclaim() {
            problems.push(Problem::Overclaimed { verdict: evidence.verdict, why });
        }
        remarks.extend(evidence.alarms.iter().cloned().map(|alarm| {
            let NotedAlarm { severity, path, text, kind: _ } = alarm;
            Remark::Alarm { severity, path, text }
        }));
        let doubt = evidence.as_before.as_ref().and_then(|seen| seen.doubt.clone());
        remarks.extend(doubt.map(|why| Remark::CheckChanged { why }));
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
            // What is missing may lie beyond the end.
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
                known.run == *run && evidence.is_some_and(|found| found.story == known.story && found.verdict == known.verdict)
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
        if evidence.is_some_and(|found| found.verdict != known.verdict) {
            differs("the verdict");
        }
        if known.evidence.as_deref().is_some_and(|known| digest.is_some_and(|digest| digest != known)) {
            differs("the evidence");
        }
    }
}

#[cfg(test)]
mod tests;
