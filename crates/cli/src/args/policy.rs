//! Arguments of the commands about what agents may do.

use clap::{Args, Subcommand};

/// Answer one hook event of a coding agent: for the agent's settings, not for people.
///
/// Reads one JSON value on standard input and prints at most one JSON object. In a project without `.verdone/` it says nothing. In
/// your own sessions it speaks only to deny; with --run it decides every tool call. What it sees is kept in
/// `.verdone/sessions/`, or in the run's folder.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  echo '{\"hook_event_name\":\"Stop\",\"session_id\":\"s\",\"cwd\":\"/\"}' | verdone hook")]
pub(crate) struct HookArgs {
    /// The event, for answers to input that cannot be read.
    #[arg(value_name = "EVENT")]
    pub event: Option<String>,
    /// Decide every call, and deny what cannot be judged: for sessions that nobody watches.
    #[arg(long)]
    pub run: bool,
}

/// Show, try and test the rules over what agents may do.
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

/// Explain what the policy says about a tool call.
///
/// Names the rule, where it was written, which simple command or path it is about, and what an agent would be told. Nothing is run.
/// The exit code is 0 whatever the verdict.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone policy check 'cd web && git -C . push'
  verdone policy check --tool Write .env
  verdone policy check --tool Write src/a.rs --story US-001
  verdone policy check --tool Agent '{\"isolation\": \"worktree\"}' --json")]
pub(crate) struct PolicyCheckArgs {
    /// The tool.
    #[arg(long, value_name = "NAME", default_value = "Bash")]
    pub tool: String,
    /// Its input: a command for Bash, a path for file tools, or a JSON object.
    #[arg(value_name = "INPUT")]
    pub input: String,
    /// Judge as in a turn of this story, by its scope.
    #[arg(long, value_name = "ID", conflicts_with = "interactive")]
    pub story: Option<String>,
    /// Judge as in your own sessions instead of as in a run.
    #[arg(long)]
    pub interactive: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// List every rule: its name, its verdict, and where it was written.
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

/// Try every rule on its own examples.
///
/// A rule of yours that does not keep its examples makes the config unusable, so this finds it where every other command would.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  verdone policy test")]
pub(crate) struct PolicyTestArgs {}
