//! A decision as recorded for the session, and totals of such records.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{StopDecision, StopFacts, Work};
use crate::hook::StopRecord;

/// Longer reasons are truncated: the full text is in the agent's transcript.
const LONGEST: usize = 1_000;

impl StopRecord {
    pub fn from_decision(facts: &StopFacts, decision: &StopDecision) -> Self {
        let (name, cause, reason) = match decision {
            StopDecision::Block { cause, reason } => ("block", cause.name(), reason.clone()),
            StopDecision::Yield { why } => ("yield", why.name(), why.describe()),
        };
        let open = match &facts.work {
            Work::Open(open) => Some(open),
            Work::Unknown | Work::Complete { .. } | Work::Blocked { .. } | Work::Nothing { .. } | Work::Verifying { .. } => None,
        };
        let (blocks, same) = match &facts.holder {
            super::Holder::Loop(held) => (held.blocks, held.same),
            super::Holder::Nobody | super::Holder::Ended(_) | super::Holder::OtherTool => (0, 0),
        };
        Self {
            decision: name.to_owned(),
            cause: cause.to_owned(),
            reason: reason[..reason.floor_char_boundary(LONGEST)].to_owned(),
            story: open.and_then(|open| open.story.as_ref()).map(|story| story.id.clone()),
            blocks,
            same,
            active: facts.active,
            background: facts.background.len(),
            context_tokens: facts.context.map(|context| context.tokens),
            failed: open.map(|open| open.failed.iter().map(|run| run.name.clone()).collect()).unwrap_or_default(),
            notes: facts.notes.clone(),
            ..Self::default()
        }
    }
}

/// Decisions by their cause.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StopTally {
    pub blocks: BTreeMap<String, CauseTally>,
    pub yields: BTreeMap<String, CauseTally>,
    /// By the source of the result.
    pub verdicts: BTreeMap<String, CauseTally>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CauseTally {
    pub count: u64,
    pub total_ms: u64,
    pub longest_ms: u64,
}

impl StopTally {
    pub fn add(&mut self, record: &StopRecord) {
        let by_cause = if record.blocks() { &mut self.blocks } else { &mut self.yields };
        by_cause.entry(record.cause.clone()).or_default().add(record.ms);
        if let Some(verdict) = &record.verdict {
            self.verdicts.entry(verdict.clone()).or_default().add(record.ms);
        }
    }
}

impl CauseTally {
    fn add(&mut self, ms: u64) {
        self.count += 1;
        self.total_ms = self.total_ms.saturating_add(ms);
        self.longest_ms = self.longest_ms.max(ms);
    }

    pub fn average_ms(&self) -> u64 {
        self.total_ms.checked_div(self.count).unwrap_or(0)
    }
}
