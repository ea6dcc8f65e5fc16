//! Settings of the lifecycle scripts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::span::Span;

/// The lifecycle scripts in `.verdone/hooks/`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Hooks {
    /// Whether any of them runs.
    pub enabled: bool,
    /// How long a script may take before its whole process group is ended.
    pub timeout: Span,
    /// What an exit code of 3 or more, a signal or a timeout does.
    pub fail_behavior: FailBehavior,
    /// Once, when the run begins.
    pub started: ScriptSettings,
    /// Before each iteration.
    pub next_iteration: ScriptSettings,
    /// After each iteration.
    pub post_iteration: ScriptSettings,
    /// Once, when the run ends.
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

/// What a failing lifecycle script does to the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FailBehavior {
    /// It is told, and the run goes on.
    #[default]
    Continue,
    /// The run ends as `hook_abort`.
    Abort,
}

/// Settings of one lifecycle script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ScriptSettings {
    /// Whether it runs.
    pub enabled: bool,
    /// Start it and go on at once; what it says is only kept, and it is ended with the run. `finished` is always waited for.
    pub background: bool,
}

impl Default for ScriptSettings {
    fn default() -> Self {
        Self { enabled: true, background: false }
    }
}
