//! Settings: one struct with its defaults, the layers that override it, and the origin of each value.

mod acp;
mod after_tool;
mod claude;
mod codex;
pub mod detect;
mod diagnose;
mod done;
mod exports;
mod flat;
mod fresher;
mod gate;
mod host_list;
mod layer;
mod notify;
mod policy;
mod problem;
mod protect;
mod regression;
mod run;
mod seal;
mod session;
mod shape;
mod template;
mod workspace;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::money::Usd;
use crate::base::span::Span;
use crate::base::verdict::RedPolicy;
use crate::check::lessons::LearnSettings;
use crate::check::{CommandSpec, Gate, GateSettings};
use crate::done::DoneSettings;
use crate::hook::AfterTool;
use crate::journal::notify::NotifySettings;
use crate::policy::PolicyConfig;

pub use crate::agent::claude::{ClaudeAgent, ClaudePermission, HookWay, SessionMode};
pub use crate::agent::{AgentKind, Agents, CommandAgent, ScriptedAgent};
pub use crate::lifecycle::{FailBehavior, Hooks, ScriptSettings};
pub use crate::protect::ProtectSettings;
pub use flat::flatten;
pub use fresher::{Fresher, fresher, script_variables};
pub use host_list::{Host, HostList, HostProblem, Route};
pub use layer::{Layer, Origin, Resolved, resolve};
pub use policy::{config_of_one_file, for_hook, rule_lines};
pub use problem::ConfigProblem;
pub use regression::Regression;
pub use run::{LandMode, OnReview, RunSettings};
pub use seal::{NetworkAccess, SealSettings, shows_container_socket};
pub use session::{OnContext, StopMode, StopSettings, TeamGates};
pub use shape::{Choice, Field, Shape};
pub use template::template;
pub use workspace::{FolderMode, HomeMode, WorkspacePath, WorkspaceSettings};

/// The settings in `.verdone/config.toml`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The plan to run if none is given on the command line: a file, or a folder that contains one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// What to do with a story whose own checks already pass before any work.
    pub red_check: RedPolicy,
    pub agent: Agents,
    pub run: RunSettings,
    pub workspace: WorkspaceSettings,
    pub seal: SealSettings,
    pub protect: ProtectSettings,
    pub limits: Limits,
    pub commit: Commit,
    pub merge: Merge,
    pub prompt: Prompt,
    pub hooks: Hooks,
    pub notify: NotifySettings,
    pub policy: PolicyConfig,
    pub stop: StopSettings,
    /// Your own commands that run after an agent's tool call, for example a formatter.
    pub after_tool: Vec<AfterTool>,
    pub gates: GateSettings,
    pub regression: Regression,
    /// Checks that every story must pass.
    pub gate: Vec<Gate>,
    pub done: DoneSettings,
    pub learn: LearnSettings,
}

/// When to stop. The defaults suit an overnight run; 0 means no limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// The maximum number of iterations (attempts) in the whole run.
    pub max_iterations: u32,
    /// The maximum number of attempts at one story, each from a clean workspace.
    pub attempts: u32,
    /// The maximum number of turns in one attempt: the first prompt, and feedback after each failed verification.
    pub turns: u32,
    /// The time limit of one turn.
    pub turn_time: Span,
    /// How long an agent may print nothing before its turn is ended. Off by default, because many agents print nothing until they are done.
    pub idle_time: Span,
    /// The time limit of the whole run.
    pub total_time: Span,
    /// The time limit of one check.
    pub check_time: Span,
    /// The number of failed attempts in a row, over all stories, after which the run counts as stalled.
    pub consecutive_failures: u32,
    /// The number of iterations in a row without a changed file after which the run gives up.
    pub no_changes: u32,
    /// The number of verifications in a row with the same files and the same failure after which an attempt is given up.
    pub no_progress: u32,
    /// The number of identical tool calls in a row after which a turn is ended: a model that is caught in a loop makes hundreds. For agents
    /// whose calls Verdone sees; waiting for a background command does not count.
    pub identical_calls: u32,
    /// The number of crashed turns in a row after which the run ends with an error.
    pub crashes: u32,
    /// The maximum total cost of a run's agents in US dollars, for agents that report their cost. The answer that exceeds it is still paid
    /// for.
    pub cost_usd: Usd,
    /// The number of errors in a row from the agent's service after which the run ends. By default it keeps trying as long as `total_time`
    /// allows, each time after a longer wait of up to 4 minutes.
    pub api_errors: u32,
    /// Whether to wait until a usage limit resets. If false, the run ends.
    pub wait_for_usage: bool,
    /// The time between asking a process to end and killing it.
    pub grace: Span,
    /// The maximum number of bytes kept of one output. The start and the end are kept.
    pub output_bytes: u64,
    /// The largest file to commit, in bytes; 0 means no limit.
    pub snapshot_file_bytes: u64,
}

impl Limits {
    /// The largest file to commit, in bytes.
    pub fn largest_file(&self) -> u64 {
        if self.snapshot_file_bytes == 0 { u64::MAX } else { self.snapshot_file_bytes }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_iterations: 50,
            attempts: 3,
            turns: 5,
            turn_time: Span::from_secs(60 * 60),
            idle_time: Span::from_secs(0),
            total_time: Span::from_secs(12 * 60 * 60),
            check_time: Span::from_secs(20 * 60),
            consecutive_failures: 6,
            no_changes: 3,
            no_progress: 2,
            identical_calls: 20,
            crashes: 3,
            cost_usd: Usd::whole(20),
            api_errors: 0,
            wait_for_usage: true,
            grace: Span::from_secs(5),
            output_bytes: 4 * 1024 * 1024,
            snapshot_file_bytes: 100_000_000,
        }
    }
}

/// The format of story commits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Commit {
    /// The subject line; `{kind}`, `{id}` and `{title}` are replaced. The kind is the story's `Kind:`, or a prefix of its title such as
    /// `fix:`, or else `feat`.
    pub subject: String,
    /// How long git and your git hooks may take.
    pub timeout: Span,
}

impl Default for Commit {
    fn default() -> Self {
        Self { subject: "{kind}({id}): {title}".to_owned(), timeout: Span::from_secs(10 * 60) }
    }
}

/// What happens when an agent requests a merge of a finished story. Verdone always creates the review branch and the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Merge {
    /// A command that opens a pull request, for example with `gh`: a string for `sh -c`, or a list of arguments. It runs outside of the
    /// workspace, with your permissions, in the project's folder. `VERDONE_STORY`, `VERDONE_COMMIT`, `VERDONE_REVIEW_BRANCH` and
    /// `VERDONE_REPORT` say what to publish.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandSpec>,
    /// How long it may take.
    pub timeout: Span,
}

impl Default for Merge {
    fn default() -> Self {
        Self { command: None, timeout: Span::from_secs(2 * 60) }
    }
}

/// The content of prompts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Prompt {
    /// The maximum number of bytes quoted from the last failure. The end is kept.
    pub failure_bytes: u64,
}

impl Default for Prompt {
    fn default() -> Self {
        Self { failure_bytes: 8 * 1024 }
    }
}
