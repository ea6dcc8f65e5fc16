//! One touched story with its attempts and results.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::GuardView;
use crate::agent::{SessionUse, TokenKinds, TurnOutcome, Usage};
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
    /// Absent while undecided: in progress, waiting for a retry, or undone.
    pub result: Option<StoryResult>,
    pub attempts: Vec<AttemptView>,
    /// Why it failed, or needs a review.
    pub reason: Option<String>,
    /// Why it needs or needed a review, and the decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<ReviewView>,
    /// How often later work broke it in this run after it was done.
    pub regressions: u32,
    /// Its commit was removed by `undo`.
    pub undone: bool,
    pub cost_usd: Option<f64>,
    pub tokens: Option<u64>,
    /// The same tokens by kind; absent if the agent does not report them apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_by_kind: Option<TokenKinds>,
}

/// Work that needs or needed a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReviewView {
    /// The commit to review.
    pub work: Oid,
    /// It is on the run's branch, and later stories build on it.
    pub stacked: bool,
    /// The reasons, one sentence each.
    pub reasons: Vec<String>,
    /// Who accepted or rejected it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settled_by: Option<String>,
}

/// An attempt, from a fresh workspace until it is committed or kept.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AttemptView {
    /// Counted from 1.
    pub attempt: u32,
    pub iteration: u32,
    #[schemars(with = "String")]
    pub started: Timestamp,
    #[schemars(with = "Option<String>")]
    pub ended: Option<Timestamp>,
    /// Active time of the run at that moment, in milliseconds.
    pub started_ms: u64,
    pub ended_ms: Option<u64>,
    pub red: Option<Red>,
    pub red_runs: Vec<CheckRun>,
    pub turns: Vec<TurnView>,
    pub verifications: Vec<VerificationView>,
    /// The message of git or a git hook that refused the commit.
    pub refused: Option<String>,
    pub rejection: Option<Rejection>,
    pub reason: Option<String>,
    /// The commit that keeps the rejected work.
    pub kept: Option<Oid>,
    pub commit: Option<Oid>,
    pub result: Option<StoryResult>,
    /// The commit that it started from.
    pub base: Option<Oid>,
    /// Number of files in the commit or in the kept work.
    pub files: u32,
    /// Digests of the evidence of its commit, of the previous evidence, and of the gates.
    pub evidence: Option<String>,
    pub previous: Option<String>,
    pub gates: Option<String>,
    /// Whether the evidence note was written.
    pub noted: bool,
    /// Each criterion of the story and what proved it.
    pub criteria: Vec<ProvenCriterion>,
    /// Failures of Verdone's own hooks during the attempt.
    pub guard: Option<GuardView>,
}

/// One prompt and its answer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TurnView {
    /// Counted from 1.
    pub turn: u32,
    #[schemars(with = "String")]
    pub started: Timestamp,
    /// Absent while the agent is working.
    pub outcome: Option<TurnOutcome>,
    pub duration_ms: u64,
    pub usage: Usage,
    pub prompt: Option<String>,
    pub output: Option<String>,
    pub leftovers: u32,
    /// The session that was used, if the agent has sessions.
    pub session: Option<SessionUse>,
    /// The agent's final message, redacted and truncated: its claim.
    pub claim: Option<String>,
}

/// The result of the verification after a turn.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct VerificationView {
    pub turn: u32,
    #[schemars(with = "String")]
    pub at: Timestamp,
    pub changed: u32,
    pub restored: Vec<String>,
    pub report: VerifyReport,
    /// The answer of a second agent that was asked to refute the work, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judge: Option<JudgeRecord>,
    /// The agent had stopped as if it were done, but was not.
    pub false_claim: bool,
}

impl StoryView {
    /// Whether its work is on the run's branch: because it is done, or because later stories build on it.
    pub fn is_on_branch(&self) -> bool {
        let is_stacked = || self.review.as_ref().is_some_and(|review| review.stacked);
        self.result.is_some_and(|result| match result.outcome {
            Outcome::Done | Outcome::Accepted => true,
            Outcome::NeedsReview => is_stacked(),
            Outcome::Failed => false,
        })
    }

    /// The attempt that was committed.
    pub fn committed(&self) -> Option<&AttemptView> {
        self.attempts.iter().rev().find(|attempt| attempt.commit.is_some())
    }

    /// The last rejected work that was kept.
    pub fn kept(&self) -> Option<&Oid> {
        self.attempts.iter().rev().find_map(|attempt| attempt.kept.as_ref())
    }

    /// Total time of all attempts. An attempt that is still running counts up to `active_ms`.
    pub fn duration_ms(&self, active_ms: u64) -> u64 {
        self.attempts.iter().map(|attempt| attempt.duration_ms(active_ms)).sum()
    }

    /// Whether it was being worked on at some time between the two.
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
    /// Only the first end counts.
    pub(super) fn end(&mut self, at: Timestamp, active_ms: u64) {
        self.ended = self.ended.or(Some(at));
        self.ended_ms = self.ended_ms.or(Some(active_ms));
    }

    pub fn duration_ms(&self, active_ms: u64) -> u64 {
        self.ended_ms.unwrap_or(active_ms).saturating_sub(self.started_ms)
    }
}
