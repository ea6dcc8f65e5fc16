//! `[learn]`: whether failed attempts leave lessons, and how many.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether failed attempts leave lessons in `.verdone/guardrails.md`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LearnSettings {
    /// Whether Verdone adds and drops lessons. If false, it leaves the file alone; lessons in it still go into prompts.
    pub enabled: bool,
    /// The maximum number of lessons that Verdone keeps in the file. Lines that you wrote or changed do not count and are never dropped.
    pub lessons: u32,
}

impl Default for LearnSettings {
    fn default() -> Self {
        Self { enabled: true, lessons: 30 }
    }
}
