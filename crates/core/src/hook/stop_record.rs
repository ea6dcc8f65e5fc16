//! What a Stop hook decided, as the log of a session keeps it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was decided, by what, and how long that took.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StopRecord {
    /// `block` or `yield`.
    pub decision: String,
    /// The kind of reason, for counting.
    pub cause: String,
    pub reason: String,
    pub story: Option<String>,
    /// The tree that was judged.
    pub tree: Option<String>,
    /// Blocks of the loop before this one.
    pub blocks: u32,
    /// How often in a row the tree and the reasons were these.
    pub same: u32,
    /// What the client said: whether the turn went on because of a block.
    pub active: bool,
    pub background: usize,
    pub context_tokens: Option<u64>,
    /// Checks that did not pass.
    pub failed: Vec<String>,
    /// Where the verdict came from: `cached`, `ran`, `running`, or nothing.
    pub verdict: Option<String>,
    /// What else the agent was told.
    pub notes: Vec<String>,
    /// The subagent that wanted to stop, where it was one.
    pub agent_type: Option<String>,
    pub ms: u64,
}

impl StopRecord {
    pub fn blocks(&self) -> bool {
        self.decision == "block"
    }
}
