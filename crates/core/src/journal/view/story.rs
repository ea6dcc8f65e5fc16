//! One touched story with all that was tried and seen.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::GuardView;
use crate::agent::{SessionUse, TurnOutcome, Usage};
use crate::base::id::{Oid, StoryId};
use crate::base::verdict::Red;
use crate::check::CheckRun;
use crate::done::JudgeRecord;
use crate::journal::event::Rejection;
use crate::verify::{Outcome, ProvenCriterion, StoryResult, VerifyReport};

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StoryView {
    pub id: StoryId,
    pub title: String,
    /// Position in the plan, from 1.
    pub number: usize,
    /// Absent while it is not decided: in work, waiting for a retry, or taken back by `undo`.
    pub result: Option<StoryResult>,
    pub attempts: Vec<AttemptView>,
    /// Why it failed, or needs a review.
    pub reason: Option<String>,
    /// Why a person has or had to look at it, and what they said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<ReviewView>,
    /// How often later work broke it in this run after it was done.
    pub regressions: u32,
    /// Its commit was taken back by `undo`.
    pub undone: bool,
    pub cost_usd: Option<f64>,
    pub tokens: Option<u64>,
}

/// Work that needs or needed a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReviewView {
    /// The commit to look at.
    pub work: Oid,
    /// It is on the run's branch, and later stories build on it.
    pub stacked: bool,
    /// Why, a sentence each.
    pub reasons: Vec<String>,
    /// Who accepted or rejected it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settled_by: Option<String>,
}

/// From a fresh workspace until it is committed or kept.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AttemptView {
    /// From 1.
    pub attempt: u32,
    pub iteration: u32,
    #[schemars(with = "String")]
    pub started: Timestamp,
    #[schemars(with = "Option<String>")]
    pub ended: Option<Timestamp>,
    /// Active time of the run then, in milliseconds.
    pub started_ms: u64,
    pub ended_ms: Option<u64>,
    pub red: Option<Red>,
    pub red_runs: Vec<CheckRun>,
    pub turns: Vec<TurnView>,
    pub verifications: Vec<VerificationView>,
    /// What git or a git hook said when it refused the commit.
    pub refused: Option<String>,
    pub rejection: Option<Rejection>,
    pub reason: Option<String>,
    /// The commit that keeps the rejected work.
    pub kept: Option<Oid>,
    pub commit: Option<Oid>,
    pub result: Option<StoryResult>,
    /// The commit that it started from.
    pub base: Option<Oid>,
    /// Files of the commit or of the kept work.
    pub files: u32,
    /// Digest of the evidence of its commit, of the one before it, and of the gates.
    pub evidence: Option<String>,
    pub previous: Option<String>,
    pub gates: Option<String>,
    /// Whether the evidence note was written beside the commit.
    pub noted: bool,
    /// Each criterion of the story with what proved it.
    pub criteria: Vec<ProvenCriterion>,
    /// Faults of Verdone's own hooks during the attempt.
    pub guard: Option<GuardView>,
}

/// One prompt and its answer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TurnView {
    /// From 1.
    pub turn: u32,
    #[schemars(with = "String")]
    pub started: Timestamp,
    /// Absent while the agent works.
    pub outcome: Option<TurnOutcome>,
    pub duration_ms: u64,
    pub usage: Usage,
    pub prompt: Option<String>,
    pub output: Option<String>,
    pub leftovers: u32,
    /// The session it went into, where the agent has sessions.
    pub session: Option<SessionUse>,
    /// The agent's last words, redacted and cut: what it claims.
    pub claim: Option<String>,
}

/// What Verdone saw after a turn.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct VerificationView {
    pub turn: u32,
    #[schemars(with = "String")]
    pub at: Timestamp,
    pub changed: u32,
    pub restored: Vec<String>,
    pub report: VerifyReport,
    /// What a second agent said that was asked to refute the work, where one was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judge: Option<JudgeRecord>,
    /// The agent had stopped by itself, as if done, and was not.
    pub false_claim: bool,
}

impl StoryView {
    /// Whether the run's branch has its work: because it is done, or because later stories build on it.
    pub fn is_on_branch(&self) -> bool {
        let is_stacked = || self.review.as_ref().is_some_and(|review| review.stacked);
        self.result.is_some_and(|result| match result.outcome {
            Outcome::Done | Outcome::Accepted => true,
            Outcome::NeedsReview => is_stacked(),
            Outcome::Failed => false,
        })
    }

    /// The attempt that made the commit.
    pub fn committed(&self) -> Option<&AttemptView> {
        self.attempts.iter().rev().find(|attempt| attempt.commit.is_some())
    }

    /// The last rejected work that was kept.
    pub fn kept(&self) -> Option<&Oid> {
        self.attempts.iter().rev().find_map(|attempt| attempt.kept.as_ref())
    }

    /// Time of all attempts; of one still going on, up to `active_ms`.
    pub fn duration_ms(&self, active_ms: u64) -> u64 {
        self.attempts.iter().map(|attempt| attempt.duration_ms(active_ms)).sum()
    }

    /// Whether it was in work at some time between the two.
    pub fn was_in_work(&self, first: Timestamp, last: Timestamp) -> bool {
        self.attempts.iter().any(|attempt| attempt.started <= last && attempt.ended.is_none_or(|ended| first <= ended))
    }

    pub fn turns(&self) -> usize {
        self.attempts.iter().map(|attempt| attempt.turns.len()).sum()
    }

    pub fn false_claims(&self) -> usize {
        self.attempts.iter().flat_map(|attempt| &attempt.verifications).filter(|seen| seen.false_claim).count()
    }
}

impl AttemptView {
    /// The first end counts.
    pub(super) fn end(&mut self, at: Timestamp, active_ms: u64) {
        self.ended = self.ended.or(Some(at));
        self.ended_ms = self.ended_ms.or(Some(active_ms));
    }

    pub fn duration_ms(&self, active_ms: u64) -> u64 {
        self.ended_ms.unwrap_or(active_ms).saturating_sub(self.started_ms)
    }
}
