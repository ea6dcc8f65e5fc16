//! The proof of a story: kept in the journal, as a git note on the story's commit, and by digest in the commit's trailers.
//!
//! Each piece names the digest of its predecessor, so edited, removed or reordered evidence can be detected. It is derived from the
//! state alone: a run that crashed produces the same bytes again from its journal.

pub mod audit;
mod noted;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use verdone_plan::kind::split_kind;

use crate::base::id::{Oid, RunId, StoryId, digest};
use crate::base::seal::Seal;
use crate::base::verdict::Red;
use crate::check::{CheckOrigin, CheckOutcome};
use crate::done::JudgeRecord;
use crate::journal::event::SCHEMA_VERSION;
use crate::verify::{CountChange, Outcome, Proof, ProtectedChange, ProvenCriterion, StoryResult, TreeIds};

pub use crate::base::claim::claim_of;
pub use noted::{Acceptance, NotedCheck};

/// Gets the notes of another clone, which git does not fetch by itself.
pub const FETCH_NOTES: &str = "git fetch origin refs/notes/verdone:refs/notes/verdone";

/// The kind of a change about which the plan says nothing.
const DEFAULT_KIND: &str = "feat";

/// The evidence of one story. It contains digests instead of output, because notes are shared more widely than logs should be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    pub v: u32,
    pub run: RunId,
    pub story: StoryId,
    pub title: String,
    /// How well it is proven.
    #[serde(alias = "verdict")]
    pub proof: Proof,
    /// `needs-review` if later stories were built on it before a person reviewed it.
    #[serde(default = "done", skip_serializing_if = "is_done")]
    pub outcome: Outcome,
    /// The checked tree, which is also the tree of the commit.
    pub tree: Oid,
    /// The previous tip of the branch: the evidence covers base..commit.
    pub base: Option<Oid>,
    pub attempt: u32,
    pub turns: u32,
    pub red: Red,
    /// The story's own checks before the work.
    pub before: Vec<NotedCheck>,
    /// Every check on the committed tree.
    pub after: Vec<NotedCheck>,
    /// The agent's final message, redacted and truncated. It proves nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<String>,
    /// The cost of the attempt, if the agent reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The agent's sessions that worked on it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<String>,
    /// The trees that were judged. Absent in notes of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trees: Option<TreeIds>,
    /// The checks with the protected files from before the work, if the attempt changed some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pristine: Vec<NotedCheck>,
    /// The checks with the attempt's tests but without its work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_work: Vec<NotedCheck>,
    /// Test counts before and after, by check.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<CountChange>,
    /// Changed tests, test data and configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protected: Vec<ProtectedChange>,
    /// The reasons for the proof, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// Who accepted it, if a person had to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<Acceptance>,
    /// The answer of a second agent that was asked to refute it, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<JudgeRecord>,
    /// The acceptance criteria, each with what proved it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<ProvenCriterion>,
    /// Digest of the gate definitions. Absent in notes from before the chain existed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gates: Option<String>,
    /// Digest of the previous evidence; absent at the beginning of a chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
    /// How the agent and the checks were confined. Absent in notes of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<Seal>,
    /// The user's own session whose loop produced it; absent for runs. In that case `run` is the id of the loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The evidence that the commit's trailer names, if a git hook rewrote its tree. Everything outside this field was observed on the
    /// new tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amends: Option<Box<Evidence>>,
}

/// Why a note is not evidence.
#[derive(Debug, thiserror::Error)]
pub enum NoteError {
    #[error("it is not evidence: {0}")]
    Broken(#[from] serde_json::Error),
    #[error("its format {0} is newer than this version of Verdone supports")]
    Newer(u32),
}

impl Evidence {
    /// The story's result.
    pub fn result(&self) -> StoryResult {
        StoryResult { outcome: self.outcome, proof: Some(self.proof) }
    }

    /// Replaces `first`, which the commit's trailer names, after a git hook made a new tree.
    #[must_use]
    pub fn in_place_of(self, first: &Self) -> Self {
        Self { amends: Some(Box::new(first.clone())), ..self }
    }

    /// The evidence that this one replaces, if they differ only in what a git hook or re-applying the commit can change: the tree, its
    /// base and that base's evidence, and how the same checks ran on the tree.
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
            // A person may accept it later.
            accepted: seen_there.accepted,
            outcome: if self.accepted.is_some() { Outcome::Accepted } else { first.outcome },
            ..first.clone().without_amends()
        };
        (same_checks && moved == now).then_some(first)
    }

    /// Everything that it replaces, latest first.
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

    /// Reads a note. Ignores unknown fields from later versions of the same format.
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

    /// Why its own checks do not support its proof; `None` if they do.
    pub fn overclaim(&self) -> Option<String> {
        if let Some(failed) = required(&self.after).find(|check| !check.outcome.passed()) {
            return Some(format!("{} {}", failed.name, failed.outcome.describe()));
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
        // Older versions counted tests from the attempt as the story's own check.
        let is_own = |check: &&NotedCheck| matches!(check.origin, CheckOrigin::Story | CheckOrigin::AgentTest);
        let was_red = |own: &NotedCheck| self.before.iter().any(|before| before.name == own.name && !before.outcome.passed());
        let mut own = required(&self.after).filter(is_own).peekable();
        if own.peek().is_none() {
            return Some("none of the story's checks ran on the tree");
        }
        (self.red != Red::Red || !own.any(was_red)).then_some("none of the story's checks failed before the work")
    }

    fn is_not_shown_by_tests(&self) -> Option<&'static str> {
        let fails = |check: &NotedCheck| self.without_work.iter().any(|run| run.name == check.name && !run.outcome.passed());
        (!required(&self.after).any(fails)).then_some("no check failed with its tests and without its work")
    }

    /// Whether the result depends on changed tests or configuration although no person accepted it.
    fn depends_on_changes(&self) -> Option<&'static str> {
        if self.outcome != Outcome::Done {
            return None;
        }
        let is_red = |check: &NotedCheck| matches!(check.outcome, CheckOutcome::Failed { .. } | CheckOutcome::Signalled { .. });
        // A check that the attempt added cannot pass without the attempt's files. The story is agent-tested at best then.
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

    /// The subject line, from the template. `stated` is the kind of change that the plan states.
    fn subject(&self, template: &str, stated: Option<&str>) -> String {
        // Without `{kind}` in the template, the title keeps its prefix.
        let (prefix, title) = match split_kind(&self.title) {
            Some((prefix, title)) if template.contains("{kind}") => (Some(prefix), title),
            Some(_) | None => (None, self.title.as_str()),
        };
        let subject =
            template.replace("{kind}", stated.or(prefix).unwrap_or(DEFAULT_KIND)).replace("{id}", &one_line(self.story.as_str()));
        let subject = subject.replace("{title}", &one_line(title));
        if subject.trim().is_empty() { self.story.to_string() } else { subject.trim().to_owned() }
    }

    /// The commit message: the subject from the template, with the kind of change that the plan states, then trailers.
    pub fn commit_message(&self, template: &str, stated: Option<&str>) -> String {
        let outcome = if is_done(&self.outcome) { String::new() } else { format!("Verdone-Outcome: {}\n", self.outcome) };
        let session = self.session.as_ref().map(|id| format!("Verdone-Session: {}\n", one_line(id))).unwrap_or_default();
        format!(
            "{}\n\nVerdone-Story: {}\nVerdone-Run: {}\n{session}Verdone-Proof: {}\n{outcome}Verdone-Evidence: {}\n",
            self.subject(template, stated),
            one_line(self.story.as_str()),
            self.run,
            self.proof,
            self.digest(),
        )
    }
}

/// The checks that are not advisory.
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

/// Restores Verdone's trailers in a message that a git hook edited: a hook may run code from the attempt.
pub fn with_own_trailers(edited: &str, written: &str) -> String {
    let is_ours = |line: &&str| line.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("verdone-"));
    let is_trailer = |line: &str| {
        let key = line.split_once(':').map_or("", |(key, _)| key);
        !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    // Git only reads trailers in the last paragraph.
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

/// The digest of a note, as written in trailers and other notes.
pub fn note_digest(note: &[u8]) -> String {
    format!("sha256:{}", digest(note))
}

/// A sum that was read back from a journal may differ in its last digits, and the note has to come out the same.
pub(crate) fn to_the_millionth(cost: f64) -> f64 {
    (cost * 1e6).round() / 1e6
}

/// Plan text as one line of a commit message, so that a title cannot inject trailers.
pub(crate) fn one_line(text: &str) -> String {
    let flat: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    flat.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(200).collect()
}

#[cfg(test)]
pub(crate) mod tests;
