//! Settings: one struct with its defaults, layers that override it, and where each value came from.

mod after_tool;
mod claude;
pub mod detect;
mod diagnose;
mod done;
mod exports;
mod flat;
mod fresher;
mod gate;
mod layer;
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
use crate::check::{Gate, GateSettings};
use crate::done::DoneSettings;
use crate::hook::AfterTool;
use crate::policy::PolicyConfig;

pub use crate::agent::claude::{ClaudeAgent, ClaudePermission, HookWay, SessionMode};
pub use crate::agent::{AGENTS, Agents, CommandAgent, ScriptedAgent};
pub use crate::base::suggest::nearest;
pub use crate::lifecycle::{FailBehavior, Hooks, ScriptSettings};
pub use crate::protect::ProtectSettings;
pub use flat::flatten;
pub use fresher::{Fresher, fresher, script_variables};
pub use layer::{Layer, Origin, Resolved, resolve};
pub use policy::{alone, for_hook, rule_lines};
pub use problem::ConfigProblem;
pub use regression::Regression;
pub use run::{LandMode, OnReview, RunSettings};
pub use seal::{NetworkAccess, SealSettings, shows_container_socket};
pub use session::{OnContext, StopMode, StopSettings};
pub use shape::{Choice, Field, Shape};
pub use template::template;
pub use workspace::{FolderMode, HomeMode, WorkspacePath, WorkspaceSettings};

/// Everything that can be set in `.verdone/config.toml`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The plan to run when none is named: a file, or a folder that holds one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// What to do with a story whose own checks are green before any work.
    pub red_check: RedPolicy,
    pub agent: Agents,
    pub run: RunSettings,
    pub workspace: WorkspaceSettings,
    pub seal: SealSettings,
    pub protect: ProtectSettings,
    pub limits: Limits,
    pub commit: Commit,
    pub prompt: Prompt,
    pub hooks: Hooks,
    pub policy: PolicyConfig,
    pub stop: StopSettings,
    /// Commands of your own that run after a tool of the agent, a formatter say.
    pub after_tool: Vec<AfterTool>,
    pub gates: GateSettings,
    pub regression: Regression,
    /// Checks that every story has to pass.
    pub gate: Vec<Gate>,
    pub done: DoneSettings,
}

/// When to stop. The defaults suit a run over night; 0 means no limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Iterations (attempts) in the whole run.
    pub max_iterations: u32,
    /// Attempts at one story, each from a clean workspace.
    pub attempts: u32,
    /// Turns in one attempt: the first prompt and the feedback after each failed verification.
    pub turns: u32,
    /// Wall time of one turn.
    pub turn_time: Span,
    /// Silence after which a turn is ended; off by default because many agents say nothing until they are done.
    pub idle_time: Span,
    /// Wall time of the whole run.
    pub total_time: Span,
    /// Wall time of one check.
    pub check_time: Span,
    /// Failed attempts in a row, over all stories, before the run is called stalled.
    pub consecutive_failures: u32,
    /// Iterations in a row that change no file before the run is given up.
    pub no_changes: u32,
    /// Verifications in a row with the same tree and the same failure before an attempt is given up.
    pub no_progress: u32,
    /// Crashed turns in a row before the run ends with an error.
    pub crashes: u32,
    /// What the agents of a run may cost together, in US dollars, for agents that say what they cost. The answer that passes it is
    /// still paid.
    pub cost_usd: Usd,
    /// Errors of the agent's service in a row that are waited out, each longer than the one before.
    pub api_errors: u32,
    /// Whether a usage limit is waited for; without it the run ends there.
    pub wait_for_usage: bool,
    /// Time between asking a process to end and killing it.
    pub grace: Span,
    /// Bytes of one output that are kept; the beginning and the end survive.
    pub output_bytes: u64,
    /// The largest file, in bytes, that is committed; 0 means no limit.
    pub snapshot_file_bytes: u64,
}

impl Limits {
    /// The largest file that may be committed, in bytes.
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
            crashes: 3,
            cost_usd: Usd::whole(20),
            api_errors: 8,
            wait_for_usage: true,
            grace: Span::from_secs(5),
            output_bytes: 4 * 1024 * 1024,
            snapshot_file_bytes: 100_000_000,
        }
    }
}

/// How story commits look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Commit {
    /// The subject line; `{id}` and `{title}` are filled in.
    pub subject: String,
    /// How long git and the user's git hooks may take.
    pub timeout: Span,
}

impl Default for Commit {
    fn default() -> Self {
        Self { subject: "feat({id}): {title}".to_owned(), timeout: Span::from_secs(10 * 60) }
    }
}

/// What goes into prompts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Prompt {
    /// Bytes of the last failure that are quoted; its end is kept.
    pub failure_bytes: u64,
}

impl Default for Prompt {
    fn default() -> Self {
        Self { failure_bytes: 8 * 1024 }
    }
}
