//! The loop as a pure machine: `decide` looks at the state and one input and answers with events and the next effect; `apply`
//! folds an event into the state. Nothing else mutates a `State`, so a journal replayed gives the same state again.
//!
//! Each phase names the one effect that is in flight. A process that dies leaves its phase in the journal, and with it what was
//! being done. `Stopping` is a phase of its own for the same reason.

mod apply;
mod decide;
mod evidence;
mod feedback;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::agent::{AllowanceUse, SessionUse, TurnOutcome, Usage};
use crate::base::finish::{Finish, StopSignal};
use crate::base::id::{Oid, RunId, StoryId};
use crate::base::verdict::{Red, RedPolicy};
use crate::check::CheckRun;
use crate::config::{FailBehavior, Limits, OnReview, Regression};
use crate::done::JudgeRecord;
use crate::journal::active::ActiveTime;
use crate::journal::control::Request;
use crate::journal::event::{Event, Place, Rejection, Seal, TurnTests};
use crate::lifecycle::{Script, ScriptExit};
use crate::plan::Progress;
use crate::verify::{FeedbackTurn, Outcome, Proof, StoryResult, VerifyReport};

pub use crate::check::failing_sentence;
pub use crate::lifecycle::EndedIteration;
pub use apply::apply;
pub use decide::decide;
pub use feedback::Feedback;

/// What a run is allowed to do: fixed when it starts.
#[derive(Debug, Clone)]
pub struct Rules {
    pub limits: Limits,
    pub red_check: RedPolicy,
    /// Go on although gates are red on the start tree.
    pub red_baseline: bool,
    /// What a lifecycle script's failure means.
    pub fail_behavior: FailBehavior,
    /// Bring each story commit to the user's branch at once.
    pub land_each: bool,
    /// Percent of the user's allowance at which no further turn begins before its reset; 0 for never.
    pub pause_at: u32,
    /// What becomes of a story that a person has to look at.
    pub on_review: OnReview,
    /// When stories that were proven are checked once more.
    pub regression: Regression,
}

/// Where a run is. Phases carry what their effect needs.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Phase {
    #[default]
    New,
    /// The script `started`, then the baseline.
    Preparing,
    /// The script `post_iteration`, where an iteration has ended, then the choice.
    Selecting,
    /// The script `next_iteration`, then a workspace with the tip of the run's branch.
    Beginning,
    RedChecking,
    Turn,
    /// Until the agent's service can be used again.
    Waiting {
        until: Timestamp,
        /// What comes after it.
        turn: Place,
    },
    Verifying,
    Committing {
        tree: Oid,
        proof: Proof,
        outcome: Outcome,
    },
    /// The rejected work is kept under a ref.
    Keeping {
        rejection: Rejection,
    },
    /// The last commit is brought to the user's branch.
    Landing,
    /// What was proven is checked once more.
    Regressing {
        at_end: bool,
    },
    /// Broken stories get their ticks undone.
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

/// The attempt in progress, from its selection until it is committed or kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    pub place: Place,
    pub title: String,
    /// The commit that it starts from; nothing before its workspace is ready.
    pub base: Option<Oid>,
    /// The files that it starts from, where they are not those of the commit.
    pub tree: Option<Oid>,
    pub red: Option<Red>,
    pub red_runs: Vec<CheckRun>,
    /// What the last verification found.
    pub report: Option<Box<VerifyReport>>,
    /// What a judge said at the last verification.
    pub judge: Option<JudgeRecord>,
    /// The agent had its one turn of feedback about work that passes and needs a person.
    pub doubt_told: bool,
    /// Active time when the iteration began.
    pub since_ms: u64,
    /// Whether any turn changed a file.
    pub changed: bool,
    /// Test runs of the agent's own that failed last, for the feedback after a verification that fails.
    pub failing: Vec<String>,
    /// What the next prompt has to say about the last turn.
    pub feedback: Option<Feedback>,
    /// What the user wants said in the prompt of this turn.
    pub notes: Vec<String>,
    /// The tree and the way of its last failure, and how often in a row.
    pub same_failure: (Option<(Option<Oid>, String)>, u32),
    /// The tree whose commit was refused last.
    pub refused: Option<Oid>,
    /// The agent's last words in the last turn, for the evidence alone.
    pub claim: Option<String>,
    /// What its turns and its judge cost, where the agent says so, and the sessions that they went into.
    pub cost_usd: Option<f64>,
    pub sessions: Vec<String>,
    /// Digests that the evidence of its commit names: of the gates, and of the evidence before it.
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
            same_failure: (None, 0),
            refused: None,
            claim: None,
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
    /// The session that a loop holds.
    pub session: Option<String>,
    pub started_at: Option<Timestamp>,
    /// At the last event. What is measured is measured in this, never by the wall clock.
    pub active: ActiveTime,
    pub iteration: u32,
    pub progress: Progress,
    pub attempt: Option<Attempt>,
    /// Why the last attempt at a story failed, for the prompt of its next one.
    pub lessons: BTreeMap<StoryId, Feedback>,
    /// What stories of this run came to.
    pub results: BTreeMap<StoryId, StoryResult>,
    pub consecutive_failures: u32,
    pub unchanged_iterations: u32,
    pub crashes: u32,
    /// Errors of the agent's service in a row, and usage limits that were waited for in a row.
    pub service_errors: u32,
    pub usage_waits: u32,
    /// As far as it is known, and until its reset.
    pub allowance: Option<AllowanceUse>,
    pub commits: u32,
    /// The commits of this run's stories, in their order.
    pub committed: Vec<CommittedStory>,
    pub cost_usd: f64,
    /// The agent itself said that nothing is left.
    pub out_of_budget: bool,
    pub baseline: Option<Feedback>,
    pub stop: Option<StopSignal>,
    /// The user asked for the end after the iteration in work.
    pub stop_after_story: bool,
    pub paused: bool,
    /// What the user wants the next prompt to say.
    pub notes: Vec<String>,
    /// Iterations skipped in a row.
    pub skips: u32,
    /// Stories that were done, found broken and opened again in this run.
    pub reopened: BTreeSet<StoryId>,
    /// Commits since what was proven was checked last.
    pub since_regression: u32,
    /// The iteration that ended last: for the lifecycle scripts.
    pub last_iteration: Option<EndedIteration>,
    pub fatal: Option<Fatal>,
    /// How agents and checks are confined.
    pub seal: Option<Seal>,
    /// Digests of the gates, and of the last evidence on the branch.
    pub gates: Option<String>,
    pub evidence: Option<String>,
}

/// A story's commit, and where the branch stood before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedStory {
    pub story: StoryId,
    pub commit: Oid,
    pub base: Option<Oid>,
}

/// What the world answered. Every effect ends in exactly one input.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
pub enum Input {
    /// Begin; the event says with what.
    Start(Box<Event>),
    Prepared {
        baseline: Vec<CheckRun>,
    },
    Selected(Choice),
    /// The workspace holds this commit and nothing else.
    Ready {
        base: Option<Oid>,
        /// The files, where they are not those of the commit.
        tree: Option<Oid>,
    },
    RedChecked {
        red: Red,
        runs: Vec<CheckRun>,
    },
    TurnEnded(TurnReport),
    /// Time went by in a wait.
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
    /// The story is marked in the plan, and there is no commit.
    Marked {
        files: u32,
        /// Why not, where one was wanted.
        reason: Option<String>,
    },
    CommitRefused {
        message: String,
    },
    Kept {
        kept: Oid,
        files: u32,
    },
    /// What came of landing: the branch and its two ends, or why not.
    Landed(Box<Event>),
    /// What was proven was checked once more.
    Regressed(RegressionReport),
    /// Ticks of broken stories are undone.
    Reopened {
        commit: Option<Oid>,
    },
    Finished {
        /// What became of commits that had not landed yet; none where there was nothing to land.
        landed: Option<Box<Event>>,
        script: Option<ScriptRun>,
    },
    /// A lifecycle script ran; none where there is none to run.
    ScriptRan(Option<ScriptRun>),
    Signal(StopSignal),
    Asked(Request),
    /// Hooks could not judge something since that was last told.
    GuardFailed(GuardFailures),
    /// An effect could not be performed: Verdone's own trouble, which never spends an attempt.
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
    pub prompt: Option<String>,
    pub output: Option<String>,
    pub leftovers: u32,
    pub tests: TurnTests,
    pub session: Option<SessionUse>,
    pub allowance: Option<AllowanceUse>,
    /// The agent's last words, redacted and cut.
    pub claim: Option<String>,
}

/// Faults of our own hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardFailures {
    pub failures: u32,
    pub denied: u32,
    /// Of the last one.
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

/// What checking proven stories once more showed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RegressionReport {
    /// Stories whose checks pass.
    pub held: u32,
    /// Each command once.
    pub runs: Vec<CheckRun>,
    /// Stories with the runs that do not pass any more.
    pub broken: Vec<(StoryId, Vec<CheckRun>)>,
    /// Stories for which the time was too short, or which an interrupt came before.
    pub not_checked: Vec<StoryId>,
}

/// What to do next, as data. What an effect needs beyond this is in the state.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Run a lifecycle script.
    Script(Script),
    /// Run the gates once on the tree that the run starts from.
    Prepare,
    Select,
    /// Make the workspace hold the tip of the run's branch.
    Reset,
    RedCheck,
    Turn,
    /// Wait a moment for the agent's service.
    Wait,
    Verify,
    Commit,
    /// Bring the run's commits to the user's branch.
    Land,
    /// Keep the rejected work under a ref.
    Keep,
    /// Check once more what was proven.
    Regression,
    /// Undo the ticks of broken stories.
    Reopen,
    /// Put things in order before the end.
    Finish,
}

impl Effect {
    /// Whether it is done in a pause, too: nothing new begins then, and putting things in order is not new.
    pub fn goes_on_in_a_pause(&self) -> bool {
        match self {
            Self::Keep | Self::Land | Self::Reopen | Self::Finish => true,
            Self::Script(_)
            | Self::Prepare
            | Self::Select
            | Self::Reset
            | Self::RedCheck
            | Self::Turn
            | Self::Wait
            | Self::Verify
            | Self::Commit
            | Self::Regression => false,
        }
    }
}

/// The answer of `decide`. Events are journalled and applied before the effect is performed.
#[derive(Debug, Clone, Default, PartialEq)]
#[must_use]
pub struct Decision {
    pub events: Vec<Event>,
    /// `None`: go on with what is in flight, or the run has stopped.
    pub effect: Option<Effect>,
}

impl Attempt {
    /// Whether the agent can still be asked to do something about work that passes and needs a person.
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
    /// The attempt that has begun and is neither committed nor kept.
    pub fn open_attempt(&self) -> Option<&Attempt> {
        self.attempt.as_ref().filter(|attempt| attempt.base.is_some() || attempt.tree.is_some())
    }
}

#[cfg(test)]
mod tests;
