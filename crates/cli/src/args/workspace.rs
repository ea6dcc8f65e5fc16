//! Arguments of `verdone workspace`.

use clap::{Args, Subcommand};

/// List and remove private workspaces, or start a shell in one.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  verdone workspace list
  verdone workspace shell           look around as the agent would
  verdone workspace remove NAME")]
pub(crate) enum WorkspaceCommand {
    List(WorkspaceListArgs),
    Shell(WorkspaceShellArgs),
    Remove(WorkspaceRemoveArgs),
}

/// List the workspaces on this machine.
///
/// Shows each workspace's name, whether a process is using it, its size and its project.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone workspace list
  verdone workspace list --json")]
pub(crate) struct WorkspaceListArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Start a shell, or run a command, in a temporary workspace.
///
/// The workspace contains the files of your last commit and shows what an agent would see: the same files and network, with credentials
/// hidden. Nothing you write there is kept. With --checks, it shows what a check would see. The exit code is that of the command.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone workspace shell
  verdone workspace shell --checks
  verdone workspace shell --checks --cold -- make test
  verdone workspace shell -- ls ~/.ssh")]
pub(crate) struct WorkspaceShellArgs {
    /// Show what checks see instead of what the agent sees.
    #[arg(long)]
    pub checks: bool,
    /// With --checks: start without any build output, as the final regression does.
    #[arg(long, requires = "checks")]
    pub cold: bool,
    /// The command to run instead of a shell.
    #[arg(value_name = "COMMAND", last = true)]
    pub command: Vec<std::ffi::OsString>,
}

/// Remove workspaces that no process is using.
///
/// A run removes its own workspace when it ends, and the next run removes those of killed runs. Use this command to free disk space now.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone workspace remove 20260101-120000-0a1b
  verdone workspace remove --all")]
pub(crate) struct WorkspaceRemoveArgs {
    /// The workspace's name, as shown by `verdone workspace list`.
    #[arg(value_name = "NAME", required_unless_present = "all")]
    pub name: Option<String>,
    /// Remove all workspaces that no process is using.
    #[arg(long, conflicts_with = "name")]
    pub all: bool,
}
