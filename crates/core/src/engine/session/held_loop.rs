//! A loop as stored between Stops, outside the working tree: what was fixed when it began, and the gate's counters.
//! The results of its stories are only in its journal.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{BlockCause, FrozenSettings, StopDecision};
use crate::base::finish::Finish;
use crate::base::id::{Oid, RunId, StoryId};
use crate::base::money::Usd;
use crate::base::span::Span;
use crate::check::CommandSpec;
use crate::config::{Config, FailBehavior, Limits, OnReview};
use crate::engine::run::Rules;
use crate::journal::event::Checkpoint;
use crate::verify::Proof;

/// Never write a file of a later version. Version 1 had no journal.
pub const LOOP_VERSION: u32 = 2;

/// One loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeldLoop {
    pub version: u32,
    /// The run whose directory contains its journal.
    pub run: RunId,
    pub status: LoopStatus,
    pub task: String,
    /// The absolute path of the plan; `None` if only the gates decide.
    pub plan: Option<String>,
    pub started_at: String,
    pub max_blocks: u32,
    pub settings: FrozenSettings,
    /// The working tree when the loop began.
    pub base: Base,
    /// The same for commits, if stories are committed: what was changed or untracked then belongs to the user.
    pub checkpoint: Option<Checkpoint>,
    /// Stories that were open when the loop began, each in its frozen form.
    pub stories: BTreeMap<StoryId, Frozen>,
    /// Stories that were marked as done when the loop began. Claimed, but left alone.
    pub done_before: BTreeSet<StoryId>,
    /// The gate's counters. The gate never writes the journal.
    pub gate: GateCount,
}

/// What the gate remembers about its own answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GateCount {
    pub blocks: u32,
    /// Number of consecutive Stops that waited in vain for a verification.
    pub waits: u32,
    pub same: RepeatedBlock,
    /// The last finding that was reported to the agent.
    pub told: Option<String>,
    /// Why the session was last let go.
    pub let_go: Option<String>,
    pub incomplete: Option<Incomplete>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopStatus {
    Active,
    Complete,
    ReachedLimit,
    /// `verdone run` continues with the plan.
    HandedOver,
    /// Stopped by the user.
    Stopped,
    /// The only stories left need a person.
    Blocked,
    /// A story was broken for the second time.
    Stalled,
}

/// A story as it was when the loop began, or when the user accepted it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frozen {
    pub title: String,
    #[serde(default)]
    pub checks: Vec<CommandSpec>,
    /// The paths that it may change, according to the plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<String>,
    /// Its complexity according to the plan. An agent may raise it, never lower it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complexity: Option<u8>,
    /// The weakest proof that makes it done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    /// The texts of its markers, if they differ from the default for open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<String>,
    /// It was not open when the loop began, and the user has not accepted it. Its checks do not run, and its scope permits nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unaccepted: bool,
}

/// A tree for later comparison.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    pub key: String,
    /// The commit of HEAD at that time. Lines added since then come from the session.
    pub head: Option<Oid>,
    /// A digest that a commit does not change.
    pub content: String,
}

/// The last tree and reasons, and how often they occurred in a row.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepeatedBlock {
    pub key: String,
    pub times: u32,
}

/// A session that ended with unfinished work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incomplete {
    pub session: String,
    pub story: Option<String>,
    pub task: String,
    pub reason: String,
    pub at: String,
    /// A later session has been told about it.
    #[serde(default)]
    pub told: bool,
}

impl LoopStatus {
    pub fn describe(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Complete => "complete",
            Self::ReachedLimit => "reached its limit",
            Self::HandedOver => "handed over to a run",
            Self::Stopped => "stopped",
            Self::Blocked => "blocked: the rest needs you",
            Self::Stalled => "stalled",
        }
    }

    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Complete => "complete",
            Self::ReachedLimit => "reached_limit",
            Self::HandedOver => "handed_over",
            Self::Stopped => "stopped",
            Self::Blocked => "blocked",
            Self::Stalled => "stalled",
        }
    }

    /// The status of a loop whose journal ends like this.
    pub fn from_finish(finish: Finish) -> Self {
        match finish {
            Finish::Complete => Self::Complete,
            Finish::MaxIterations => Self::ReachedLimit,
            Finish::Manual | Finish::HookAbort => Self::Stopped,
            Finish::Stalled | Finish::NoChanges => Self::Stalled,
            Finish::Blocked | Finish::Error | Finish::Budget | Finish::Timeout => Self::Blocked,
        }
    }

    /// The corresponding finish in the journal.
    pub fn finish(self) -> Finish {
        match self {
            Self::Complete => Finish::Complete,
            Self::ReachedLimit => Finish::MaxIterations,
            Self::Active | Self::HandedOver | Self::Stopped => Finish::Manual,
            Self::Blocked => Finish::Blocked,
            Self::Stalled => Finish::Stalled,
        }
    }
}

impl HeldLoop {
    pub fn is_active(&self) -> bool {
        self.status == LoopStatus::Active
    }
}

impl GateCount {
    /// Counts the tree and the reasons of this Stop. Returns how often in a row they were the same.
    pub fn count_same(&mut self, tree: &str, reasons: &str) -> u32 {
        let key = format!("{tree} {reasons}");
        if self.same.key == key {
            self.same.times = self.same.times.saturating_add(1);
        } else {
            self.same = RepeatedBlock { key, times: 1 };
        }
        self.same.times
    }

    /// Counts a decision. A wait for a running verification is no block.
    pub fn count_decision(&mut self, decision: &StopDecision) {
        match decision {
            StopDecision::Block { cause: BlockCause::Verifying, .. } => self.waits += 1,
            StopDecision::Block { .. } => (self.blocks, self.waits, self.let_go) = (self.blocks + 1, 0, None),
            StopDecision::Yield { why } => (self.waits, self.let_go) = (0, Some(why.describe())),
        }
    }
}

/// The rules of a run, as far as they make sense in a session that Verdone did not start. The gate itself limits how long it holds a
/// session, and nothing is ever reset, so an attempt lasts until its story is settled.
pub fn rules(config: &Config) -> Rules {
    let limits = Limits {
        max_iterations: 0,
        attempts: 0,
        turns: 0,
        total_time: Span::from_secs(0),
        consecutive_failures: 0,
        no_changes: 0,
        no_progress: 0,
        crashes: 0,
        cost_usd: Usd::whole(0),
        ..config.limits.clone()
    };
    Rules {
        limits,
        red_check: config.red_check,
        red_baseline: true,
        fail_behavior: FailBehavior::default(),
        land_each: false,
        pause_at: 0,
        on_review: OnReview::Continue,
        regression: config.regression.clone(),
    }
}
