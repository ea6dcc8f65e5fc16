//! What proves a story: kept in the journal, as a git note on the story's commit, and by digest in the commit's trailers.
//!
//! Each piece names the digest of the one before it, so that one that is edited, removed or reordered shows. Made from the state
//! alone: a run that died makes the same bytes again from its journal.

pub mod audit;
mod noted;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::id::{Oid, RunId, StoryId, digest};
use crate::base::sanitise::sanitise;
use crate::base::seal::Seal;
use crate::base::verdict::Red;
use crate::check::{CheckOrigin, CheckOutcome};
use crate::done::JudgeRecord;
use crate::journal::event::SCHEMA_VERSION;
use crate::verify::{CountChange, Outcome, Proof, ProtectedChange, ProvenCriterion, StoryResult, TreeIds};

pub use noted::{Acceptance, NotedCheck};

/// As much of an agent's last words as a note keeps.
const LONGEST_CLAIM: usize = 500;

/// The evidence of one story. Digests instead of output: a note travels further than a log should.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    pub v: u32,
    pub run: RunId,
    pub story: StoryId,
    pub title: String,
    /// How well it is proven.
    #[serde(alias = "verdict")]
    pub proof: Proof,
    /// `needs-review` where later stories were built on it before a person had looked at it.
    #[serde(default = "done", skip_serializing_if = "is_done")]
    pub outcome: Outcome,
    /// The tree that was checked, which is the tree of the commit.
    pub tree: Oid,
    /// Where the branch stood before: the evidence covers base..commit.
    pub base: Option<Oid>,
    pub attempt: u32,
    pub turns: u32,
    pub red: Red,
    /// The story's own checks before the work.
    pub before: Vec<NotedCheck>,
    /// Every check on the committed tree.
    pub after: Vec<NotedCheck>,
    /// The agent's last words, redacted and cut. They prove nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<String>,
    /// What the attempt cost, where the agent says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The agent's sessions that worked on it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<String>,
    /// The trees that were judged. Absent in notes of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trees: Option<TreeIds>,
    /// The checks with the protected files from before the work, where the attempt changed some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pristine: Vec<NotedCheck>,
    /// The checks with the attempt's tests and without its work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_work: Vec<NotedCheck>,
    /// How many tests ran before and after, by check.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<CountChange>,
    /// Changed tests, test data and configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protected: Vec<ProtectedChange>,
    /// Why it is proven as it is, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// Who took it, where a person had to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<Acceptance>,
    /// What a second agent said that was asked to refute it, where one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<JudgeRecord>,
    /// The acceptance criteria, each with what proved it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<ProvenCriterion>,
    /// Digest of the gates as they were defined. Absent in notes from before there was a chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gates: Option<String>,
    /// Digest of the evidence before this one; absent at the beginning of a chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
    /// How the agent and the checks were confined. Absent in notes of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<Seal>,
    /// The session of the user's own whose loop saw it; absent for runs. `run` is the id of the loop then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The evidence that the commit's trailer names, where a git hook rewrote the tree that it is about. Everything around it was
    /// seen on the new tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amends: Option<Box<Evidence>>,
}

/// Why a note is no evidence.
#[derive(Debug, thiserror::Error)]
pub enum NoteError {
    #[error("it is no evidence: {0}")]
    Broken(#[from] serde_json::Error),
    #[error("its format {0} is newer than this version of Verdone knows")]
    Newer(u32),
}

impl Evidence {
    /// What the story came to.
    pub fn result(&self) -> StoryResult {
        StoryResult { outcome: self.outcome, proof: Some(self.proof) }
    }

    /// What was seen on the tree that a git hook made, in place of `first`, which the commit's trailer names.
    #[must_use]
    pub fn in_place_of(self, first: &Self) -> Self {
        Self { amends: Some(Box::new(first.clone())), ..self }
    }

    /// The evidence that it stands in place of, where it differs from that in nothing but what a git hook or re-applying the commit
    /// elsewhere can change: the tree, its base with the evidence there, and how the same checks ran on it.
    pub fn amended(&self) -> Option<&Self> {
        let first = self.amends.as_deref()?;
        let same_check = |(one, other): (&NotedCheck, &NotedCheck)| {
            (&one.name, &one.origin, &one.command) == (&other.name, &other.origin, &other.command)
        };
        let same_checks = self.after.len() == first.after.len() && self.after.iter().zip(&first.after).all(same_check);
        let (tree, base, after) = (self.tree.clone(), self.base.clone(), self.after.clone());
        let previous = if base == first.base { first.previous.clone() } else { self.previous.clone() };
        let now = self.clone().without_amends();
        let seen_there = now.clone();
        let moved = Self {
            tree,
            base,
            after,
            previous,
            trees: seen_there.trees,
            pristine: seen_there.pristine,
            without_work: seen_there.without_work,
            counts: seen_there.counts,
            protected: seen_there.protected,
            reasons: seen_there.reasons,
            criteria: seen_there.criteria,
            before: seen_there.before,
            // A person may take it later.
            accepted: seen_there.accepted,
            outcome: if self.accepted.is_some() { Outcome::Accepted } else { first.outcome },
            ..first.clone().without_amends()
        };
        (same_checks && moved == now).then_some(first)
    }

    /// Everything that it stands in place of, the latest first.
    pub fn amendments(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(self.amended(), |later| later.amended())
    }

    /// Whether its commit was re-applied on top of another one.
    pub fn was_reapplied(&self) -> bool {
        self.amended().is_some_and(|first| first.base != self.base)
    }

    fn without_amends(self) -> Self {
        Self { amends: None, ..self }
    }

    /// Reads a note. Fields of later versions of the same format are passed over.
    pub fn from_note(note: &[u8]) -> Result<Self, NoteError> {
        let evidence: Self = serde_json::from_slice(note)?;
        if evidence.v > SCHEMA_VERSION { Err(NoteError::Newer(evidence.v)) } else { Ok(evidence) }
    }

    /// The text of the note: one JSON object, stable for the same evidence.
    pub fn to_note(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("evidence holds nothing that JSON cannot");
        text.push('\n');
        text
    }

    /// The name of this evidence in trailers, journals and the next note.
    pub fn digest(&self) -> String {
        note_digest(self.to_note().as_bytes())
    }

    /// Why its own checks do not carry its proof, where they do not.
    pub fn overclaim(&self) -> Option<String> {
        if let Some(failed) = required(&self.after).find(|check| !check.outcome.passed()) {
            return Some(format!("{} {}", failed.name, failed.outcome.words()));
        }
        let why = match self.proof {
            _ if self.outcome == Outcome::Failed => Some("a failed story is never committed"),
            Proof::Unchecked => None,
            Proof::Untested => required(&self.after).next().is_none().then_some("no check ran"),
            Proof::AgentTested => self.is_not_shown_by_tests(),
            Proof::Verified => self.is_not_shown_by_its_check(),
        };
        why.or_else(|| self.depends_on_changes()).map(str::to_owned)
    }

    fn is_not_shown_by_its_check(&self) -> Option<&'static str> {
        // Older versions counted tests that the attempt brought along as its own check.
        let is_own = |check: &&NotedCheck| matches!(check.origin, CheckOrigin::Story | CheckOrigin::AgentTest);
        let was_red = |own: &NotedCheck| self.before.iter().any(|before| before.name == own.name && !before.outcome.passed());
        let mut own = required(&self.after).filter(is_own).peekable();
        if own.peek().is_none() {
            return Some("no check of its own ran on the tree");
        }
        (self.red != Red::Red || !own.any(was_red)).then_some("no check of its own was red before the work")
    }

    fn is_not_shown_by_tests(&self) -> Option<&'static str> {
        let fails = |check: &NotedCheck| self.without_work.iter().any(|run| run.name == check.name && !run.outcome.passed());
        (!required(&self.after).any(fails)).then_some("no check failed with its tests and without its work")
    }

    /// Whether the result depends on changed tests or configuration, though nobody took it.
    fn depends_on_changes(&self) -> Option<&'static str> {
        if self.outcome != Outcome::Done {
            return None;
        }
        let is_red = |check: &NotedCheck| matches!(check.outcome, CheckOutcome::Failed { .. } | CheckOutcome::Signalled { .. });
        // A check that came with the attempt cannot pass without its files. Then the story is agent-tested at best.
        let is_new = |check: &NotedCheck| {
            check.origin == CheckOrigin::Story
                && !self.before.iter().any(|before| before.name == check.name && before.outcome.passed())
        };
        if required(&self.pristine).any(|check| is_red(check) && (self.proof == Proof::Verified || !is_new(check))) {
            return Some("it does not pass with the tests and configuration from before the work");
        }
        let fell = |change: &CountChange| change.fall.is_some() && !change.allowed;
        self.counts.iter().any(fell).then_some("fewer tests pass than before the work")
    }

    /// The subject line from its template.
    pub fn subject(&self, template: &str) -> String {
        let subject = template.replace("{id}", &one_line(self.story.as_str())).replace("{title}", &one_line(&self.title));
        if subject.trim().is_empty() { self.story.to_string() } else { subject.trim().to_owned() }
    }

    /// The commit's message: the subject from the template, then trailers.
    pub fn commit_message(&self, subject: &str) -> String {
        let outcome = if is_done(&self.outcome) { String::new() } else { format!("Verdone-Outcome: {}\n", self.outcome) };
        let session = self.session.as_ref().map(|id| format!("Verdone-Session: {}\n", one_line(id))).unwrap_or_default();
        format!(
            "{}\n\nVerdone-Story: {}\nVerdone-Run: {}\n{session}Verdone-Proof: {}\n{outcome}Verdone-Evidence: {}\n",
            self.subject(subject),
            one_line(self.story.as_str()),
            self.run,
            self.proof,
            self.digest(),
        )
    }
}

/// The checks that decide.
fn required(checks: &[NotedCheck]) -> impl Iterator<Item = &NotedCheck> {
    checks.iter().filter(|check| !check.advisory)
}

fn done() -> Outcome {
    Outcome::Done
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_done(outcome: &Outcome) -> bool {
    *outcome == Outcome::Done
}

/// A message that a git hook edited, with our trailers as we wrote them: a hook may run code of the attempt's.
pub fn with_own_trailers(edited: &str, written: &str) -> String {
    let is_ours = |line: &&str| line.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("verdone-"));
    let is_trailer = |line: &str| {
        let key = line.split_once(':').map_or("", |(key, _)| key);
        !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    // Git reads trailers in the last paragraph alone.
    let last_is_trailers = |text: &str| {
        let last = text.trim_end().rsplit_once("\n\n");
        last.is_some_and(|(_, last)| last.lines().all(is_trailer))
    };
    let ours = |text: &str| text.lines().filter(is_ours).map(str::to_owned).collect::<Vec<_>>();
    let last = edited.trim_end().rsplit_once("\n\n").map_or("", |(_, last)| last);
    if last_is_trailers(edited) && ours(last) == ours(written) && ours(edited) == ours(written) {
        return edited.to_owned();
    }
    let kept = edited.lines().filter(|line| !is_ours(line)).collect::<Vec<_>>().join("\n");
    let kept = kept.trim_end().replace("\n\n\n", "\n\n");
    if kept.trim().is_empty() {
        return written.to_owned();
    }
    let between = if last_is_trailers(&kept) { "\n" } else { "\n\n" };
    format!("{kept}{between}{}\n", ours(written).join("\n"))
}

/// The digest of a note as trailers and other notes spell it.
pub fn note_digest(note: &[u8]) -> String {
    format!("sha256:{}", digest(note))
}

/// The end of what an agent said, which is redacted already: what it claims. Nothing where it said nothing.
pub fn claim_of(said: &str) -> Option<String> {
    let said = sanitise(said);
    let said = said.trim();
    let skip = said.chars().count().saturating_sub(LONGEST_CLAIM);
    let end: String = said.chars().skip(skip).collect();
    let cut = if skip > 0 { format!("… {}", end.trim_start()) } else { end };
    (!cut.is_empty()).then_some(cut)
}

/// A sum that was read back from a journal may differ in its last digits, and the note is made again from that.
pub(crate) fn to_the_millionth(cost: f64) -> f64 {
    (cost * 1e6).round() / 1e6
}

/// Plan text on one line of a commit message: a title must not be able to write trailers of its own.
pub(crate) fn one_line(text: &str) -> String {
    let flat: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    flat.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(200).collect()
}

#[cfg(test)]
pub(crate) mod tests;
