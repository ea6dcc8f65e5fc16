//! The causes of a block as lessons, for those that keep blocking.

use super::{BlockCause, ReleaseReason, StopDecision, StopFacts, Work};
use crate::check::lessons::{Kind, Lesson};

/// What a decision of the Stop gate teaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopTeaching {
    /// These causes blocked the session.
    Blocked(Vec<Lesson>),
    /// The user lets the session go, whatever blocked it before.
    Overridden,
    Nothing,
}

impl StopTeaching {
    pub fn from_decision(facts: &StopFacts, decision: &StopDecision) -> Self {
        match decision {
            StopDecision::Block { cause, .. } => match causes(*cause, facts) {
                causes if causes.is_empty() => Self::Nothing,
                causes => Self::Blocked(causes),
            },
            StopDecision::Yield { why } if is_override(why) => Self::Overridden,
            StopDecision::Yield { .. } => Self::Nothing,
        }
    }
}

fn causes(cause: BlockCause, facts: &StopFacts) -> Vec<Lesson> {
    let failed = || match &facts.work {
        Work::Open(open) => open.failed.iter().map(|run| Lesson::new(Kind::StopCheck).with_check(&run.name)).collect(),
        Work::Unknown | Work::Complete { .. } | Work::Blocked { .. } | Work::Nothing { .. } | Work::Verifying { .. } => {
            Vec::new()
        }
    };
    let one = |kind| vec![Lesson::new(kind)];
    match cause {
        BlockCause::CheckFailed => failed(),
        BlockCause::NothingChanged => one(Kind::StopUnchanged),
        BlockCause::Tasks => one(Kind::StopTasks),
        BlockCause::Condition => one(Kind::StopCondition),
        BlockCause::OutOfScope => one(Kind::StopOutOfScope),
        BlockCause::Doubt => one(Kind::StopDoubt),
        BlockCause::Debris => one(Kind::StopDebris),
        BlockCause::Uncommitted => one(Kind::StopUncommitted),
        // The next story is no failure, and the agent could do nothing about the others.
        BlockCause::NextStory
        | BlockCause::StoryGone
        | BlockCause::Unaccepted
        | BlockCause::OtherTool
        | BlockCause::Verifying
        | BlockCause::Fault => Vec::new(),
    }
}

/// Whether the user paused the gate or switched it off. Ending the loop is a command.
fn is_override(why: &ReleaseReason) -> bool {
    match why {
        ReleaseReason::Paused | ReleaseReason::Off => true,
        ReleaseReason::Ended(_)
        | ReleaseReason::Foreign
        | ReleaseReason::NothingToVerify { .. }
        | ReleaseReason::Background { .. }
        | ReleaseReason::ApiFailure { .. }
        | ReleaseReason::HeldOnce
        | ReleaseReason::Context { .. }
        | ReleaseReason::Same { .. }
        | ReleaseReason::Limit { .. }
        | ReleaseReason::Complete { .. }
        | ReleaseReason::Blocked { .. }
        | ReleaseReason::NothingLeft { .. }
        | ReleaseReason::Checked { .. }
        | ReleaseReason::StillVerifying { .. }
        | ReleaseReason::Fault { .. }
        | ReleaseReason::NotOurs => false,
    }
}
