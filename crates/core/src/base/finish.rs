//! How a run ends: every cause has a finish type, an exit code and a next step. The docs print this table.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The finish types. The names are part of the interface: lifecycle scripts and `--json` readers see them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// Every story is done.
    Complete,
    /// The user stopped the run.
    Manual,
    /// `limits.max_iterations` was reached.
    MaxIterations,
    /// Several iterations in a row changed no file.
    NoChanges,
    /// Verdone or the agent could not continue.
    Error,
    /// A lifecycle script aborted the run.
    HookAbort,
    /// The cost or token limit was reached.
    Budget,
    /// `limits.total_time` was reached.
    Timeout,
    /// Too many failures in a row.
    Stalled,
    /// Only stories that need a person are left.
    Blocked,
}

/// The signals that stop a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum StopSignal {
    Sigint,
    Sigterm,
    Sighup,
}

impl StopSignal {
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Sigint => 130,
            Self::Sigterm => 143,
            Self::Sighup => 129,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Sigint => "SIGINT",
            Self::Sigterm => "SIGTERM",
            Self::Sighup => "SIGHUP",
        }
    }
}

impl Finish {
    pub const ALL: [Self; 10] = [
        Self::Complete,
        Self::Manual,
        Self::MaxIterations,
        Self::Budget,
        Self::Timeout,
        Self::NoChanges,
        Self::Stalled,
        Self::Blocked,
        Self::HookAbort,
        Self::Error,
    ];

    /// The name used in JSON, scripts and docs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Manual => "manual",
            Self::MaxIterations => "max_iterations",
            Self::NoChanges => "no_changes",
            Self::Error => "error",
            Self::HookAbort => "hook_abort",
            Self::Budget => "budget",
            Self::Timeout => "timeout",
            Self::Stalled => "stalled",
            Self::Blocked => "blocked",
        }
    }

    /// The exit code of a run that was not stopped by a signal.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Complete => 0,
            Self::Manual => StopSignal::Sigint.exit_code(),
            Self::Error => 1,
            Self::MaxIterations | Self::Budget | Self::Timeout => 3,
            Self::NoChanges | Self::HookAbort | Self::Stalled | Self::Blocked => 4,
        }
    }

    /// The cause, for the table in the docs.
    pub fn cause(self) -> &'static str {
        match self {
            Self::Complete => "every story is done",
            Self::Manual => "the user stopped the run (by a signal: 130 SIGINT, 143 SIGTERM, 129 SIGHUP)",
            Self::MaxIterations => "limits.max_iterations was reached",
            Self::Budget => "the cost or token limit was reached",
            Self::Timeout => "limits.total_time was reached",
            Self::NoChanges => "limits.no_changes iterations in a row changed no file",
            Self::Stalled => {
                "limits.consecutive_failures attempts in a row failed, a done story broke twice, or a script skipped 20 iterations in a row"
            }
            Self::Blocked => "the remaining stories failed, depend on a failed one, or wait for your review or answer",
            Self::HookAbort => "a lifecycle script ended the run",
            Self::Error => "Verdone or the agent could not continue (2 if the agent could not be started at all)",
        }
    }

    /// The next command to type if no story waits for a review and no commit for its landing. `plan` and `story` are words of a shell;
    /// without a story that failed, all stories are shown.
    pub fn next_step(self, plan: &str, story: Option<&str>) -> String {
        match self {
            Self::Complete => "verdone report".to_owned(),
            Self::Manual | Self::MaxIterations | Self::Budget | Self::Timeout => run_again(plan),
            Self::NoChanges | Self::HookAbort => "verdone log".to_owned(),
            Self::Stalled | Self::Blocked => {
                story.map_or_else(|| "verdone show".to_owned(), |story| format!("verdone show {story}"))
            }
            Self::Error => "verdone doctor".to_owned(),
        }
    }
}

/// The command that continues a run. The plan may not be the one that `verdone run` would find by itself.
pub fn run_again(plan: &str) -> String {
    format!("verdone run {plan}")
}
