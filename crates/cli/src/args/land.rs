//! The arguments of `verdone land`.

use clap::Args;

/// Bring a run's commits to your branch.
///
/// Fast-forwards the branch that the run began on, exactly where `git merge --ff-only` would, or says why not and changes nothing; if
/// you are on another branch now, your files stay as they are. If your branch has moved on, the commits are first re-applied on top of it and every check runs again. Files that you are
/// editing are never overwritten.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone land                      the last run
  verdone land verdone/20260101-120000-0a1b
  verdone land --dry-run            say what would land")]
pub(crate) struct LandArgs {
    /// The run's branch; else that of the last run with commits to land.
    #[arg(value_name = "BRANCH")]
    pub branch: Option<String>,
    /// Say what would be landed; change nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
