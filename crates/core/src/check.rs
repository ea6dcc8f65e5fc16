//! A check is one command that Verdone runs; a gate is a named, staged check that every story must pass.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::span::Span;

/// A command as config or a plan gives it: text goes to `sh -c`, a list is executed as it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a command: a string for `sh -c`, or a list of strings to execute as they are")]
pub enum CommandSpec {
    Shell(String),
    Argv(Vec<String>),
}

impl CommandSpec {
    /// One line for people: never to be executed.
    pub fn display(&self) -> String {
        match self {
            Self::Shell(text) => text.clone(),
            Self::Argv(words) => words.join(" "),
        }
    }

    pub fn is_empty(&self) -> bool {
        match self {
            Self::Shell(text) => text.trim().is_empty(),
            Self::Argv(words) => words.first().is_none_or(|word| word.trim().is_empty()),
        }
    }
}

/// Stages run in this order; a failing stage stops the later ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    #[default]
    Correctness,
    Quality,
    Security,
    Adversarial,
}

impl Stage {
    /// The name used in config, JSON and docs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Correctness => "correctness",
            Self::Quality => "quality",
            Self::Security => "security",
            Self::Adversarial => "adversarial",
        }
    }
}

/// One `[[gate]]` of the config: a check that every story has to pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// The name shown in reports; unique.
    pub name: String,
    /// When it runs: correctness, quality, security, adversarial.
    #[serde(default)]
    pub stage: Stage,
    /// What runs: a string for `sh -c`, or a list of words.
    pub command: CommandSpec,
    /// How long it may take; the default is `limits.check_time`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
}

/// Who asked for a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckOrigin {
    /// The story's own check: the one that has to be red before and green after.
    Story,
    /// A gate, from the config or from `--check`.
    Gate(Stage),
    /// Tests that the attempt added or changed, on the tree from before it and on its own.
    AgentTest,
}

/// A check ready to be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    pub name: String,
    pub origin: CheckOrigin,
    pub command: CommandSpec,
    pub timeout: Span,
}

/// How one run of a check ended. Ordered from best to worst.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckOutcome {
    Passed,
    /// Exit code other than 0, 126 and 127.
    Failed {
        code: i32,
    },
    Signalled {
        signal: i32,
    },
    TimedOut {
        after_ms: u64,
    },
    /// It proved nothing either way: not found, not executable, no tests.
    Unknown {
        reason: String,
    },
    /// The run was being stopped.
    Interrupted,
}

impl CheckOutcome {
    pub fn passed(&self) -> bool {
        matches!(self, Self::Passed)
    }

    /// A few words for people.
    pub fn words(&self) -> String {
        match self {
            Self::Passed => "passed".to_owned(),
            Self::Failed { code } => format!("failed with exit code {code}"),
            Self::Signalled { signal } => format!("was ended by signal {signal}"),
            Self::TimedOut { after_ms } => format!("did not end within {}", Span::from_millis(*after_ms)),
            Self::Unknown { reason } => reason.clone(),
            Self::Interrupted => "was interrupted".to_owned(),
        }
    }
}

/// Evidence of one check: what Verdone itself saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckRun {
    pub name: String,
    pub origin: CheckOrigin,
    pub command: CommandSpec,
    pub outcome: CheckOutcome,
    pub duration_ms: u64,
    /// SHA-256 of the whole output as it was, before redaction and cutting.
    pub output_digest: String,
    /// Where the redacted output is kept, relative to the run's directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The redacted end of the output, for feedback and reports.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tail: String,
}
