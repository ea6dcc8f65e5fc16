//! A run as people see it: one pure fold of the journal that every surface shares.
//!
//! It only adds up what was recorded. It decides nothing and grows with the stories that were touched, never with the plan.
//! A journal that begins in the middle (cut, or written by an older version) gives a view with holes, not a panic.

mod brief;
mod fold;
mod phase;
mod story;

use std::collections::{BTreeSet, HashMap};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::base::finish::{Finish, StopSignal};
use crate::base::id::{Oid, RunId, StoryId};
use crate::check::CheckRun;
use crate::journal::active::ActiveTime;
use crate::journal::event::{Recorded, Seal, WaitCause};
use crate::verify::StoryResult;

pub use brief::Brief;
pub use phase::Phase;
pub use story::{AttemptView, ReviewView, StoryView, TurnView, VerificationView};

/// Everything that a surface needs to show a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct RunView {
    /// The last journal line that is part of this view.
    pub seq: u64,
    pub run: Option<RunId>,
    /// The version that wrote the journal.
    pub version: String,
    pub plan: String,
    pub format: String,
    pub agent: String,
    pub mode: String,
    /// The user's own session that the loop holds; absent for runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    pub branch: Option<String>,
    /// Where the branch stood when the run began.
    pub head: Option<Oid>,
    /// Whether `--unchecked` was given.
    pub unchecked: bool,
    pub max_iterations: u32,
    /// Stories in the plan, and how many of them are not done yet.
    pub stories: usize,
    pub open: usize,
    #[schemars(with = "Option<String>")]
    pub started: Option<Timestamp>,
    #[schemars(with = "Option<String>")]
    pub ended: Option<Timestamp>,
    /// When the last event was recorded.
    #[schemars(with = "Option<String>")]
    pub last: Option<Timestamp>,
    pub phase: Phase,
    /// Begins nothing new until it may.
    pub paused: bool,
    /// Until when the agent's service is waited for, and why.
    pub waiting: Option<WaitView>,
    /// When the phase began.
    #[schemars(with = "Option<String>")]
    pub since: Option<Timestamp>,
    /// Active time when the phase began, in milliseconds.
    pub since_ms: u64,
    /// The story in work; none between stories and after the end.
    pub current: Option<Current>,
    /// Whether the gates were green on the start tree, and what they said.
    pub baseline: Option<Baseline>,
    /// Stories that were worked on, in the order in which they were first chosen.
    pub touched: Vec<StoryView>,
    pub counts: Counts,
    pub false_claims: FalseClaims,
    pub iterations: u32,
    pub commits: u32,
    /// What the agent says that it used; absent when it never said.
    pub cost_usd: Option<f64>,
    pub tokens: Option<u64>,
    pub stop_signal: Option<StopSignal>,
    pub finish: Option<Finish>,
    pub reason: Option<String>,
    pub exit_code: Option<u8>,
    /// Active time as the run itself measured it; known at its end.
    pub duration_ms: Option<u64>,
    /// Processes of turns that had to be ended.
    pub leftovers: u32,
    /// Files that are not the agent's to change, and that it edited: the edits were left out.
    pub restored: BTreeSet<String>,
    /// Tests, test data and configuration that attempts changed.
    pub protected: BTreeSet<String>,
    /// Checks that failed and passed on the same tree.
    pub flaky: BTreeSet<String>,
    pub undone: Vec<String>,
    /// Stories that were proven and did not fit into the last look at them.
    pub not_checked_again: Vec<StoryId>,
    /// How agents and checks were confined.
    pub seal: Option<Seal>,
    /// The user's branch that landing brings the commits to.
    pub target: Option<String>,
    /// The last commit that Verdone made on the run's branch.
    pub tip: Option<Oid>,
    /// Story commits that are not on the user's branch.
    pub unlanded: u32,
    /// What became of the commits: where they were brought to last, or why not.
    pub landing: Option<LandingView>,
    /// Faults of Verdone's own hooks.
    pub guard: Option<GuardView>,
    #[serde(skip)]
    active: ActiveTime,
    #[serde(skip)]
    index: HashMap<StoryId, usize>,
}

/// The story in work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Current {
    pub story: StoryId,
    pub title: String,
    /// Position in the plan, from 1, and the number of stories.
    pub number: usize,
    pub of: usize,
    pub attempt: u32,
    /// From 1; 0 before the first prompt.
    pub turn: u32,
    /// When the attempt began.
    #[schemars(with = "String")]
    pub started: Timestamp,
    /// Active time then, in milliseconds.
    pub started_ms: u64,
}

/// A wait for the agent's service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WaitView {
    pub why: WaitCause,
    /// What the service said.
    pub reason: String,
    #[schemars(with = "String")]
    pub until: Timestamp,
}

/// How the run's commits got to the user's branch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LandingView {
    /// The last commit that is on the user's branch.
    pub landed: Option<Oid>,
    pub branch: Option<String>,
    /// Why the last landing was refused.
    pub refused: Option<String>,
}

/// What Verdone's own hooks could not judge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GuardView {
    pub failures: u32,
    /// Those because of which something was denied.
    pub denied: u32,
    /// Of the last one.
    pub cause: String,
    /// When that was told.
    #[schemars(with = "String")]
    pub last: Timestamp,
    /// Relative to the run's directory.
    pub file: String,
}

/// The gates on the start tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Baseline {
    pub green: bool,
    pub runs: Vec<CheckRun>,
}

/// Stories of this run by what they came to, and attempts that were given up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Counts {
    pub verified: usize,
    pub agent_tested: usize,
    pub untested: usize,
    pub unchecked: usize,
    /// Taken by a person.
    pub accepted: usize,
    /// A person has to look at them.
    pub needs_review: usize,
    pub failed: usize,
    /// Attempts, not stories: rejected work that is kept under a ref.
    pub kept_attempts: usize,
}

/// Turns after which the agent stopped by itself, as if done, and was not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FalseClaims {
    /// No file had changed.
    pub nothing_changed: u32,
    /// A check did not pass.
    pub checks_failed: u32,
}

impl FalseClaims {
    pub fn total(self) -> u32 {
        self.nothing_changed + self.checks_failed
    }
}

impl RunView {
    pub fn from_journal<'a>(lines: impl IntoIterator<Item = &'a Recorded>) -> Self {
        let mut view = Self::default();
        for recorded in lines {
            view.apply(recorded);
        }
        view
    }

    /// Drops what the attempts at a story consisted of; sums and results stay.
    fn forget_attempts(&mut self, id: &StoryId) {
        if let Some(story) = self.index.get(id).and_then(|at| self.touched.get_mut(*at)) {
            (story.attempts, story.title) = (Vec::new(), String::new());
        }
    }

    /// A story that was touched, by id.
    pub fn story(&self, id: &StoryId) -> Option<&StoryView> {
        self.index.get(id).and_then(|at| self.touched.get(*at))
    }

    /// Stories of the plan that are done, whoever did them.
    pub fn done(&self) -> usize {
        self.stories.saturating_sub(self.open)
    }

    /// Active time at the last event, in milliseconds. With it, everything that is measured is measured up to that event.
    pub fn active_ms(&self) -> u64 {
        self.active.ms()
    }

    /// Active time at `now` by the wall clock, as far as the journal tells: a run that ended or is paused goes no further.
    pub fn active_ms_at(&self, now: Timestamp) -> u64 {
        if self.standing() { self.active.ms() } else { self.active.until(now) }
    }

    /// Active time of the whole run; while it runs, `active_ms` of it are over.
    pub fn elapsed_ms(&self, active_ms: u64) -> u64 {
        self.duration_ms.filter(|_| self.ended.is_some()).unwrap_or(active_ms)
    }

    fn standing(&self) -> bool {
        self.paused || self.waiting.is_some() || self.ended.is_some()
    }

    /// Touched stories that came to this; `None` for those that are not decided yet.
    pub fn with_result(&self, name: Option<&'static str>) -> impl Iterator<Item = &StoryView> {
        self.touched.iter().filter(move |story| story.result.map(StoryResult::name) == name)
    }
}

#[cfg(test)]
mod tests;
