//! What a Stop hook decided, as the log of a session keeps it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A decision, its reason, and how long it took.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StopRecord {
    /// `block` or `yield`.
    pub decision: String,
    /// The kind of reason, for statistics.
    pub cause: String,
    pub reason: String,
    pub story: Option<String>,
    /// The judged tree.
    pub tree: Option<String>,
    /// Number of earlier blocks of the loop.
    pub blocks: u32,
    /// How often in a row the tree and the reasons were the same.
    pub same: u32,
    /// Whether the turn continued because of a block, according to the client.
    pub active: bool,
    pub background: usize,
    pub context_tokens: Option<u64>,
    /// Checks that did not pass.
    pub failed: Vec<String>,
    /// Where the result came from: `cached`, `ran`, `running`, or absent.
    pub verdict: Option<String>,
    /// What else the agent was told.
    pub notes: Vec<String>,
    /// The type of the subagent that wanted to stop, if it was one.
    pub agent_type: Option<String>,
    pub ms: u64,
}

impl StopRecord {
    pub fn blocks(&self) -> bool {
        self.decision == "block"
    }
}
