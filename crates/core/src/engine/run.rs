//! The loop as a pure state machine: `decide` takes the state and one input and returns events and the next effect; `apply`
//! folds an event into the state. Nothing else changes a `State`, so replaying a journal gives the same state.
//!
//! Each phase names the one effect that is in flight. If the process dies, the phase in the journal shows what it was doing.
//! That is also why `Stopping` is a separate phase.

mod apply;
mod decide;
mod effect;
mod evidence;
mod feedback;
mod learn;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use verdone_plan::Progress;

use crate::agent::{AllowanceUse, SessionUse, TurnOutcome, Usage};
use crate::base::finish::{Finish, StopSignal};
use crate::base::id::{Oid, RunId, StoryId};
use crate::base::verdict::{Red, RedPolicy};
use crate::check::CheckRun;
use crate::config::{FailBehavior, Limits, OnReview, Regression};
use crate::done::JudgeRecord;
use crate::journal::active::ActiveTime;
use crate::journal::agent_tools::OpenQuestion;
use crate::journal::control::Request;
use crate::journal::event::{Event, Place, Rejection, Seal, TurnTests, WaitCause};
use crate::lifecycle::{Script, ScriptExit};
use crate::verify::{FeedbackTurn, Outcome, Proof, StoryResult, VerifyReport};

pub use crate::check::failing_sentence;
pub use crate::lifecycle::EndedIteration;
pub use apply::apply;
pub use decide::decide;
pub use effect::Effect;
pub use feedback::Feedback;
pub use learn::{Taught, Teaching, teaching};

/// What a run is allowed to do. Fixed when it starts.
#[derive(Debug, Clone)]
pub struct Rules {
    pub limits: Limits,
    pub red_check: RedPolicy,
    /// Continue although gates fail on the baseline.
    pub red_baseline: bool,
    /// What the failure of a lifecycle script means.
    pub fail_behavior: FailBehavior,
    /// Land each story commit on the user's branch at once.
    pub land_each: bool,
    /// Percentage of the user's allowance at which no further turn starts until it resets; 0 means never.
    pub pause_at: u32,
    /// What to do with a story that a person has to review.
    pub on_review: OnReview,
    /// When to check proven stories again.
    pub regression: Regression,
}

/// The phase of a run. Phases carry what their effect needs.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Phase {
    #[default]
    New,
    /// The script `started`, then the baseline.
    Preparing,
    /// The script `post_iteration` if an iteration has ended, then the selection.
    Selecting,
    /// The script `next_iteration`, then a workspace with the tip of the run's branch.
    Beginning,
    RedChecking,
    Turn,
    /// Waiting until the agent's service can be used again.
    Waiting {
        why: WaitCause,
        until: Timestamp,
        /// The turn that follows.
        turn: Place,
    },
    Verifying,
    Committing {
        tree: Oid,
        proof: Proof,
        outcome: Outcome,
    },
    /// Keeping the rejected work under a ref.
    Keeping {
        rejection: Rejection,
    },
    /// Landing the last commit on the user's branch.
    Landing,
    /// Checking proven stories again.
    Regressing {
        at_end: bool,
    },
    /// Undoing the ticks of broken stories.
    Reopening {
        stories: Vec<StoryId>,
    },
    Stopping {
        finish: Finish,
    },
    Stopped {
        finish: Finish,
        exit_code: u8,
    },
}

/// The current attempt, from its selection until it is committed or kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    pub place: Place,
    pub title: String,
    /// The commit that it starts from; `None` until its workspace is ready.
    pub base: Option<Oid>,
    /// The tree that it starts from, if it differs from the commit's.
    pub tree: Option<Oid>,
    pub red: Option<Red>,
    pub red_runs: Vec<CheckRun>,
    /// The last verification report.
    pub report: Option<Box<VerifyReport>>,
    /// The judge's answer at the last verification.
    pub judge: Option<JudgeRecord>,
    /// The agent already had its one turn of feedback about work that passes but needs a review.
    pub doubt_told: bool,
    /// Active time when the iteration began.
    pub since_ms: u64,
    /// Whether any turn changed a file.
    pub changed: bool,
    /// The agent's own test runs that failed last, for feedback after a failed verification.
    pub failing: Vec<String>,
    /// What the next prompt has to say about the last turn.
    pub feedback: Option<Feedback>,
    /// The user's notes for the prompt of this turn.
    pub notes: Vec<String>,
    /// If the turn is made again after a wait: how many of the notes were in its first prompt.
    pub repeats: Option<usize>,
    /// What the agent said is left, if it said in this turn that the story is not finished.
    pub unfinished: Option<String>,
    /// Tree and kind of the last failure, and how often it occurred in a row.
    pub same_failure: (Option<(Option<Oid>, String)>, u32),
    /// The tree of the last refused commit.
    pub refused: Option<Oid>,
    /// The agent's final message of the last turn, only for the evidence.
    pub claim: Option<String>,
    /// How the agent's last turn ended, for lifecycle scripts; 0 before the first.
    pub agent_exit: i32,
    /// The cost of its turns and its judge, if the agent reports it, and the sessions used.
    pub cost_usd: Option<f64>,
    pub sessions: Vec<String>,
    /// Digests for the commit's evidence: of the gates, and of the previous evidence.
    pub gates: Option<String>,
    pub previous: Option<String>,
}

impl Attempt {
    pub fn new(place: Place, title: &str) -> Self {
        Self {
            place,
            title: title.to_owned(),
            base: None,
            tree: None,
            red: None,
            red_runs: Vec::new(),
            report: None,
            judge: None,
            doubt_told: false,
            since_ms: 0,
            changed: false,
            failing: Vec::new(),
            feedback: None,
            notes: Vec::new(),
            repeats: None,
            unfinished: None,
            same_failure: (None, 0),
            refused: None,
            claim: None,
            agent_exit: 0,
            cost_usd: None,
            sessions: Vec::new(),
            gates: None,
            previous: None,
        }
    }
}

/// A reason to end the run once the attempt is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Fatal {
    pub finish: Finish,
    pub reason: String,
    pub exit_code: u8,
}

/// Everything the loop knows: a fold of its journal.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    pub phase: Phase,
    pub run: Option<RunId>,
    /// The session that a session loop belongs to.
    pub session: Option<String>,
    pub started_at: Option<Timestamp>,
    /// Active time at the last event. All measurements use this, never the wall clock.
    pub active: ActiveTime,
    pub iteration: u32,
    pub progress: Progress,
    pub attempt: Option<Attempt>,
    /// Why the last attempt at a story failed, for the prompt of the next one.
    pub last_failures: BTreeMap<StoryId, Feedback>,
    /// Results of stories in this run.
    pub results: BTreeMap<StoryId, StoryResult>,
    pub consecutive_failures: u32,
    pub unchanged_iterations: u32,
    pub crashes: u32,
    /// Why the model refused to work on a story, each time that it did.
    pub refusals: BTreeMap<StoryId, Vec<String>>,
    /// Number of consecutive errors of the agent's service, and of consecutive waits for usage limits.
    pub service_errors: u32,
    pub usage_waits: u32,
    /// The latest known use of the allowance, until it resets.
    pub allowance: Option<AllowanceUse>,
    pub commits: u32,
    /// The commits of this run's stories, in order.
    pub committed: Vec<CommittedStory>,
    pub cost_usd: f64,
    /// The agent itself reported that its budget is used up.
    pub out_of_budget: bool,
    pub baseline: Option<Feedback>,
    pub stop: Option<StopSignal>,
    /// The user asked to stop after the current iteration.
    pub stop_after_story: bool,
    pub paused: bool,
    /// The user's notes for the next prompt.
    pub notes: Vec<String>,
    /// Questions of agents for the user, answered or not. The answers are in every prompt for the story.
    pub questions: BTreeMap<StoryId, OpenQuestion>,
    /// Stories to prepare for a review, with the agent's summary.
    pub merges: BTreeMap<StoryId, String>,
    /// Stories that the user wants no further work on, not even to the end of the current step.
    pub skipped_now: BTreeSet<StoryId>,
    /// Iterations skipped in a row.
    pub skips: u32,
    /// Stories that were done, but were found broken and reopened in this run.
    pub reopened: BTreeSet<StoryId>,
    /// Number of commits since the last regression check.
    pub since_regression: u32,
    /// The last iteration that ended, for the lifecycle scripts.
    pub last_iteration: Option<EndedIteration>,
    pub fatal: Option<Fatal>,
    /// How agents and checks are confined.
    pub seal: Option<Seal>,
    /// Digests of the gates, and of the last evidence on the branch.
    pub gates: Option<String>,
    pub evidence: Option<String>,
}

/// A story's commit, and the tip of the branch before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedStory {
    pub story: StoryId,
    pub commit: Oid,
    pub base: Option<Oid>,
}

/// The result of an effect, or a request from outside. Every effect ends in exactly one input.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
pub enum Input {
    /// Start the run described by the event.
    Start(Box<Event>),
    Prepared {
        baseline: Vec<CheckRun>,
    },
    Selected(Choice),
    /// The workspace contains exactly this commit.
    Ready {
        base: Option<Oid>,
        /// The tree, if it differs from the commit's.
        tree: Option<Oid>,
    },
    RedChecked {
        red: Red,
        runs: Vec<CheckRun>,
    },
    TurnEnded(TurnReport),
    /// Time passed during a wait.
    Waited {
        over: bool,
    },
    Verified(Box<Verification>),
    Committed {
        commit: Oid,
        tree: Oid,
        files: u32,
        /// Digest of the evidence.
        evidence: Option<String>,
        noted: bool,
    },
    /// The story is marked in the plan, without a commit.
    Marked {
        files: u32,
        /// Why there is no commit, if one was wanted.
        reason: Option<String>,
    },
    CommitRefused {
        message: String,
    },
    Kept {
        kept: Oid,
        files: u32,
    },
    /// The result of landing: the branch with its old and new tip, or the reason for the refusal.
    Landed(Box<Event>),
    /// The result of a regression check.
    Regressed(RegressionReport),
    /// The ticks of broken stories are undone.
    Reopened {
        commit: Option<Oid>,
    },
    Finished {
        /// The result of landing the remaining commits; `None` if there was nothing to land.
        landed: Option<Box<Event>>,
        script: Option<ScriptRun>,
    },
    /// A lifecycle script ran; `None` if there is none.
    ScriptRan(Option<ScriptRun>),
    Signal(StopSignal),
    Asked(Request),
    /// The effect was not started, see [`State::calls_off`].
    CalledOff,
    /// Hooks failed to judge something since the last report.
    GuardFailed(GuardFailures),
    /// An effect failed because of Verdone itself. This never uses up an attempt.
    Failed {
        message: String,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub struct ScriptRun {
    pub script: Script,
    pub exit: ScriptExit,
    pub duration_ms: u64,
    pub output: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Choice {
    Story { story: StoryId, title: String, number: usize, of: usize, open: usize },
    AllDone,
    NothingRunnable { reason: String },
}

#[derive(Debug, Clone, PartialEq)]
pub struct TurnReport {
    /// When it ended, by the wall clock.
    pub at: Timestamp,
    pub outcome: TurnOutcome,
    pub duration_ms: u64,
    pub usage: Usage,
    /// Of the agent's process, if it ended by itself.
    pub exit_code: Option<i32>,
    pub prompt: Option<String>,
    pub output: Option<String>,
    pub leftovers: u32,
    pub tests: TurnTests,
    pub session: Option<SessionUse>,
    pub allowance: Option<AllowanceUse>,
    /// The agent's final message, redacted and truncated.
    pub claim: Option<String>,
}

/// Failures of Verdone's own hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardFailures {
    pub failures: u32,
    pub denied: u32,
    /// The cause of the latest failure.
    pub cause: String,
    /// Relative to the run's directory.
    pub file: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Verification {
    pub changed: u32,
    pub restored: Vec<String>,
    pub report: VerifyReport,
    pub judge: Option<JudgeRecord>,
}

/// The result of a regression check.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RegressionReport {
    /// Number of stories whose checks pass.
    pub held: u32,
    /// Each command once.
    pub runs: Vec<CheckRun>,
    /// Stories with the check runs that no longer pass.
    pub broken: Vec<(StoryId, Vec<CheckRun>)>,
    /// Stories that were not checked, because time was up or the check was interrupted.
    pub not_checked: Vec<StoryId>,
}

/// The result of `decide`. Events are recorded and applied before the effect is performed.
#[derive(Debug, Clone, Default, PartialEq)]
#[must_use]
pub struct Decision {
    pub events: Vec<Event>,
    /// `None`: continue with the effect in flight, or the run has stopped.
    pub effect: Option<Effect>,
}

impl Attempt {
    /// Whether the agent can still get feedback about work that passes but needs a review.
    pub fn feedback_turn(&self, limits: &Limits) -> FeedbackTurn {
        let is_last = limits.turns > 0 && self.place.turn >= limits.turns;
        match (self.doubt_told, is_last) {
            (true, _) => FeedbackTurn::Given,
            (false, true) => FeedbackTurn::NoneLeft,
            (false, false) => FeedbackTurn::Left,
        }
    }
}

impl State {
    /// The question that an agent asked about a story, as long as it has no answer.
    pub fn open_question(&self, story: &StoryId) -> Option<&OpenQuestion> {
        self.questions.get(story).filter(|question| question.answer.is_none())
    }

    /// The attempt that has started and is neither committed nor kept.
    pub fn open_attempt(&self) -> Option<&Attempt> {
        self.attempt.as_ref().filter(|attempt| attempt.base.is_some() || attempt.tree.is_some())
    }

    /// Whether the effect must not start, because the user has skipped its story for good with `skip --now`.
    pub fn calls_off(&self, effect: &Effect) -> bool {
        let works_on_story = match effect {
            Effect::RedCheck | Effect::Turn | Effect::Verify | Effect::Commit => true,
            // These are short or prepare and end an attempt; a wait ends itself.
            Effect::Script(_)
            | Effect::Prepare
            | Effect::Select
            | Effect::Reset
            | Effect::Wait
            | Effect::Land
            | Effect::Keep
            | Effect::Regression
            | Effect::Reopen
            | Effect::Finish => false,
        };
        works_on_story && self.open_attempt().is_some_and(|attempt| self.skipped_now.contains(&attempt.place.story))
    }
}

#[cfg(test)]
mod tests;
