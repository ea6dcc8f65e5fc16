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
}

impl Default for CleanSettings {
    fn default() -> Self {
        Self { setup: Vec::new(), setup_time: Span::from_secs(10 * 60), share: Vec::new() }
    }
}

/// When stories that were proven are checked once more: later work may have broken them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Regression {
    /// Before a run is called complete.
    pub at_end: bool,
    /// And after this many story commits; 0 means not before the end.
    pub every: u32,
    /// How long one such look may take; what does not fit is listed as not checked again.
    pub time: Span,
}

impl Default for Regression {
    fn default() -> Self {
        Self { at_end: true, every: 0, time: Span::from_secs(10 * 60) }
    }
}
