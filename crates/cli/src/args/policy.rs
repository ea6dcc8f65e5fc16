//! Arguments of `verdone policy`.

use clap::{Args, Subcommand};

/// Show, try and test the rules for what agents may do.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  verdone policy check 'git push origin main'
  verdone policy list
  verdone policy test")]
pub(crate) enum PolicyCommand {
    Check(PolicyCheckArgs),
    List(PolicyListArgs),
    Test(PolicyTestArgs),
}

/// Explain what the policy decides for a tool call.
///
/// Names the rule, where it is defined, which simple command or path it applies to, and what the agent would be told. Nothing is run. The
/// exit code is 0 for every verdict.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone policy check 'cd web && git -C . push'
  verdone policy check --tool Write .env
  verdone policy check --tool Write src/a.rs --story US-001
  verdone policy check --tool Agent '{\"isolation\": \"worktree\"}' --json")]
pub(crate) struct PolicyCheckArgs {
    /// The tool's name.
    #[arg(long, value_name = "NAME", default_value = "Bash")]
    pub tool: String,
    /// Its input: a command for Bash, a path for file tools, or a JSON object.
    #[arg(value_name = "INPUT")]
    pub input: String,
    /// Decide as in a turn of this story, using its scope.
    #[arg(long, value_name = "ID", conflicts_with = "interactive")]
    pub story: Option<String>,
    /// Decide as in your own sessions, not as in a run.
    #[arg(long)]
    pub interactive: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// List every rule with its name, its verdict and where it is defined.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone policy list
  verdone policy list --json")]
pub(crate) struct PolicyListArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Test every rule on its own examples.
///
/// If one of your rules contradicts its examples, the config is invalid. Every other command then stops with the same error.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  verdone policy test")]
pub(crate) struct PolicyTestArgs {}
