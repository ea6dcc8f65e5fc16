//! Lifecycle scripts: the user's executables that run at certain moments of a run. Defines the moments, the variables a script gets,
//! and the meaning of its exit code. The runtime runs the scripts.

mod settings;
mod templates;
mod variables;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::span::Span;

pub use settings::{FailBehavior, Hooks, ScriptSettings};
pub use templates::{TEMPLATES, Template};
pub use variables::{EndedIteration, Facts, PREFIXES, VARIABLES, Variable, variables};

/// The moments, named like the script files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Script {
    /// Once, when the run begins.
    Started,
    /// Before each iteration.
    NextIteration,
    /// After each iteration, before deciding whether another one follows.
    PostIteration,
    /// Once, when the run ends, however it ends.
    Finished,
}

impl Script {
    pub const ALL: [Self; 4] = [Self::Started, Self::NextIteration, Self::PostIteration, Self::Finished];

    /// The file's name, and the key in the config.
    pub fn name(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::NextIteration => "next_iteration",
            Self::PostIteration => "post_iteration",
            Self::Finished => "finished",
        }
    }

    /// When it runs, for the docs.
    pub fn moment(self) -> &'static str {
        match self {
            Self::Started => "once, when the run begins, before the baseline checks",
            Self::NextIteration => "before each iteration, when its story is chosen",
            Self::PostIteration => "after each iteration, before it is decided whether another one follows",
            Self::Finished => "once, when the run has ended, however it ended",
        }
    }

    pub fn settings(self, hooks: &Hooks) -> &ScriptSettings {
        match self {
            Self::Started => &hooks.started,
            Self::NextIteration => &hooks.next_iteration,
            Self::PostIteration => &hooks.post_iteration,
            Self::Finished => &hooks.finished,
        }
    }

    pub fn enabled(self, hooks: &Hooks) -> bool {
        hooks.enabled && self.settings(hooks).enabled
    }
}

/// How a script ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScriptExit {
    Code(i32),
    Signal(i32),
    TimedOut {
        after_ms: u64,
    },
    /// It exists but cannot be run.
    NotRunnable {
        reason: String,
    },
    /// The run was stopped.
    Interrupted,
    /// It runs in the background without being waited for.
    Background,
}

impl ScriptExit {
    pub fn describe(&self) -> String {
        match self {
            Self::Code(0) => "passed".to_owned(),
            Self::Code(code) => format!("exited with code {code}"),
            Self::Signal(signal) => format!("was killed by signal {signal}"),
            Self::TimedOut { after_ms } => format!("timed out after {}", Span::from_millis(*after_ms)),
            Self::NotRunnable { reason } => format!("cannot be run: {reason}"),
            Self::Interrupted => "was interrupted".to_owned(),
            Self::Background => "runs in the background".to_owned(),
        }
    }
}

/// What a script's exit means for the run. Ordered: the worst one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScriptEffect {
    GoOn,
    /// Reported as a warning; the run continues.
    Warning,
    /// Reported as an error; the run continues.
    Error,
    /// This iteration is skipped.
    Skip,
    /// The run ends; `finished` still runs.
    Abort,
}

impl ScriptEffect {
    /// As a phrase for the docs.
    pub fn describe(self) -> &'static str {
        match self {
            Self::GoOn => "nothing",
            Self::Warning => "a warning is shown",
            Self::Error => "an error is shown",
            Self::Skip => "the iteration is skipped; 20 in a row end the run as `stalled`",
            Self::Abort => "the run ends as `hook_abort`",
        }
    }
}

/// Exit code 0 continues, 1 warns (and skips, for `next_iteration`), 2 aborts; the config decides about any other code.
pub fn meaning(script: Script, exit: &ScriptExit, behavior: FailBehavior) -> ScriptEffect {
    let failed = match behavior {
        FailBehavior::Continue => ScriptEffect::Error,
        FailBehavior::Abort => ScriptEffect::Abort,
    };
    let meaning = match exit {
        ScriptExit::Code(0) | ScriptExit::Background | ScriptExit::Interrupted => ScriptEffect::GoOn,
        ScriptExit::Code(1) if script == Script::NextIteration => ScriptEffect::Skip,
        ScriptExit::Code(1) | ScriptExit::NotRunnable { .. } => ScriptEffect::Warning,
        ScriptExit::Code(2) => ScriptEffect::Abort,
        ScriptExit::Code(_) | ScriptExit::Signal(_) | ScriptExit::TimedOut { .. } => failed,
    };
    // The run is already over, so there is nothing left to abort.
    if script == Script::Finished { meaning.min(ScriptEffect::Error) } else { meaning }
}
