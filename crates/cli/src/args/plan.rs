//! Arguments of the commands about plans.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::AgentArgs;

/// Create, check and show plans.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  verdone plan new 'Add a dark theme'
  verdone plan lint PLAN.md
  verdone plan show PLAN.md")]
pub(crate) enum PlanCommand {
    New(PlanNewArgs),
    Approve(PlanApproveArgs),
    Lint(PlanLintArgs),
    Show(PlanShowArgs),
}

/// Have the agent turn a request into a plan.
///
/// The request is text, the name of a file, or `-` for standard input. The plan must parse and contain at least one story with an id;
/// otherwise the command fails and keeps the agent's text. Read the plan, then accept its commands with `verdone plan approve`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone plan new 'Add a dark theme'
  verdone plan new docs/request.md --output PLAN.md
  pbpaste | verdone plan new -")]
pub(crate) struct PlanNewArgs {
    /// The request: text, a file, or `-` for standard input.
    #[arg(value_name = "REQUEST")]
    pub request: String,
    /// Where to write the plan; an existing file is never overwritten.
    #[arg(long, short, value_name = "FILE", default_value = "PLAN.md", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
    #[command(flatten)]
    pub agent: AgentArgs,
}

/// Accept the commands of a plan that an agent wrote.
///
/// Shows every command that the plan would run. Approval covers only the plan's current content: approve it again after it changes. Stories
/// that are added to a plan while a session loop uses it are accepted the same way; until then, none of their commands run.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone plan approve PLAN.md
  verdone plan approve PLAN.md --yes     without a terminal")]
pub(crate) struct PlanApproveArgs {
    /// The plan. Default: the plan in the config.
    #[arg(value_name = "PLAN", value_hint = ValueHint::AnyPath)]
    pub plan: Option<String>,
    /// Accept without asking.
    #[arg(long)]
    pub yes: bool,
}

/// Check a plan for errors and oddities.
///
/// Problems are printed with file, line and column. The exit code is 2 if the plan cannot be used, and 0 if there are only warnings.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone plan lint
  verdone plan lint PLAN.md --json")]
pub(crate) struct PlanLintArgs {
    /// The plan. Default: the plan in the config.
    #[arg(value_name = "PLAN", value_hint = ValueHint::AnyPath)]
    pub plan: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Show the stories of a plan as Verdone reads them.
///
/// Shows the id, title, status, dependencies and checks of every story, and which story is next.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone plan show
  verdone plan show .ralph/PRD-1/plan.md --json")]
pub(crate) struct PlanShowArgs {
    /// The plan. Default: the plan in the config.
    #[arg(value_name = "PLAN", value_hint = ValueHint::AnyPath)]
    pub plan: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
