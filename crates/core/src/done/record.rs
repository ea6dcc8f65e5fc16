//! What a judge was asked and said, as journal and evidence keep it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::JudgeFact;
use crate::agent::Usage;

/// One question to a judge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JudgeRecord {
    /// Who was asked: `claude` or `command`.
    pub agent: String,
    pub said: JudgeFact,
    /// What it says that it looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checked: Vec<String>,
    /// Its session, for agents that have them; never that of the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// What the question cost, where the agent says so, together with earlier ones about the same work that proved nothing.
    #[serde(default)]
    pub usage: Usage,
    pub duration_ms: u64,
    /// Calls that were denied, because they would have done more than look.
    #[serde(default)]
    pub denied: u32,
}

impl JudgeRecord {
    /// Of a judge that has said nothing yet.
    pub fn of(agent: &str) -> Self {
        let said = JudgeFact::Unknown { why: "the judge was not asked".to_owned() };
        let usage = Usage::default();
        Self { agent: agent.to_owned(), said, checked: Vec::new(), session: None, usage, duration_ms: 0, denied: 0 }
    }

    /// The same, and its word proves nothing for this reason. A refutation stays one.
    #[must_use]
    pub fn doubted(mut self, why: impl Into<String>) -> Self {
        match self.said {
            JudgeFact::Refuted { .. } => {}
            JudgeFact::Off | JudgeFact::Holds | JudgeFact::Unknown { .. } => self.said = JudgeFact::Unknown { why: why.into() },
        }
        self
    }

    /// The same, and nothing that it said counts.
    #[must_use]
    pub fn void(mut self, why: impl Into<String>) -> Self {
        self.said = JudgeFact::Unknown { why: why.into() };
        self
    }

    /// Whether there is no clear answer: it may be asked again. One that is clear stands.
    pub fn proved_nothing(&self) -> bool {
        match self.said {
            JudgeFact::Off | JudgeFact::Unknown { .. } => true,
            JudgeFact::Holds | JudgeFact::Refuted { .. } => false,
        }
    }

    /// The answer to a question that had to be asked again: what the earlier ones took is counted here.
    #[must_use]
    pub fn after(mut self, earlier: &Self) -> Self {
        self.usage = self.usage.and(earlier.usage);
        self.duration_ms = self.duration_ms.saturating_add(earlier.duration_ms);
        self.denied = self.denied.saturating_add(earlier.denied);
        self
    }

    /// What came of it, in a clause.
    pub fn words(&self) -> String {
        match &self.said {
            JudgeFact::Off => "was not asked".to_owned(),
            JudgeFact::Holds => "found nothing against it".to_owned(),
            JudgeFact::Unknown { why } => format!("proved nothing: {why}"),
            JudgeFact::Refuted { findings } if findings.is_empty() => "refuted it, and did not say why".to_owned(),
            JudgeFact::Refuted { findings } => format!("refuted it: {}", findings.join("; ")),
        }
    }
}
