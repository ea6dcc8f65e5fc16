//! A run as shown to people: one pure fold of the journal, shared by all surfaces.
//!
//! It only summarises what was recorded and decides nothing. Its size grows with the number of touched stories, not with the plan.
//! A journal that begins in the middle (truncated, or written by an older version) gives an incomplete view, not a panic.

mod brief;
mod fold;
mod pending;
mod phase;
mod story;

use std::collections::{BTreeSet, HashMap};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::agent::TokenKinds;
use crate::base::finish::{Finish, StopSignal};
use crate::base::id::{Oid, RunId, StoryId};
use crate::check::CheckRun;
use crate::journal::active::ActiveTime;
use crate::journal::agent_tools::OpenQuestion;
use crate::journal::control::Request;
use crate::journal::event::{Recorded, Seal, WaitCause};
use crate::verify::StoryResult;

pub use brief::Brief;
pub use phase::Phase;
pub use story::{AttemptView, ReviewView, StoryView, TurnView, VerificationView};

/// Everything that a surface needs to show a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct RunView {
    /// Sequence number of the last journal line in this view.
    pub seq: u64,
    pub run: Option<RunId>,
    /// The version of Verdone that wrote the journal.
    pub version: String,
    pub plan: String,
    pub format: String,
    pub agent: String,
    pub mode: String,
    /// The user's own session that the loop belongs to; absent for runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    pub branch: Option<String>,
    /// The tip of the branch when the run began.
    pub head: Option<Oid>,
    /// Whether `--unchecked` was given.
    pub unchecked: bool,
    pub max_iterations: u32,
    /// Number of stories in the plan, and how many of them are not done yet.
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
    /// Starts nothing new until it is resumed.
    pub paused: bool,
    /// Requests from another terminal that have not taken effect yet. After the end: notes that wait for the next run.
    pub pending: Vec<Request>,
    /// Questions of agents for the user, oldest first, with their answers. A story that is done has none.
    pub questions: Vec<OpenQuestion>,
    /// The current wait for the agent's service: until when, and why.
    pub waiting: Option<WaitView>,
    /// When the phase began.
    #[schemars(with = "Option<String>")]
    pub since: Option<Timestamp>,
    /// Active time when the phase began, in milliseconds.
    pub since_ms: u64,
    /// The current story; absent between stories and after the end.
    pub current: Option<Current>,
    /// The results of the gates on the baseline, and whether all were green.
    pub baseline: Option<Baseline>,
    /// Stories that were worked on, in the order in which they were first selected.
    pub touched: Vec<StoryView>,
    pub counts: Counts,
    pub false_claims: FalseClaims,
    pub iterations: u32,
    pub commits: u32,
    /// Usage as reported by the agent; absent if it never reported any.
    pub cost_usd: Option<f64>,
    pub tokens: Option<u64>,
    /// The same tokens by kind; absent if the agent does not report them apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_by_kind: Option<TokenKinds>,
    pub stop_signal: Option<StopSignal>,
    pub finish: Option<Finish>,
    pub reason: Option<String>,
    pub exit_code: Option<u8>,
    /// Active time as measured by the run itself; known at its end.
    pub duration_ms: Option<u64>,
    /// Number of leftover processes of turns that had to be ended.
    pub leftovers: u32,
    /// Files that the agent edited but may not change. These edits were left out.
    pub restored: BTreeSet<String>,
    /// Tests, test data and configuration that attempts changed.
    pub protected: BTreeSet<String>,
    /// Checks that both failed and passed on the same tree.
    pub flaky: BTreeSet<String>,
    pub undone: Vec<String>,
    /// Proven stories that the last regression check had no time for.
    pub not_checked_again: Vec<StoryId>,
    /// How agents and checks were confined.
    pub seal: Option<Seal>,
    /// The user's branch on which the commits land.
    pub target: Option<String>,
    /// The last commit that Verdone made on the run's branch.
    pub tip: Option<Oid>,
    /// Number of story commits that are not on the user's branch.
    pub unlanded: u32,
    /// Where the commits last landed, or why they did not.
    pub landing: Option<LandingView>,
    /// Failures of Verdone's own hooks.
    pub guard: Option<GuardView>,
    /// Number of errors of the agent's service in a row.
    #[serde(skip)]
    service_errors: u32,
    /// Notes in the prompt of the current turn.
    #[serde(skip)]
    in_prompt: Vec<String>,
    #[serde(skip)]
    active: ActiveTime,
    #[serde(skip)]
    index: HashMap<StoryId, usize>,
}

/// The current story.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Current {
    pub story: StoryId,
    pub title: String,
    /// Position in the plan, from 1, and the number of stories.
    pub number: usize,
    pub of: usize,
    pub attempt: u32,
    /// Counted from 1; 0 before the first prompt.
    pub turn: u32,
    /// When the attempt began.
    #[schemars(with = "String")]
    pub started: Timestamp,
    /// Active time at that moment, in milliseconds.
    pub started_ms: u64,
}

/// A wait for the agent's service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WaitView {
    pub why: WaitCause,
    /// The service's message.
    pub reason: String,
    #[schemars(with = "String")]
    pub until: Timestamp,
    /// Number of errors of the service in a row; 0 at a usage limit.
    pub errors: u32,
}

/// How the run's commits landed on the user's branch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LandingView {
    /// The last commit that is on the user's branch.
    pub landed: Option<Oid>,
    pub branch: Option<String>,
    /// Why the last landing was refused.
    pub refused: Option<String>,
}

/// Failures of Verdone's own hooks to judge something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GuardView {
    pub failures: u32,
    /// Number of failures that caused something to be denied.
    pub denied: u32,
    /// The cause of the latest failure.
    pub cause: String,
    /// When it was recorded.
    #[schemars(with = "String")]
    pub last: Timestamp,
    /// The file with the details, relative to the run's directory.
    pub file: String,
}

/// The gates on the baseline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Baseline {
    pub green: bool,
    pub runs: Vec<CheckRun>,
}

/// Number of stories in this run by result, and number of attempts that were not committed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Counts {
    pub verified: usize,
    pub agent_tested: usize,
    pub untested: usize,
    pub unchecked: usize,
    /// Accepted by a person.
    pub accepted: usize,
    /// A person has to review them.
    pub needs_review: usize,
    pub failed: usize,
    /// Number of attempts, not stories: rejected work that is kept under a ref.
    pub kept_attempts: usize,
}

/// Number of turns whose last message said that the story is done, but it was not.
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

    /// Drops the details of the attempts at a story. Totals and results stay.
    fn forget_attempts(&mut self, id: &StoryId) {
        if let Some(story) = self.index.get(id).and_then(|at| self.touched.get_mut(*at)) {
            (story.attempts, story.title) = (Vec::new(), String::new());
        }
    }

    /// A touched story, by id.
    pub fn story(&self, id: &StoryId) -> Option<&StoryView> {
        self.index.get(id).and_then(|at| self.touched.get(*at))
    }

    /// Number of stories in the plan that are done, by whatever means.
    pub fn done(&self) -> usize {
        self.stories.saturating_sub(self.open)
    }

    /// Active time at the last event, in milliseconds. Measurements that use it extend up to that event.
    pub fn active_ms(&self) -> u64 {
        self.active.ms()
    }

    /// Active time at `now` by the wall clock, estimated from the journal. It stands still once a run has ended or is paused.
    pub fn active_ms_at(&self, now: Timestamp) -> u64 {
        if self.standing() { self.active.ms() } else { self.active.until(now) }
    }

    /// Active time of the whole run. `active_ms` is the current value for a run that has not ended.
    pub fn elapsed_ms(&self, active_ms: u64) -> u64 {
        self.duration_ms.filter(|_| self.ended.is_some()).unwrap_or(active_ms)
    }

    fn standing(&self) -> bool {
        let waits = self.waiting.as_ref().is_some_and(|wait| wait.why.stops_clock());
        self.paused || waits || self.ended.is_some()
    }

    /// Touched stories with this result; `None` for those that are undecided.
    pub fn with_result(&self, name: Option<&'static str>) -> impl Iterator<Item = &StoryView> {
        self.touched.iter().filter(move |story| story.result.map(StoryResult::name) == name)
    }
}

#[cfg(test)]
mod tests;
