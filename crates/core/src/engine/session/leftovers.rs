//! Ends that only leftovers in the added lines can prevent: of a task, and of a teammate's work.

use super::{
    BlockCause, Holder, LoopCounters, ReleaseReason, StopDecision, StopFacts, StopSettings, debris_words, decide_without_work,
};
use crate::done::debris::{Debris, DebrisKind};

/// Debris left in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Litter {
    pub path: String,
    pub debris: Debris,
}

/// Whether all of it may be wanted: only the author knows which output is meant for users.
pub fn may_be_wanted(found: &[Litter]) -> bool {
    found.iter().all(|litter| litter.debris.kind == DebrisKind::Print)
}

/// Decides whether a task or a teammate's work may end. The counters of the holder say how often the end was prevented before.
pub fn decide_by_litter(found: &[Litter], facts: &StopFacts, settings: &StopSettings) -> StopDecision {
    let yields = |why| StopDecision::Yield { why };
    if let Some(why) = decide_without_work(facts, settings) {
        return yields(why);
    }
    if found.is_empty() {
        return yields(ReleaseReason::NothingLeft { gates: 0 });
    }
    let held = match &facts.holder {
        Holder::Loop(held) => held.clone(),
        Holder::Nobody | Holder::Ended(_) | Holder::OtherTool => LoopCounters::default(),
    };
    if held.max_blocks > 0 && held.blocks >= held.max_blocks {
        return yields(ReleaseReason::Limit { blocks: held.blocks, remaining: Vec::new() });
    }
    if settings.same_limit > 0 && held.same >= settings.same_limit {
        return yields(ReleaseReason::Same { times: held.same, reason: "debugging is left in the code".to_owned() });
    }
    StopDecision::Block { cause: BlockCause::Debris, reason: debris_words(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn litter(kind: DebrisKind) -> Litter {
        Litter { path: "a.py".to_owned(), debris: Debris { kind, line: 1, text: "x".to_owned(), blocking: true } }
    }

    #[test]
    fn an_end_is_prevented_until_the_lines_are_gone_or_a_limit_is_reached() {
        let settings = StopSettings { same_limit: 3, ..StopSettings::default() };
        let cause = |found: &[Litter], blocks, same| {
            let held = LoopCounters { blocks, same, max_blocks: 5, ..LoopCounters::default() };
            match decide_by_litter(found, &StopFacts::new(Holder::Loop(held)), &settings) {
                StopDecision::Block { cause, .. } => cause.name(),
                StopDecision::Yield { why } => why.name(),
            }
        };
        let found = [litter(DebrisKind::Trap)];
        assert_eq!([cause(&[], 0, 0), cause(&found, 0, 1), cause(&found, 4, 2)], ["nothing_left", "debris", "debris"]);
        assert_eq!([cause(&found, 4, 3), cause(&found, 5, 1)], ["same", "reached_limit"]);
        let paused = StopFacts { paused: true, ..StopFacts::new(Holder::Loop(LoopCounters::default())) };
        assert_eq!(decide_by_litter(&found, &paused, &settings), StopDecision::Yield { why: ReleaseReason::Paused });
    }

    #[test]
    fn only_output_may_be_wanted() {
        assert!(may_be_wanted(&[litter(DebrisKind::Print)]));
        for kind in [DebrisKind::Note, DebrisKind::Placeholder, DebrisKind::Trap] {
            assert!(!may_be_wanted(&[litter(DebrisKind::Print), litter(kind)]), "{kind:?}");
        }
    }
}
