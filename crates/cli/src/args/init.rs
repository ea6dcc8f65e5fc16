//! The arguments of `verdone init`.

use clap::Args;

/// Find this project's checks and write `.verdone/config.toml`.
///
/// Looks for Cargo, npm, pnpm, yarn, bun, pytest, tox, go, make, just, gradle, maven, rspec and bats, and adds a gate for each check that
/// is installed. Chooses the agent that is installed, and the plan; without a plan, it writes a starter plan. On a terminal it asks at most
/// three questions. It overwrites an existing config only with --force, and keeps a copy.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone init
  verdone init --yes        answer every question with yes
  verdone init --force      overwrite it; the old one becomes config.toml.bak
  verdone init --json       print as JSON what was written")]
pub(crate) struct InitArgs {
    /// Ask nothing: use what was found.
    #[arg(long, short)]
    pub yes: bool,
    /// Overwrite an existing config, and keep a copy of it.
    #[arg(long)]
    pub force: bool,
    /// Configure only the current folder, not the whole repository.
    #[arg(long)]
    pub here: bool,
    /// Also write templates of lifecycle scripts to `.verdone/hooks`.
    #[arg(long)]
    pub scripts: bool,
    /// Print what was written as JSON.
    #[arg(long)]
    pub json: bool,
}
