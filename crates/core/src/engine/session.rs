//! The Stop gate: decides whether a session that Verdone did not start may end its turn. Pure: takes facts, returns one decision
//! with its reason.
//!
//! Nothing that an agent writes can open it. It also lets a session go for other, named reasons, so that it never holds one
//! forever.

mod check_output;
mod context;
mod finding;
mod frozen;
mod held_loop;
mod learn;
mod leftovers;
mod messages;
mod plan_drift;
mod record;

pub use crate::config::{OnContext, StopMode, StopSettings, TeamGates};
pub use crate::hook::StopRecord;
pub use check_output::{meaningful, places};
pub use context::{Tail, tail_of, window_of};
pub use finding::{Finding, seen_on_tree, stands};
pub use frozen::FrozenSettings;
pub use held_loop::{Base, Frozen, GateCount, HeldLoop, Incomplete, LOOP_VERSION, LoopStatus, RepeatedBlock, rules};
pub use learn::StopTeaching;
pub use leftovers::{Litter, decide_by_litter, may_be_wanted};
pub use messages::{LONGEST, debris_words, fault_words, incomplete_words, loop_words};
pub use plan_drift::{PlanDrift, find_plan_drift, remaining};
pub use record::{CauseTally, StopTally};

use serde::{Deserialize, Serialize};

use crate::agent::claude::{ContextLimits, ContextUse};
use crate::base::id::StoryId;
use crate::check::CheckRun;
use crate::hook::Answer;
use crate::verify::{Proof, StoryResult};

/// What is known when a turn is about to end.
#[derive(Debug, Clone, PartialEq)]
pub struct StopFacts {
    pub holder: Holder,
    /// According to the client, the turn continues because of an earlier block.
    pub active: bool,
    /// Descriptions of background tasks that will wake the agent.
    pub background: Vec<String>,
    /// The user's pause file exists.
    pub paused: bool,
    /// The error, if the model's last answer was one.
    pub api_error: Option<String>,
    pub context: Option<ContextUse>,
    /// What the agent and the user should know, whatever the decision is.
    pub notes: Vec<String>,
    pub work: Work,
}

impl StopFacts {
    /// Only the holder is known.
    pub fn new(holder: Holder) -> Self {
        Self {
            holder,
            active: false,
            background: Vec::new(),
            paused: false,
            api_error: None,
            context: None,
            notes: Vec::new(),
            work: Work::Unknown,
        }
    }
}

/// Who holds the session, if anyone.
#[derive(Debug, Clone, PartialEq)]
pub enum Holder {
    /// No one: Verdone does not hold this session.
    Nobody,
    /// The session's loop has ended.
    Ended(LoopStatus),
    Loop(LoopCounters),
    /// A state file of another tool says that the work is not done.
    OtherTool,
}

/// The counters of a loop.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoopCounters {
    pub task: String,
    /// Number of blocks so far, and the maximum.
    pub blocks: u32,
    pub max_blocks: u32,
    /// How often in a row the tree and the reasons have been the same, including this time.
    pub same: u32,
    /// The command that continues the work elsewhere.
    pub goes_on: String,
    /// Whether there is a `progress.txt` to read.
    pub has_progress: bool,
}

/// What is left to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "one is made for a Stop, and none is kept in a list")]
pub enum Work {
    /// Not checked yet.
    Unknown,
    /// Every story is done. Without a plan there are none.
    Complete {
        proofs: Vec<Proof>,
    },
    /// The loop is over, and the agent cannot do the remaining work.
    Blocked {
        status: LoopStatus,
        why: String,
    },
    /// There is nothing to verify.
    Nothing {
        why: String,
    },
    /// A verification is running. The Stop waited for it, but it has not finished.
    Verifying {
        checks: Vec<String>,
        seconds: u64,
        waits: u32,
    },
    Open(Open),
}

/// Work that is not done.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Open {
    /// Results of stories that were just settled.
    pub settled: Vec<(StoryId, StoryResult)>,
    /// Checks that did not pass.
    pub failed: Vec<CheckRun>,
    /// What else is missing, as text.
    pub missing: Vec<(BlockCause, String)>,
    /// What to do about it, one line each.
    pub advice: Vec<String>,
    /// The story to work on.
    pub story: Option<StoryToDo>,
    /// Further stories, the next ones first.
    pub stories: Vec<(StoryId, String)>,
    /// Unfinished tasks on the agent's own list.
    pub tasks: Vec<String>,
}

/// A story as described in a block.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoryToDo {
    pub id: String,
    pub title: String,
    pub steps: Vec<String>,
    pub checks: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum StopDecision {
    /// The turn continues. The agent reads the reason.
    Block { cause: BlockCause, reason: String },
    /// The turn may end.
    Yield { why: ReleaseReason },
}

/// Why a turn continues, for statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BlockCause {
    CheckFailed,
    NothingChanged,
    NextStory,
    StoryGone,
    /// A story was added later, the user has not accepted it, and nothing else verifies it.
    Unaccepted,
    Tasks,
    OtherTool,
    /// A condition of `[done]` is not met.
    Condition,
    /// Files outside the story's scope were changed.
    OutOfScope,
    /// The checks pass, but a person has to review the work.
    Doubt,
    Debris,
    /// Changes are not committed, which the state file of an orchestrator asks for.
    Uncommitted,
    Verifying,
    Fault,
}

/// Why a turn may end.
#[derive(Debug, Clone, PartialEq)]
pub enum ReleaseReason {
    Foreign,
    Off,
    Ended(LoopStatus),
    NothingToVerify {
        why: String,
    },
    Background {
        tasks: Vec<String>,
    },
    ApiFailure {
        error: String,
    },
    Paused,
    /// Mode `once`: the session was already held once.
    HeldOnce,
    Context {
        tokens: u64,
        most: u64,
        goes_on: String,
        spawn: bool,
    },
    Same {
        times: u32,
        reason: String,
    },
    /// `REACHED_LIMIT`.
    Limit {
        blocks: u32,
        remaining: Vec<String>,
    },
    Complete {
        proofs: Vec<Proof>,
    },
    /// The remaining work needs a person.
    Blocked {
        status: LoopStatus,
        why: String,
    },
    /// The end of a part of the work that is not a turn. Nothing that can be determined now is open; `gates` gates are green.
    NothingLeft {
        gates: usize,
    },
    /// A session with an orchestrator's state file: all is committed, and its gates pass.
    Checked {
        gates: usize,
    },
    /// The verification took longer than the gate waits.
    StillVerifying {
        waits: u32,
    },
    /// The gate itself failed.
    Fault {
        times: u32,
        cause: String,
    },
    /// The end of a compaction, or of a subagent that Verdone does not hold.
    NotOurs,
}

/// How often to wait for a running verification. The settings say how long each wait is.
pub const MOST_WAITS: u32 = 30;
/// How often in a row a fault of the gate itself may hold a session.
pub const MOST_FAULTS: u32 = 3;

impl StopSettings {
    /// The mode for this holder.
    pub fn mode_for(&self, holder: &Holder) -> StopMode {
        match (holder, self.mode) {
            // The other tool's files may be wrong forever, and Verdone cannot verify them.
            (Holder::OtherTool, StopMode::UntilDone) => StopMode::Once,
            (Holder::OtherTool | Holder::Nobody | Holder::Ended(_) | Holder::Loop(_), mode) => mode,
        }
    }
}

/// Decides what can be decided without looking at the work.
pub fn decide_without_work(facts: &StopFacts, settings: &StopSettings) -> Option<ReleaseReason> {
    match (&facts.holder, settings.mode_for(&facts.holder)) {
        (Holder::Nobody, _) => return Some(ReleaseReason::Foreign),
        (Holder::Ended(status), _) => return Some(ReleaseReason::Ended(*status)),
        (Holder::Loop(_) | Holder::OtherTool, StopMode::Off) => return Some(ReleaseReason::Off),
        (Holder::Loop(_) | Holder::OtherTool, StopMode::UntilDone | StopMode::Once) => {}
    }
    if facts.paused {
        return Some(ReleaseReason::Paused);
    }
    if !facts.background.is_empty() {
        return Some(ReleaseReason::Background { tasks: facts.background.clone() });
    }
    facts.api_error.clone().map(|error| ReleaseReason::ApiFailure { error })
}

/// Decides whether the turn may end.
pub fn decide(facts: &StopFacts, settings: &StopSettings) -> StopDecision {
    decide_without_work(facts, settings).map_or_else(|| decide_by_work(facts, settings), |why| StopDecision::Yield { why })
}

fn decide_by_work(facts: &StopFacts, settings: &StopSettings) -> StopDecision {
    let yields = |why| StopDecision::Yield { why };
    let held = match &facts.holder {
        Holder::Loop(held) => held.clone(),
        Holder::Nobody | Holder::Ended(_) | Holder::OtherTool => {
            LoopCounters { max_blocks: settings.max_blocks, ..LoopCounters::default() }
        }
    };
    // Finished work counts as finished, however full the context is.
    let open = match &facts.work {
        Work::Complete { proofs } => return yields(ReleaseReason::Complete { proofs: proofs.clone() }),
        Work::Blocked { status, why } => return yields(ReleaseReason::Blocked { status: *status, why: why.clone() }),
        Work::Nothing { why } => return yields(ReleaseReason::NothingToVerify { why: why.clone() }),
        Work::Unknown => return yields(ReleaseReason::NothingToVerify { why: "the work was not examined".to_owned() }),
        Work::Verifying { .. } => None,
        Work::Open(open) => Some(open),
    };
    if facts.active && settings.mode_for(&facts.holder) == StopMode::Once {
        return yields(ReleaseReason::HeldOnce);
    }
    if let Some((tokens, most)) = context_is_full(facts.context, settings) {
        let spawn = settings.on_context == OnContext::Spawn;
        return yields(ReleaseReason::Context { tokens, most, goes_on: held.goes_on, spawn });
    }
    if held.max_blocks > 0 && held.blocks >= held.max_blocks {
        let remaining = open.map(remaining_ids).unwrap_or_default();
        return yields(ReleaseReason::Limit { blocks: held.blocks, remaining });
    }
    let Some(open) = open else {
        let Work::Verifying { checks, seconds, waits } = &facts.work else { return yields(ReleaseReason::NotOurs) };
        if *waits >= MOST_WAITS {
            return yields(ReleaseReason::StillVerifying { waits: *waits });
        }
        return StopDecision::Block { cause: BlockCause::Verifying, reason: messages::verifying(checks, *seconds) };
    };
    let cause = cause_of(open);
    if settings.same_limit > 0 && held.same >= settings.same_limit {
        return yields(ReleaseReason::Same { times: held.same, reason: messages::in_short(open) });
    }
    StopDecision::Block { cause, reason: messages::block(&held, open, &facts.notes) }
}

fn context_is_full(context: Option<ContextUse>, settings: &StopSettings) -> Option<(u64, u64)> {
    let context = context?;
    let limits = ContextLimits { tokens: settings.context_tokens, share: settings.context_percent };
    let most = limits.most(context.window)?;
    (context.tokens >= most).then_some((context.tokens, most))
}

/// The first cause that a block mentions.
pub fn cause_of(open: &Open) -> BlockCause {
    if !open.failed.is_empty() {
        return BlockCause::CheckFailed;
    }
    match open.missing.first() {
        Some((cause, _)) => *cause,
        None if open.story.is_some() => BlockCause::NextStory,
        None => BlockCause::Tasks,
    }
}

fn remaining_ids(open: &Open) -> Vec<String> {
    let story = open.story.iter().map(|story| story.id.clone());
    story.chain(open.stories.iter().map(|(id, _)| id.to_string())).chain(open.tasks.iter().cloned()).collect()
}

/// Identifies the open work by what is missing. Compared from one Stop to the next.
pub fn reasons_of(open: &Open) -> String {
    let failed = open.failed.iter().map(|run| format!("{}\n{}", run.name, run.outcome.describe()));
    let missing = open.missing.iter().map(|(_, words)| words.clone());
    let story = open.story.iter().map(|story| story.id.clone());
    let text: Vec<String> = failed.chain(missing).chain(story).chain(open.tasks.iter().cloned()).collect();
    crate::base::id::digest(text.join("\0").as_bytes())
}

impl ReleaseReason {
    /// The name in records and statistics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Foreign => "foreign",
            Self::Off => "off",
            Self::Ended(_) => "ended",
            Self::NothingToVerify { .. } => "nothing_to_verify",
            Self::Background { .. } => "background",
            Self::ApiFailure { .. } => "api_failure",
            Self::Paused => "paused",
            Self::HeldOnce => "held_once",
            Self::Context { .. } => "context",
            Self::Same { .. } => "same",
            Self::Limit { .. } => "reached_limit",
            Self::Complete { .. } => "complete",
            Self::Blocked { .. } => "blocked",
            Self::NothingLeft { .. } => "nothing_left",
            Self::Checked { .. } => "checked",
            Self::StillVerifying { .. } => "still_verifying",
            Self::Fault { .. } => "fault",
            Self::NotOurs => "not_ours",
        }
    }

    /// The reason, for the log.
    pub fn describe(&self) -> String {
        messages::yields(self)
    }

    /// What the user should see at once; `None` if it would only be noise.
    pub fn told(&self) -> Option<String> {
        match self {
            Self::Foreign
            | Self::Off
            | Self::Ended(_)
            | Self::Background { .. }
            | Self::HeldOnce
            | Self::NothingLeft { .. }
            | Self::Checked { .. }
            | Self::NotOurs => None,
            Self::NothingToVerify { .. }
            | Self::ApiFailure { .. }
            | Self::Paused
            | Self::Context { .. }
            | Self::Same { .. }
            | Self::Limit { .. }
            | Self::Complete { .. }
            | Self::Blocked { .. }
            | Self::StillVerifying { .. }
            | Self::Fault { .. } => Some(format!("Verdone: {}", messages::yields(self))),
        }
    }

    /// The final status of the loop, if this ends it.
    pub fn ends_loop(&self) -> Option<LoopStatus> {
        match self {
            Self::Complete { .. } => Some(LoopStatus::Complete),
            Self::Blocked { status, .. } => Some(*status),
            Self::Limit { .. } => Some(LoopStatus::ReachedLimit),
            Self::Context { spawn: true, .. } => Some(LoopStatus::HandedOver),
            Self::Foreign
            | Self::Off
            | Self::Ended(_)
            | Self::NothingToVerify { .. }
            | Self::Background { .. }
            | Self::ApiFailure { .. }
            | Self::Paused
            | Self::HeldOnce
            | Self::Context { .. }
            | Self::Same { .. }
            | Self::NothingLeft { .. }
            | Self::Checked { .. }
            | Self::StillVerifying { .. }
            | Self::Fault { .. }
            | Self::NotOurs => None,
        }
    }
}

impl StopDecision {
    /// The answer with additional notes. A block already contains them.
    pub fn answer_with(&self, event: &str, notes: &[String]) -> Answer {
        match (self.answer(event), self) {
            (Answer::Tell { text }, _) => Answer::Tell { text: messages::with_notes(text, notes) },
            // In a session that is not held, report only the notes.
            (Answer::Silent, Self::Yield { why: why @ (ReleaseReason::Foreign | ReleaseReason::Ended(_)) })
                if event == "Stop" && !notes.is_empty() =>
            {
                Answer::Tell { text: messages::with_notes(format!("Verdone: {}", why.describe()), notes) }
            }
            (other, _) => other,
        }
    }

    /// The answer in the form that the client expects for this event: two events ignore JSON and obey only an exit code.
    pub fn answer(&self, event: &str) -> Answer {
        match self {
            Self::Block { reason, .. } if matches!(event, "TaskCompleted" | "TeammateIdle") => {
                Answer::Refuse { reason: reason.clone() }
            }
            Self::Block { reason, .. } => Answer::Block { reason: reason.clone() },
            Self::Yield { why } if event == "Stop" => why.told().map_or(Answer::Silent, |text| Answer::Tell { text }),
            Self::Yield { .. } => Answer::Silent,
        }
    }
}

impl BlockCause {
    pub fn name(self) -> &'static str {
        match self {
            Self::CheckFailed => "check_failed",
            Self::NothingChanged => "nothing_changed",
            Self::NextStory => "next_story",
            Self::StoryGone => "story_gone",
            Self::Unaccepted => "unaccepted",
            Self::Tasks => "tasks",
            Self::OtherTool => "other_tool",
            Self::Condition => "condition",
            Self::OutOfScope => "out_of_scope",
            Self::Doubt => "doubt",
            Self::Debris => "debris",
            Self::Uncommitted => "uncommitted",
            Self::Verifying => "verifying",
            Self::Fault => "fault",
        }
    }
}

#[cfg(test)]
mod tests;
