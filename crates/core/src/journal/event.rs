//! The journal's events: the single source of truth about a run. Every view is a fold of them, and `--json` prints them unchanged.
//!
//! Names and fields are an interface: add, never rename. `SCHEMA_VERSION` changes when a reader could misread an old file.

pub mod partial;
mod verified;
mod wait_cause;

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use verdone_plan::ReviewState;

use crate::agent::{AllowanceUse, SessionUse, TurnOutcome, Usage};
use crate::base::finish::{Finish, StopSignal};
use crate::base::id::{Oid, RunId, StoryId};
use crate::base::verdict::Red;
use crate::check::CheckRun;
use crate::journal::control::Request;
use crate::lifecycle::{Script, ScriptEffect, ScriptExit};
use crate::verify::{Outcome, Proof, ProvenCriterion};

pub use crate::base::seal::{Seal, SealLevel};
pub use verified::Verified;
pub use wait_cause::WaitCause;

pub const SCHEMA_VERSION: u32 = 1;

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Recorded {
    /// Format version of this line.
    pub v: u32,
    /// Position in the journal, from 1, without gaps.
    pub seq: u64,
    /// When it was recorded.
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// Active time of the run in milliseconds since it began, excluding pauses, terminal stops and machine sleep. Durations and limits
    /// use it, because the clock behind `at` can be changed. Absent in older journals and outside a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_ms: Option<u64>,
    #[serde(flatten)]
    pub event: Event,
}

/// A snapshot of the working tree: the position of the branch, and the commit under `refs/verdone/` that keeps the rest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checkpoint {
    /// The commit that keeps the index and every changed and untracked file.
    pub id: Oid,
    /// The commit of HEAD; absent before the first commit.
    pub head: Option<Oid>,
    /// The branch, without `refs/heads/`; absent when detached.
    pub branch: Option<String>,
}

/// Identifies a turn of an attempt at a story.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    pub story: StoryId,
    /// Number of the attempt at this story in this run, from 1.
    pub attempt: u32,
    /// Number of the turn in the attempt, from 1; 0 before the first.
    pub turn: u32,
}

/// Why an attempt was rejected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rejection {
    /// The checks of the last turn did not pass.
    #[serde(alias = "history_moved")]
    ChecksFailed,
    /// The agent said it was done but had changed nothing.
    NothingChanged,
    /// The same tree failed in the same way again.
    NoProgress,
    /// The last turn crashed or ran out of time.
    TurnFailed,
    /// Tests that the agent ran itself failed, and the settings end the attempt in that case.
    TestsFailed,
    /// The commit was refused.
    CommitRefused,
    /// The story's checks passed before any work, and the config does not allow that.
    AlreadyGreen,
    /// All checks pass, but a person has to review the work. The attempt does not count.
    #[serde(alias = "needs_human")]
    NeedsReview,
    /// A usage limit was reached and the run does not wait for it. The attempt does not count.
    UsageLimit,
    /// The agent's service failed too often in a row. The attempt does not count.
    ServiceError,
    /// The agent itself said that the story is not finished.
    Unfinished,
    /// The agent asked the user a question. The attempt does not count.
    Blocked,
    /// The run was stopped. The attempt does not count.
    Stopped,
    /// The run crashed, which was noticed later. The attempt does not count.
    Crashed,
}

/// Results of tests that the agent ran itself, as seen by the hooks of the turn. They prove nothing: they only help the next prompt,
/// and may end an attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnTests {
    /// The most recent failures in this attempt since a test run passed, newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failing: Vec<String>,
    /// Why the tests ended the turn, if they did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_turn: Option<String>,
}

impl TurnTests {
    pub fn is_empty(&self) -> bool {
        self.failing.is_empty() && self.ended_turn.is_none()
    }
}

/// The result of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerifyOutcome {
    /// Every check passed on the tree named next to it.
    Passed,
    /// A check did not pass.
    Failed,
    /// Nothing was changed, so there is nothing to verify.
    NothingChanged,
    /// Something else prevents a commit (a changed submodule, for example).
    #[serde(alias = "unsettled", alias = "history_moved")]
    Refused,
    /// The run was stopped.
    Interrupted,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A run began.
    RunStarted {
        run: RunId,
        /// Verdone's version.
        version: String,
        /// The plan's path, relative to the repository if possible.
        plan: String,
        /// The plan's format.
        format: String,
        /// The agent's name in the config.
        agent: String,
        /// `building` or `planning`.
        mode: String,
        /// Number of stories in the plan.
        stories: usize,
        /// Number of stories that were not done.
        open: usize,
        /// The branch that receives the story commits.
        branch: Option<String>,
        /// The commit that the branch pointed to.
        head: Option<Oid>,
        /// The user's branch when the run began, which is where the commits land. Absent when HEAD was detached.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target: Option<String>,
        /// How the agent and the checks are confined on this machine.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seal: Option<Seal>,
        /// Digest of config, gates and frozen story checks.
        frozen: String,
        /// 0 means no limit.
        max_iterations: u32,
        /// Whether `--unchecked` was given.
        #[serde(alias = "unverified")]
        unchecked: bool,
        /// Digest of the gate definitions, which every story's evidence names.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gates: Option<String>,
        /// Stories of earlier runs that still wait for a review.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        reviews: BTreeMap<StoryId, ReviewState>,
        /// Digest of the latest evidence in the branch's history. The next evidence names it as its predecessor.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        evidence: Option<String>,
        /// The session that the loop belongs to; absent for runs. The user's own session works in the checkout, so the loop has no branch
        /// and there is nothing to recover.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
    },
    /// The gates ran once on the tree that the run starts from.
    BaselineChecked { green: bool, runs: Vec<CheckRun> },
    /// A story was selected: an iteration begins.
    StorySelected {
        /// Number of the iteration in the run, from 1.
        iteration: u32,
        place: Place,
        title: String,
        /// Position in the plan, from 1.
        number: usize,
        /// Number of stories in the plan.
        of: usize,
        /// Number of stories that are not done yet, including this one.
        open: usize,
    },
    /// The workspace contains exactly the tip of the run's branch.
    #[serde(alias = "checkpointed")]
    AttemptStarted {
        place: Place,
        /// The commit that the attempt starts from.
        #[serde(default)]
        base: Option<Oid>,
        /// The tree that it starts from, if it differs from the commit's: a session may also have uncommitted files.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tree: Option<Oid>,
    },
    /// The story's own checks ran before the agent started.
    RedChecked { place: Place, red: Red, runs: Vec<CheckRun> },
    /// A prompt was sent to the agent.
    TurnStarted { place: Place },
    /// The agent stopped. Its claim counts for nothing yet.
    TurnEnded {
        place: Place,
        outcome: TurnOutcome,
        duration_ms: u64,
        usage: Usage,
        /// The exit code of the agent's process, or 128 and the number of the signal that ended it. Absent if Verdone ended it, and for a
        /// client that stays for further turns.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// The prompt's file, relative to the run's directory.
        prompt: Option<String>,
        /// The file of the redacted output, relative to the run's directory.
        output: Option<String>,
        /// Number of processes of the turn that were still running afterwards and were ended.
        leftovers: u32,
        #[serde(default, skip_serializing_if = "TurnTests::is_empty")]
        tests: TurnTests,
        /// The session that was used, if the agent has sessions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<SessionUse>,
        /// How much of the user's allowance is used up, if the agent reports it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        allowance: Option<AllowanceUse>,
        /// The agent's final message, redacted and truncated.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        claim: Option<String>,
    },
    /// The agent's service cannot be used for a while, or should not be. The turn follows afterwards. Waiting uses up neither the turn nor
    /// the attempt. Only a wait after an error of the service counts towards the run's time limit.
    WaitStarted {
        /// The turn that has to wait.
        place: Place,
        why: WaitCause,
        /// The service's message.
        reason: String,
        #[schemars(with = "String")]
        until: Timestamp,
        /// The limit is not reached yet, but the settings ask for a pause before it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        ahead: bool,
    },
    /// The wait is over and the turn starts.
    WaitEnded { place: Place },
    /// Verdone ran the checks.
    Verified(Box<Verified>),
    /// The story's commit is about to be made from exactly this tree.
    CommitStarted {
        place: Place,
        tree: Oid,
        #[serde(alias = "verdict")]
        proof: Proof,
        /// `needs-review` if later stories build on it before a person has reviewed it.
        #[serde(default = "done")]
        outcome: Outcome,
        /// Digest of the gate definitions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gates: Option<String>,
        /// Digest of the previous evidence.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        previous: Option<String>,
        /// Each criterion of the story and what proved it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        criteria: Vec<ProvenCriterion>,
    },
    /// The story's commit was made.
    Committed {
        place: Place,
        commit: Oid,
        tree: Oid,
        #[serde(alias = "verdict")]
        proof: Proof,
        /// `needs-review` if a person has to review it before it can land.
        #[serde(default = "done")]
        outcome: Outcome,
        /// The previous tip of the run's branch: the evidence covers base..commit.
        base: Option<Oid>,
        files: u32,
        /// Each criterion of the story and what proved it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        criteria: Vec<ProvenCriterion>,
        /// Digest of the evidence, which is the content of the note.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        evidence: Option<String>,
        /// Whether the evidence note could be written. Must stay the last field: recovery looks for it at the end of the line.
        noted: bool,
    },
    /// The story is done and marked in the plan, but its work stays uncommitted in the checkout: a session loop commits only if the
    /// settings ask for it.
    Marked {
        place: Place,
        /// The verified tree.
        tree: Oid,
        proof: Proof,
        files: u32,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        criteria: Vec<ProvenCriterion>,
        /// Why there is no commit although the settings ask for one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Git or one of the user's git hooks refused the commit.
    CommitRefused { place: Place, tree: Oid, message: String },
    /// The attempt was rejected.
    AttemptRejected { place: Place, rejection: Rejection, reason: String },
    /// The rejected work is kept as a commit under `refs/verdone/`.
    #[serde(alias = "rolled_back")]
    AttemptKept {
        place: Place,
        kept: Oid,
        /// Number of files it changed.
        files: u32,
    },
    /// The attempt's workspace was lost when the run crashed.
    #[serde(alias = "attempt_left")]
    AttemptDropped { place: Place, reason: String },
    /// A commit was re-applied on top of the user's branch, which had advanced, and its checks passed there.
    Reapplied {
        story: StoryId,
        /// The commit that it replaces.
        was: Oid,
        commit: Oid,
        tree: Oid,
        base: Option<Oid>,
        /// Digest of its evidence.
        evidence: String,
    },
    /// Commits of the run are about to land on the user's branch.
    LandingStarted { to: Oid },
    /// The commits landed, and the user's checkout has their files.
    Landed {
        branch: String,
        from: Oid,
        to: Oid,
        /// Number of commits that stay on the run's branch for now.
        #[serde(default, skip_serializing_if = "is_zero")]
        left: u32,
    },
    /// The commits did not land. Nothing was changed.
    LandingRefused { reason: String },
    /// No attempts are left for this story in this run.
    StoryFailed { story: StoryId, reason: String },
    /// All checks of a story pass, but a person has to review it: `verdone review`.
    ReviewNeeded {
        place: Place,
        /// The commit under `refs/verdone/` that keeps the attempt, or the story's commit on the run's branch if later stories build
        /// on it.
        work: Oid,
        /// The commit that the attempt started from.
        base: Option<Oid>,
        proof: Proof,
        /// The reasons, one sentence each.
        reasons: Vec<String>,
    },
    /// A person accepted the work of a story that needed a review.
    Accepted {
        story: StoryId,
        /// The story's commit on the run's branch.
        commit: Oid,
        tree: Oid,
        base: Option<Oid>,
        proof: Proof,
        /// The person's identity in git.
        by: String,
        /// The reasons that the person was shown.
        reasons: Vec<String>,
        /// Digest of its evidence.
        evidence: String,
    },
    /// A person rejected it, so the story failed. The attempt is kept until `verdone prune`.
    Refused { story: StoryId, by: String },
    /// A lifecycle script ran.
    ScriptRan {
        script: Script,
        exit: ScriptExit,
        /// What the exit means for the run.
        meaning: ScriptEffect,
        duration_ms: u64,
        /// The redacted output, relative to the run's directory.
        output: Option<String>,
    },
    /// Verdone's own hooks could not judge something. Calls that needed their decision were denied.
    GuardFailed {
        /// The current attempt, if there is one.
        place: Option<Place>,
        /// Number of failures since the last such event.
        failures: u32,
        /// Number of calls that were denied because of them.
        denied: u32,
        /// The cause of the latest failure.
        cause: String,
        /// The file that lists all of them, relative to the run's directory.
        file: String,
    },
    /// A regression check of proven stories is about to start.
    RegressionStarted {
        /// It is the final one, before the run counts as complete.
        at_end: bool,
    },
    /// The stories' own checks ran again, each command once.
    RegressionChecked {
        at_end: bool,
        /// Number of stories whose checks pass on this tree.
        held: u32,
        runs: Vec<CheckRun>,
        /// Stories that were not checked because the time (`regression.time`) was up.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        not_checked: Vec<StoryId>,
    },
    /// A story that was done is broken and therefore open again.
    Regressed {
        story: StoryId,
        /// The checks that no longer pass.
        runs: Vec<CheckRun>,
        /// The story had been reopened before, so the run ends as stalled.
        #[serde(default)]
        again: bool,
    },
    /// The plan marks these stories as open again.
    Reopened {
        stories: Vec<StoryId>,
        /// The commit that undid the ticks, if the plan is tracked by git.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<Oid>,
    },
    /// The script `next_iteration` asked to skip this iteration. It counts as one anyway.
    IterationSkipped { place: Place },
    /// A signal asked the run to stop.
    StopRequested { signal: StopSignal },
    /// A request to the run: from its user in another terminal, or from its agent through a tool.
    Asked { request: Request },
    /// The run is ending; only cleanup is left.
    RunStopping { finish: Finish, reason: String },
    /// The run has ended.
    RunStopped { finish: Finish, exit_code: u8, duration_ms: u64 },
    /// `verdone undo` removed the run's last commit.
    Undone {
        what: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        story: Option<StoryId>,
        /// The new tip of the run's branch, or of the user's branch after a landing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tip: Option<Oid>,
    },
    /// An event of an older version that has no meaning any more.
    #[serde(
        rename = "changes_set_aside",
        alias = "put_back_started",
        alias = "changes_put_back",
        alias = "changes_kept",
        alias = "undo_started",
        alias = "undo_taken_back"
    )]
    Retired,
}

fn done() -> Outcome {
    Outcome::Done
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests;
