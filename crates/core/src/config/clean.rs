//! `[clean]` and `[regression]`: where a check sees nothing but one tree, and when what was proven is looked at again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::CommandSpec;
use crate::span::Span;

/// Trees of exactly what is committed, outside of the checkout: ignored and forgotten files are not in them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CleanSettings {
    /// What runs in a clean tree before anything else, once for each state of the lock files: `npm ci`, say.
    pub setup: Vec<CommandSpec>,
    /// How long one of these commands may take.
    pub setup_time: Span,
    /// Folders and files of the checkout that are linked in, relative to where `.verdone/` is: `node_modules`, `target`.
    pub share: Vec<String>,
    /// Runs single test files, for `own_check = "agent-test"`: `{files}` stands for them. Where nothing is set, what the project
    /// seems to use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<CommandSpec>,
}

impl Default for CleanSettings {
    fn default() -> Self {
        Self { setup: Vec::new(), setup_time: Span::from_secs(10 * 60), share: Vec::new(), test: None }
    }
}
