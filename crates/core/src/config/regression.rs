//! `[regression]`: when proven stories are checked again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::span::Span;

/// When proven stories are checked again, because later work may have broken them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Regression {
    /// Whether to check before a run counts as complete.
    pub at_end: bool,
    /// Also check after this many story commits; 0 means only at the end.
    pub every: u32,
    /// How long one such regression check may take. Stories that do not fit are listed as not checked again.
    pub time: Span,
}

impl Default for Regression {
    fn default() -> Self {
        Self { at_end: true, every: 0, time: Span::from_secs(10 * 60) }
    }
}
