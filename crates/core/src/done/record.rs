//! A question to a judge and its answer, as recorded in the journal and in evidence.

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
    /// What the judge says it looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checked: Vec<String>,
    /// The judge's session, for agents that have sessions. Never the session of the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The cost, if the agent reports it. Includes earlier questions about the same work that gave no clear answer.
    #[serde(default)]
    pub usage: Usage,
    pub duration_ms: u64,
    /// Number of tool calls that were denied because they would have done more than read.
    #[serde(default)]
    pub denied: u32,
}

impl JudgeRecord {
    /// A record for a judge that has not answered yet.
    pub fn new(agent: &str) -> Self {
        let said = JudgeFact::Unknown { why: "the judge was not asked".to_owned() };
        let usage = Usage::default();
        Self { agent: agent.to_owned(), said, checked: Vec::new(), session: None, usage, duration_ms: 0, denied: 0 }
    }

    /// Marks a favourable answer as unknown, for the given reason. A refutation stays a refutation.
    #[must_use]
    pub fn doubted(mut self, why: impl Into<String>) -> Self {
        match self.said {
            JudgeFact::Refuted { .. } => {}
            JudgeFact::Off | JudgeFact::Holds | JudgeFact::Unknown { .. } => self.said = JudgeFact::Unknown { why: why.into() },
        }
        self
    }

    /// Discards the answer, for the given reason.
    #[must_use]
    pub fn void(mut self, why: impl Into<String>) -> Self {
        self.said = JudgeFact::Unknown { why: why.into() };
        self
    }

    /// Whether there is no clear answer, so that the judge may be asked again. A clear answer is final.
    pub fn proved_nothing(&self) -> bool {
        match self.said {
            JudgeFact::Off | JudgeFact::Unknown { .. } => true,
            JudgeFact::Holds | JudgeFact::Refuted { .. } => false,
        }
    }

    /// Adds the usage of earlier questions about the same work.
    #[must_use]
    pub fn after(mut self, earlier: &Self) -> Self {
        self.usage = self.usage.and(earlier.usage);
        self.duration_ms = self.duration_ms.saturating_add(earlier.duration_ms);
        self.denied = self.denied.saturating_add(earlier.denied);
        self
    }

    /// The result as a clause.
    pub fn describe(&self) -> String {
        match &self.said {
            JudgeFact::Off => "was not asked".to_owned(),
            JudgeFact::Holds => "found nothing against it".to_owned(),
            JudgeFact::Unknown { why } => format!("proved nothing: {why}"),
            JudgeFact::Refuted { findings } if findings.is_empty() => "refuted it without saying why".to_owned(),
            JudgeFact::Refuted { findings } => format!("refuted it: {}", findings.join("; ")),
        }
    }
}
