//! `[regression]`: when what was proven is looked at again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::span::Span;

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
