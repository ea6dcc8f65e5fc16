//! A loop as it is kept from one Stop to the next, outside of the work tree: what was fixed when it began, and what the gate counts.
//! What became of its stories is in its journal and nowhere else.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::FrozenSettings;
use crate::base::finish::Finish;
use crate::base::id::{Oid, RunId, StoryId};
use crate::base::money::Usd;
use crate::base::span::Span;
use crate::check::CommandSpec;
use crate::config::{Config, FailBehavior, Limits, OnReview};
use crate::engine::run::Rules;
use crate::journal::event::Checkpoint;
use crate::verify::Proof;

/// A file of a later version is not ours to write. Version 1 had no journal.
pub const LOOP_VERSION: u32 = 2;

/// One loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeldLoop {
    pub version: u32,
    /// Where its journal is.
    pub run: RunId,
    pub status: LoopStatus,
    pub task: String,
    /// The plan, absolute; nothing where the gates alone decide.
    pub plan: Option<String>,
    pub started_at: String,
    pub max_blocks: u32,
    pub settings: FrozenSettings,
    /// The work tree when the loop began.
    pub base: Base,
    /// The same for commits, where stories are committed: what was changed and untracked then is the user's.
    pub checkpoint: Option<Checkpoint>,
    /// Stories that were open when the loop began, with what was frozen of each.
    pub stories: BTreeMap<StoryId, Frozen>,
    /// Stories that were marked as done when the loop began: claimed, and left alone.
    pub done_before: BTreeSet<StoryId>,
    /// What the gate counts: it never writes the journal.
    pub gate: GateCount,
}

/// What the gate remembers of its own answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GateCount {
    pub blocks: u32,
    /// Stops that waited for a verification in vain, in a row.
    pub waits: u32,
    pub same: Same,
    /// The finding that the agent was told last.
    pub told: Option<String>,
    /// Why the session was let go last.
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
    /// By the user.
    Stopped,
    /// Only stories are left that need a person.
    Blocked,
    /// A story was broken a second time.
    Stalled,
}

/// A story as it was when the loop began, or when the user accepted it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frozen {
    pub title: String,
    #[serde(default)]
    pub checks: Vec<CommandSpec>,
    /// The paths that it may change, as the plan says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<String>,
    /// How complex the plan says it is: an agent may raise that, never lower it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complexity: Option<u8>,
    /// The weakest proof that makes it done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    /// What its markers said, where that is not just open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<String>,
    /// It was not open when the loop began, and the user has not accepted it: nothing that it says runs or excuses anything.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unaccepted: bool,
}

/// A tree that later ones are compared with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    pub key: String,
    /// The commit that HEAD was then: lines added since are the session's.
    pub head: Option<Oid>,
    /// The same before and after a commit.
    pub content: String,
}

/// The last tree and reasons, and how often in a row.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Same {
    pub key: String,
    pub times: u32,
}

/// A session that ended with work open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incomplete {
    pub session: String,
    pub story: Option<String>,
    pub task: String,
    pub reason: String,
    pub at: String,
    /// A later session was told.
    #[serde(default)]
    pub told: bool,
}

impl LoopStatus {
    pub fn words(self) -> &'static str {
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

    /// How a loop ended whose journal says this.
    pub fn of(finish: Finish) -> Self {
        match finish {
            Finish::Complete => Self::Complete,
            Finish::MaxIterations => Self::ReachedLimit,
            Finish::Manual | Finish::HookAbort => Self::Stopped,
            Finish::Stalled | Finish::NoChanges => Self::Stalled,
            Finish::Blocked | Finish::Error | Finish::Budget | Finish::Timeout => Self::Blocked,
        }
    }

    /// What its journal says then.
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
    /// Counts the tree and the reasons of this Stop; says how often in a row they were these.
    pub fn count_same(&mut self, tree: &str, reasons: &str) -> u32 {
        let key = format!("{tree} {reasons}");
        if self.same.key == key {
            self.same.times = self.same.times.saturating_add(1);
        } else {
            self.same = Same { key, times: 1 };
        }
        self.same.times
    }
}

/// The rules of a run, as far as they make sense in a session that Verdone did not start: the gate itself limits how long it holds, and
/// nothing is ever reset, so an attempt lasts until its story is settled.
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
