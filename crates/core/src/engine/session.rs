//! The Stop gate: whether a session that Verdone did not start may end its turn. Pure: what was seen comes in as facts, and one
//! decision with its reason goes out.
//!
//! Nothing that an agent wrote opens it. It lets go for reasons of its own too, each with a name, so that it never holds a session
//! for ever.

mod context;
mod finding;
mod frozen;
mod held_loop;
mod output;
mod record;
mod survey;
mod words;

pub use crate::config::{OnContext, StopMode, StopSettings};
pub use crate::hook::StopRecord;
pub use context::{Tail, tail_of, window_of};
pub use finding::{Finding, seen_on_tree, stands};
pub use frozen::FrozenSettings;
pub use held_loop::{Base, Frozen, GateCount, HeldLoop, Incomplete, LOOP_VERSION, LoopStatus, Same, rules};
pub use output::{meaningful, places};
pub use record::{CauseTally, StopTally};
pub use survey::{Survey, remaining, survey};
pub use words::{LONGEST, debris_words, fault_words, incomplete_words, loop_words};

use serde::{Deserialize, Serialize};

use crate::agent::claude::{ContextLimits, ContextUse};
use crate::base::id::StoryId;
use crate::check::CheckRun;
use crate::done::debris::Debris;
use crate::hook::Answer;
use crate::verify::{Proof, StoryResult};

/// What is known when a turn is about to end.
#[derive(Debug, Clone, PartialEq)]
pub struct StopFacts {
    pub holder: Holder,
    /// The turn goes on because of an earlier block, as the client says.
    pub active: bool,
    /// Tasks in the background that will wake the agent, in words.
    pub background: Vec<String>,
    /// The user's pause file is there.
    pub paused: bool,
    /// The last answer of the model was an error.
    pub api_error: Option<String>,
    pub context: Option<ContextUse>,
    /// What the agent and the user should know, whatever is decided.
    pub notes: Vec<String>,
    pub work: Work,
}

impl StopFacts {
    /// Nothing is known but who holds the session.
    pub fn of(holder: Holder) -> Self {
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

/// Who wants the session held.
#[derive(Debug, Clone, PartialEq)]
pub enum Holder {
    /// Nobody: the session is none of ours.
    Nobody,
    /// Its loop has ended.
    Ended(LoopStatus),
    Loop(Held),
    /// A state file of another tool says that it is not done.
    OtherTool,
}

/// A loop's own numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Held {
    pub task: String,
    /// Blocks so far, and how many there may be.
    pub blocks: u32,
    pub max_blocks: u32,
    /// How often in a row the tree and the reasons have been these, this time included.
    pub same: u32,
    /// The command that would go on elsewhere.
    pub goes_on: String,
    /// Whether there is a `progress.txt` to read.
    pub has_progress: bool,
}

/// What is left to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "one is made for a Stop, and none is kept in a list")]
pub enum Work {
    /// Not looked at yet.
    Unknown,
    /// Every story is done. Without a plan there is none.
    Complete {
        proofs: Vec<Proof>,
    },
    /// The loop is over, and work is left that the agent cannot do.
    Blocked {
        status: LoopStatus,
        why: String,
    },
    /// There is nothing that could be verified.
    Nothing {
        why: String,
    },
    /// A verification is under way, and was waited for.
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
    /// What stories came to just now.
    pub settled: Vec<(StoryId, StoryResult)>,
    /// Checks that did not pass.
    pub failed: Vec<CheckRun>,
    /// What else is missing, in words.
    pub missing: Vec<(BlockCause, String)>,
    /// What to do about it, a line each.
    pub advice: Vec<String>,
    /// The story to work on.
    pub story: Option<StoryToDo>,
    /// Further stories, first the ones that are next.
    pub stories: Vec<(StoryId, String)>,
    /// Tasks of the agent's own list that it has not completed.
    pub tasks: Vec<String>,
}

/// What should not be left in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Litter {
    pub path: String,
    pub debris: Debris,
}

/// A story as a block names it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoryToDo {
    pub id: String,
    pub title: String,
    pub steps: Vec<String>,
    pub checks: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum StopDecision {
    /// The turn goes on; the agent reads the reason.
    Block { cause: BlockCause, reason: String },
    /// The turn may end.
    Yield { why: Yield },
}

/// Why a turn goes on, for counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BlockCause {
    CheckFailed,
    NothingChanged,
    NextStory,
    StoryGone,
    /// The user has not accepted a story that came later, and nothing else verifies it.
    Unaccepted,
    Tasks,
    OtherTool,
    /// A condition of `[done]` does not hold.
    Condition,
    /// Files outside of the story's scope were changed.
    OutOfScope,
    /// The checks pass, but a person would have to look at it.
    Doubt,
    Debris,
    Verifying,
    Fault,
}

/// Why a turn may end.
#[derive(Debug, Clone, PartialEq)]
pub enum Yield {
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
    /// Mode `once`: it was held once already.
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
    /// The rest needs a person.
    Blocked {
        status: LoopStatus,
        why: String,
    },
    /// A part of the work that is no turn: what can be told of it now leaves nothing open, `gates` of them green.
    NothingLeft {
        gates: usize,
    },
    /// The verification took longer than anybody waits.
    StillVerifying {
        waits: u32,
    },
    /// The gate itself is broken.
    Fault {
        times: u32,
        cause: String,
    },
    /// The end of a compaction, or of a subagent that is none of ours to hold.
    NotOurs,
}

/// A verification that is under way is waited for this often; each time is as long as the settings say.
pub const MOST_WAITS: u32 = 30;
/// A fault of the gate itself holds a session at most this often in a row.
pub const MOST_FAULTS: u32 = 3;

impl StopSettings {
    /// The mode for who holds the session.
    pub fn mode_for(&self, holder: &Holder) -> StopMode {
        match (holder, self.mode) {
            // Its files can be wrong for ever, and nothing of theirs can be verified.
            (Holder::OtherTool, StopMode::UntilDone) => StopMode::Once,
            (Holder::OtherTool | Holder::Nobody | Holder::Ended(_) | Holder::Loop(_), mode) => mode,
        }
    }
}

/// What can be said before anybody looks at the work.
pub fn early(facts: &StopFacts, settings: &StopSettings) -> Option<Yield> {
    match (&facts.holder, settings.mode_for(&facts.holder)) {
        (Holder::Nobody, _) => return Some(Yield::Foreign),
        (Holder::Ended(status), _) => return Some(Yield::Ended(*status)),
        (Holder::Loop(_) | Holder::OtherTool, StopMode::Off) => return Some(Yield::Off),
        (Holder::Loop(_) | Holder::OtherTool, StopMode::UntilDone | StopMode::Once) => {}
    }
    if facts.paused {
        return Some(Yield::Paused);
    }
    if !facts.background.is_empty() {
        return Some(Yield::Background { tasks: facts.background.clone() });
    }
    facts.api_error.clone().map(|error| Yield::ApiFailure { error })
}

/// Decides it.
pub fn decide(facts: &StopFacts, settings: &StopSettings) -> StopDecision {
    early(facts, settings).map_or_else(|| late(facts, settings), |why| StopDecision::Yield { why })
}

fn late(facts: &StopFacts, settings: &StopSettings) -> StopDecision {
    let yields = |why| StopDecision::Yield { why };
    let held = match &facts.holder {
        Holder::Loop(held) => held.clone(),
        Holder::Nobody | Holder::Ended(_) | Holder::OtherTool => Held { max_blocks: settings.max_blocks, ..Held::default() },
    };
    // What is done is done, however full the context is.
    let open = match &facts.work {
        Work::Complete { proofs } => return yields(Yield::Complete { proofs: proofs.clone() }),
        Work::Blocked { status, why } => return yields(Yield::Blocked { status: *status, why: why.clone() }),
        Work::Nothing { why } => return yields(Yield::NothingToVerify { why: why.clone() }),
        Work::Unknown => return yields(Yield::NothingToVerify { why: "the work was not looked at".to_owned() }),
        Work::Verifying { .. } => None,
        Work::Open(open) => Some(open),
    };
    if facts.active && settings.mode_for(&facts.holder) == StopMode::Once {
        return yields(Yield::HeldOnce);
    }
    if let Some((tokens, most)) = context_is_full(facts.context, settings) {
        let spawn = settings.on_context == OnContext::Spawn;
        return yields(Yield::Context { tokens, most, goes_on: held.goes_on, spawn });
    }
    if held.max_blocks > 0 && held.blocks >= held.max_blocks {
        let remaining = open.map(remaining_ids).unwrap_or_default();
        return yields(Yield::Limit { blocks: held.blocks, remaining });
    }
    let Some(open) = open else {
        let Work::Verifying { checks, seconds, waits } = &facts.work else { return yields(Yield::NotOurs) };
        if *waits >= MOST_WAITS {
            return yields(Yield::StillVerifying { waits: *waits });
        }
        return StopDecision::Block { cause: BlockCause::Verifying, reason: words::verifying(checks, *seconds) };
    };
    let cause = cause_of(open);
    if settings.same_limit > 0 && held.same >= settings.same_limit {
        return yields(Yield::Same { times: held.same, reason: words::in_short(open) });
    }
    StopDecision::Block { cause, reason: words::block(&held, open, &facts.notes) }
}

fn context_is_full(context: Option<ContextUse>, settings: &StopSettings) -> Option<(u64, u64)> {
    let context = context?;
    let limits = ContextLimits { tokens: settings.context_tokens, share: settings.context_percent };
    let most = limits.most(context.window)?;
    (context.tokens >= most).then_some((context.tokens, most))
}

/// The first of what a block says.
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

/// The same work with the same things missing: what is compared from one Stop to the next.
pub fn reasons_of(open: &Open) -> String {
    let failed = open.failed.iter().map(|run| format!("{}\n{}", run.name, run.outcome.words()));
    let missing = open.missing.iter().map(|(_, words)| words.clone());
    let story = open.story.iter().map(|story| story.id.clone());
    let text: Vec<String> = failed.chain(missing).chain(story).chain(open.tasks.iter().cloned()).collect();
    crate::base::id::digest(text.join("\0").as_bytes())
}

impl Yield {
    /// The name in records and for counting.
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
            Self::StillVerifying { .. } => "still_verifying",
            Self::Fault { .. } => "fault",
            Self::NotOurs => "not_ours",
        }
    }

    /// Why, for the log.
    pub fn words(&self) -> String {
        words::yields(self)
    }

    /// What the user should see at once; nothing where it would only be noise.
    pub fn told(&self) -> Option<String> {
        match self {
            Self::Foreign
            | Self::Off
            | Self::Ended(_)
            | Self::Background { .. }
            | Self::HeldOnce
            | Self::NothingLeft { .. }
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
            | Self::Fault { .. } => Some(format!("Verdone: {}", words::yields(self))),
        }
    }

    /// What becomes of the loop.
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
            | Self::StillVerifying { .. }
            | Self::Fault { .. }
            | Self::NotOurs => None,
        }
    }
}

impl StopDecision {
    /// The same with what else is to be told. A block says it already.
    pub fn answer_with(&self, event: &str, notes: &[String]) -> Answer {
        match (self.answer(event), self) {
            (Answer::Tell { text }, _) => Answer::Tell { text: words::with_notes(text, notes) },
            // Nothing is said in a session that nobody holds, but for what was found there.
            (Answer::Silent, Self::Yield { why: why @ (Yield::Foreign | Yield::Ended(_)) })
                if event == "Stop" && !notes.is_empty() =>
            {
                Answer::Tell { text: words::with_notes(format!("Verdone: {}", why.words()), notes) }
            }
            (other, _) => other,
        }
    }

    /// As the client hears it on this event: two of them obey no object, only an exit code.
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
            Self::Verifying => "verifying",
            Self::Fault => "fault",
        }
    }
}

#[cfg(test)]
mod tests;
