//! Settings of the lifecycle scripts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::span::Span;

/// The lifecycle scripts in `.verdone/hooks/`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Hooks {
    /// Whether to run any of them.
    pub enabled: bool,
    /// How long a script may take before its whole process group is ended.
    pub timeout: Span,
    /// What happens after an exit code of 3 or more, a signal or a timeout.
    pub fail_behavior: FailBehavior,
    /// Runs once, when the run starts.
    pub started: ScriptSettings,
    /// Runs before each iteration.
    pub next_iteration: ScriptSettings,
    /// Runs after each iteration.
    pub post_iteration: ScriptSettings,
    /// Runs once, when the run ends.
    pub finished: ScriptSettings,
}

impl Default for Hooks {
    fn default() -> Self {
        Self {
            enabled: true,
            timeout: Span::from_secs(30),
            fail_behavior: FailBehavior::default(),
            started: ScriptSettings::default(),
            next_iteration: ScriptSettings::default(),
            post_iteration: ScriptSettings::default(),
            finished: ScriptSettings::default(),
        }
    }
}

/// What happens to the run when a lifecycle script fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FailBehavior {
    /// The failure is reported, and the run continues.
    #[default]
    Continue,
    /// The run ends as `hook_abort`.
    Abort,
}

/// Settings of one lifecycle script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ScriptSettings {
    /// Whether to run it.
    pub enabled: bool,
    /// Start the script and continue immediately. Its output is only recorded, and it ends with the run. `finished` is always waited for.
    pub background: bool,
}

impl Default for ScriptSettings {
    fn default() -> Self {
        Self { enabled: true, background: false }
    }
}
