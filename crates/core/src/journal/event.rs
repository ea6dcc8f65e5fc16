//! The journal's events: the only truth of a run. Every view is a fold of them, and `--json` prints them as they are.
//!
//! Names and fields are an interface: add, never rename. `SCHEMA_VERSION` changes when a reader could misread an old file.

pub mod light;
mod verified;

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::{AllowanceUse, SessionUse, TurnOutcome, Usage};
use crate::base::finish::{Finish, StopSignal};
use crate::base::id::{Oid, RunId, StoryId};
use crate::base::verdict::Red;
use crate::check::CheckRun;
use crate::journal::control::Request;
use crate::lifecycle::{Meaning, Script, ScriptExit};
use crate::plan::Waiting;
use crate::verify::{Outcome, Proof, ProvenCriterion};

pub use crate::base::seal::{Seal, SealLevel};
pub use verified::Verified;

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
    /// Active time of the run, in milliseconds since it began: without pauses, stops by the terminal and sleep of the machine.
    /// Durations and limits count this; `at` follows a clock that people can set. Absent in older journals and outside of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_ms: Option<u64>,
    #[serde(flatten)]
    pub event: Event,
}

/// A snapshot of the work tree: where the branch stood, and the commit under `refs/verdone/` that keeps the rest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checkpoint {
    /// The commit that keeps the index and every changed and untracked file.
    pub id: Oid,
    /// Where HEAD pointed; absent before the first commit.
    pub head: Option<Oid>,
    /// The branch, without `refs/heads/`; absent when detached.
    pub branch: Option<String>,
}

/// Where an attempt is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    pub story: StoryId,
    /// Which attempt at this story in this run, from 1.
    pub attempt: u32,
    /// Which turn of the attempt, from 1; 0 before the first.
    pub turn: u32,
}

/// Why an attempt was given up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rejection {
    /// The checks of the last turn did not pass.
    #[serde(alias = "history_moved")]
    ChecksFailed,
    /// The agent said it was done and had changed nothing.
    NothingChanged,
    /// The same tree failed the same way again.
    NoProgress,
    /// The last turn crashed or ran out of time.
    TurnFailed,
    /// Tests that the agent ran itself failed, and the settings end the attempt then.
    TestsFailed,
    /// The commit was refused.
    CommitRefused,
    /// The story's checks were green before any work and config refuses that.
    AlreadyGreen,
    /// All checks pass, but a person has to look at it. The attempt does not count.
    #[serde(alias = "needs_human")]
    NeedsReview,
    /// A usage limit was reached and is not waited for; the attempt does not count.
    UsageLimit,
    /// The agent's service failed too often in a row; the attempt does not count.
    ServiceError,
    /// The run was stopped; the attempt does not count.
    Stopped,
    /// The run died and was found later; the attempt does not count.
    Crashed,
}

/// What a run waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitCause {
    /// A usage limit of the account, until it is reset.
    UsageLimit,
    /// The service is overloaded, failing or out of reach.
    ServiceError,
}

/// What the agent's own test runs showed, as the hooks of the turn saw them. No proof of anything: it only helps the next prompt,
/// and may end an attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnTests {
    /// The newest of those that failed in this attempt since one passed, newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failing: Vec<String>,
    /// Why they ended the turn, if they did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_turn: Option<String>,
}

impl TurnTests {
    pub fn is_empty(&self) -> bool {
        self.failing.is_empty() && self.ended_turn.is_none()
    }
}

/// What kind of problem a verification found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerifyOutcome {
    /// Every check passed on the tree named beside it.
    Passed,
    /// A check did not pass.
    Failed,
    /// Nothing was changed, so there is nothing to verify.
    NothingChanged,
    /// Something else stands in the way of a commit (submodule changed, ...).
    #[serde(alias = "unsettled", alias = "history_moved")]
    Refused,
    /// The run was being stopped.
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
        /// The plan's path, relative to the repository where it can be.
        plan: String,
        /// The plan's format.
        format: String,
        /// The agent's name in the config.
        agent: String,
        /// `building` or `planning`.
        mode: String,
        /// Stories in the plan.
        stories: usize,
        /// Stories that were not done.
        open: usize,
        /// The branch that gets the story commits.
        branch: Option<String>,
        /// Where it stood.
        head: Option<Oid>,
        /// The user's branch when the run began: what landing brings the commits to. Absent when HEAD was detached.
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
        /// Digest of the gates as they are defined: what every story's evidence names.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gates: Option<String>,
        /// Stories of earlier runs that still wait for a person.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        reviews: BTreeMap<StoryId, Waiting>,
        /// Digest of the last evidence in the branch's history: the next one names it as the one before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        evidence: Option<String>,
        /// The session that the loop holds: absent for runs. The user's own session works in the checkout, so there is no branch of the
        /// loop's, and nothing to recover.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
    },
    /// The gates ran once on the tree that the run starts from.
    BaselineChecked { green: bool, runs: Vec<CheckRun> },
    /// A story was chosen: an iteration begins.
    StorySelected {
        /// Which iteration of the run, from 1.
        iteration: u32,
        place: Place,
        title: String,
        /// Position in the plan, from 1.
        number: usize,
        /// Stories in the plan.
        of: usize,
        /// Stories not done yet, this one included.
        open: usize,
    },
    /// The workspace holds the tip of the run's branch, and nothing else.
    #[serde(alias = "checkpointed")]
    AttemptStarted {
        place: Place,
        /// The commit that the attempt starts from.
        #[serde(default)]
        base: Option<Oid>,
        /// The files that it starts from, where they are not those of the commit: a session has uncommitted ones, too.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tree: Option<Oid>,
    },
    /// The story's own checks ran before the agent started.
    RedChecked { place: Place, red: Red, runs: Vec<CheckRun> },
    /// A prompt went to the agent.
    TurnStarted { place: Place },
    /// The agent stopped: what it claims counts for nothing yet.
    TurnEnded {
        place: Place,
        outcome: TurnOutcome,
        duration_ms: u64,
        usage: Usage,
        /// The prompt's file, relative to the run's directory.
        prompt: Option<String>,
        /// The file of the redacted output, relative to the run's directory.
        output: Option<String>,
        /// Processes of the turn that were still there afterwards and were ended.
        leftovers: u32,
        #[serde(default, skip_serializing_if = "TurnTests::is_empty")]
        tests: TurnTests,
        /// The session it went into, where the agent has sessions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<SessionUse>,
        /// What is used up of the user's allowance, where the agent says so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        allowance: Option<AllowanceUse>,
        /// The agent's last words, redacted and cut.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        claim: Option<String>,
    },
    /// The agent's service cannot be used for a while, or should not be. The turn is made afterwards; neither it nor the attempt is
    /// spent, and no clock runs.
    WaitStarted {
        /// The turn that has to wait.
        place: Place,
        why: WaitCause,
        /// What the service said.
        reason: String,
        #[schemars(with = "String")]
        until: Timestamp,
        /// The limit is not reached yet: the settings want a pause before it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        ahead: bool,
    },
    /// The wait is over; the turn is made.
    WaitEnded { place: Place },
    /// Verdone ran the checks.
    Verified(Box<Verified>),
    /// The story's commit is about to be made of exactly this tree.
    CommitStarted {
        place: Place,
        tree: Oid,
        #[serde(alias = "verdict")]
        proof: Proof,
        /// `needs-review` where later stories build on it before a person has looked at it.
        #[serde(default = "done")]
        outcome: Outcome,
        /// Digest of the gates as they are defined.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gates: Option<String>,
        /// Digest of the evidence before this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        previous: Option<String>,
        /// Each criterion of the story with what proved it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        criteria: Vec<ProvenCriterion>,
    },
    /// The story's commit exists.
    Committed {
        place: Place,
        commit: Oid,
        tree: Oid,
        #[serde(alias = "verdict")]
        proof: Proof,
        /// `needs-review` where a person has to look at it before it can land.
        #[serde(default = "done")]
        outcome: Outcome,
        /// Where the run's branch stood before: the evidence covers base..commit.
        base: Option<Oid>,
        files: u32,
        /// Each criterion of the story with what proved it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        criteria: Vec<ProvenCriterion>,
        /// Digest of the evidence: of the note that was to be written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        evidence: Option<String>,
        /// Whether the evidence note could be written. Stays the last field: recovery looks for it at the line's end.
        noted: bool,
    },
    /// The story is done and marked in the plan, and its work stays in the checkout without a commit: a session loop commits only where
    /// the settings ask for it.
    Marked {
        place: Place,
        /// The tree that was verified.
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
    /// The attempt is given up.
    AttemptRejected { place: Place, rejection: Rejection, reason: String },
    /// The rejected work is kept as a commit under `refs/verdone/`.
    #[serde(alias = "rolled_back")]
    AttemptKept {
        place: Place,
        kept: Oid,
        /// How many files it changed.
        files: u32,
    },
    /// The attempt's workspace is gone with the run that died.
    #[serde(alias = "attempt_left")]
    AttemptDropped { place: Place, reason: String },
    /// A commit was re-applied on top of the user's branch, which had moved on, and its checks passed there.
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
    /// Commits of the run are about to be brought to the user's branch.
    LandingStarted { to: Oid },
    /// They are on it, and its files are in the user's checkout.
    Landed {
        branch: String,
        from: Oid,
        to: Oid,
        /// Commits that stay on the run's branch for now.
        #[serde(default, skip_serializing_if = "is_zero")]
        left: u32,
    },
    /// They are not; nothing was changed.
    LandingRefused { reason: String },
    /// No attempts are left for this story in this run.
    StoryFailed { story: StoryId, reason: String },
    /// All checks of a story pass, but a person has to look at it: `verdone review`.
    ReviewNeeded {
        place: Place,
        /// The commit under `refs/verdone/` that keeps the attempt, or the story's commit on the run's branch where later stories
        /// build on it.
        work: Oid,
        /// The commit that the attempt started from.
        base: Option<Oid>,
        proof: Proof,
        /// Why, a sentence each.
        reasons: Vec<String>,
    },
    /// A person took the work of a story that needed a review.
    Accepted {
        story: StoryId,
        /// The story's commit on the run's branch.
        commit: Oid,
        tree: Oid,
        base: Option<Oid>,
        proof: Proof,
        /// Who, as git knows them.
        by: String,
        /// The reasons that they were shown.
        reasons: Vec<String>,
        /// Digest of its evidence.
        evidence: String,
    },
    /// A person refused it: the story failed. The attempt is kept until `verdone prune`.
    Refused { story: StoryId, by: String },
    /// A lifecycle script ran.
    ScriptRan {
        script: Script,
        exit: ScriptExit,
        /// What its end means for the run.
        meaning: Meaning,
        duration_ms: u64,
        /// The redacted output, relative to the run's directory.
        output: Option<String>,
    },
    /// Verdone's own hooks could not judge something. What waited for their word was denied.
    GuardFailed {
        /// The attempt in work, where there is one.
        place: Option<Place>,
        /// How often since the last such event.
        failures: u32,
        /// How often something was denied because of it.
        denied: u32,
        /// Why, the last time.
        cause: String,
        /// Where each of them is, relative to the run's directory.
        file: String,
    },
    /// Stories that were proven are about to be checked once more.
    RegressionStarted {
        /// Before the run is called complete.
        at_end: bool,
    },
    /// Their own checks ran again, each command once.
    RegressionChecked {
        at_end: bool,
        /// Stories whose checks pass on this tree.
        held: u32,
        runs: Vec<CheckRun>,
        /// Stories that did not fit into the time (`regression.time`).
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        not_checked: Vec<StoryId>,
    },
    /// A story that was done is broken: it is open again.
    Regressed {
        story: StoryId,
        /// Its checks that do not pass any more.
        runs: Vec<CheckRun>,
        /// It was open again once already: the run ends as stalled.
        #[serde(default)]
        again: bool,
    },
    /// The plan says so, too.
    Reopened {
        stories: Vec<StoryId>,
        /// The commit that undid the ticks, where git knows the plan.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<Oid>,
    },
    /// `next_iteration` said to leave this iteration out. It counts as one all the same.
    IterationSkipped { place: Place },
    /// A signal asked the run to stop.
    StopRequested { signal: StopSignal },
    /// Somebody asked something of the run from another terminal.
    Asked { request: Request },
    /// The run is ending; what is left is putting things in order.
    RunStopping { finish: Finish, reason: String },
    /// The run has ended.
    RunStopped { finish: Finish, exit_code: u8, duration_ms: u64 },
    /// `verdone undo` took the run's last commit back.
    Undone {
        what: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        story: Option<StoryId>,
        /// Where the run's branch, or after a landing the user's, stands now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tip: Option<Oid>,
    },
    /// An event of an older version that means nothing here.
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
