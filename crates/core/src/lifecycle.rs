//! Lifecycle scripts: the user's own executables at the moments of a run. Which moments there are, what a script is told, and what
//! its exit code means. Running one is the runtime's.

mod settings;
mod templates;
mod variables;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::span::Span;

pub use settings::{FailBehavior, Hooks, ScriptSettings};
pub use templates::{TEMPLATES, Template};
pub use variables::{EndedIteration, Facts, PREFIXES, VARIABLES, Variable, variables};

/// The moments, named as the files are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Script {
    /// Once, when the run begins.
    Started,
    /// Before each iteration.
    NextIteration,
    /// After each iteration, before it is decided whether another one follows.
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
            Self::Started => "once, when the run begins, before the checks of the start tree",
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
    /// It is there and cannot be run.
    NotRunnable {
        reason: String,
    },
    /// The run was being stopped.
    Interrupted,
    /// It runs on by itself; nobody waits for it.
    Background,
}

impl ScriptExit {
    pub fn words(&self) -> String {
        match self {
            Self::Code(0) => "passed".to_owned(),
            Self::Code(code) => format!("ended with exit code {code}"),
            Self::Signal(signal) => format!("was ended by signal {signal}"),
            Self::TimedOut { after_ms } => format!("did not end within {}", Span::from_millis(*after_ms)),
            Self::NotRunnable { reason } => format!("cannot be run: {reason}"),
            Self::Interrupted => "was interrupted".to_owned(),
            Self::Background => "runs in the background".to_owned(),
        }
    }
}

/// What a script's end means for the run. Ordered: the worst counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Meaning {
    GoOn,
    /// Told, and the run goes on.
    Warning,
    /// Told as an error, and the run goes on.
    Error,
    /// This iteration is left out.
    Skip,
    /// The run ends, `finished` still runs.
    Abort,
}

impl Meaning {
    /// In a sentence, for the docs.
    pub fn words(self) -> &'static str {
        match self {
            Self::GoOn => "nothing",
            Self::Warning => "a warning is shown",
            Self::Error => "an error is shown",
            Self::Skip => "the iteration is skipped; 20 in a row end the run as `stalled`",
            Self::Abort => "the run ends as `hook_abort`",
        }
    }
}

/// The exit codes: 0 goes on, 1 warns (and skips, for `next_iteration`), 2 aborts, anything else is an error that config judges.
pub fn meaning(script: Script, exit: &ScriptExit, behavior: FailBehavior) -> Meaning {
    let failed = match behavior {
        FailBehavior::Continue => Meaning::Error,
        FailBehavior::Abort => Meaning::Abort,
    };
    let meaning = match exit {
        ScriptExit::Code(0) | ScriptExit::Background | ScriptExit::Interrupted => Meaning::GoOn,
        ScriptExit::Code(1) if script == Script::NextIteration => Meaning::Skip,
        ScriptExit::Code(1) | ScriptExit::NotRunnable { .. } => Meaning::Warning,
        ScriptExit::Code(2) => Meaning::Abort,
        ScriptExit::Code(_) | ScriptExit::Signal(_) | ScriptExit::TimedOut { .. } => failed,
    };
    // The run is over already: there is nothing left to abort.
    if script == Script::Finished { meaning.min(Meaning::Error) } else { meaning }
}
