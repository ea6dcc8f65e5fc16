//! Arguments of the commands about plans.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::AgentArgs;

/// Make, check and show plans.
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

/// Let the agent turn a request into a plan.
///
/// The request is text, the name of a file, or `-` for standard input. The plan has to parse into at least one story with an id;
/// otherwise the agent's text is kept and this is an error. Read the plan, then accept its commands with `verdone plan approve`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone plan new 'Add a dark theme'
  verdone plan new docs/request.md --output PLAN.md
  pbpaste | verdone plan new -")]
pub(crate) struct PlanNewArgs {
    /// What is wanted: text, a file, or `-` for standard input.
    #[arg(value_name = "REQUEST")]
    pub request: String,
    /// Where to write the plan; never overwrites.
    #[arg(long, short, value_name = "FILE", default_value = "PLAN.md", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
    #[command(flatten)]
    pub agent: AgentArgs,
}

/// Accept the commands of a plan that an agent wrote.
///
/// Shows every command that the plan would run. The consent holds for the plan as it is now: a plan that changes has to be
/// approved again. Stories that came into any plan while a loop holds a session over it are accepted in the same way: before that, none of
/// their commands is run.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone plan approve PLAN.md
  verdone plan approve PLAN.md --yes     where there is no terminal to ask on")]
pub(crate) struct PlanApproveArgs {
    /// The plan; else the one of the config.
    #[arg(value_name = "PLAN", value_hint = ValueHint::AnyPath)]
    pub plan: Option<String>,
    /// Accept without asking.
    #[arg(long)]
    pub yes: bool,
}

/// Check a plan: what cannot be used, and what is odd.
///
/// Faults are printed with their file, line and column. A plan that cannot be used gives exit code 2; warnings alone give 0.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone plan lint
  verdone plan lint PLAN.md --json")]
pub(crate) struct PlanLintArgs {
    /// The plan; else the one of the config.
    #[arg(value_name = "PLAN", value_hint = ValueHint::AnyPath)]
    pub plan: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Show the stories of a plan as Verdone reads them.
///
/// Id, title, status, dependencies and checks of every story, and which one would be next.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone plan show
  verdone plan show .ralph/PRD-1/plan.md --json")]
pub(crate) struct PlanShowArgs {
    /// The plan; else the one of the config.
    #[arg(value_name = "PLAN", value_hint = ValueHint::AnyPath)]
    pub plan: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
