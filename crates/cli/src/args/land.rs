//! The arguments of `verdone land`.

use clap::Args;

/// Take over the commits of a run that worked in a worktree of its own.
///
/// Fast-forwards the current branch to the branch of the worktree that `verdone run --worktree` made, or says why that cannot be and
/// changes nothing. Then the runs in it move to this checkout, and the worktree is removed, unless it holds untracked or ignored
/// files: those are in no commit, so it stays. The branch is kept.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone land
  verdone land verdone/PLAN         where there is more than one worktree
  verdone land --remove             remove the worktree with its ignored files")]
pub(crate) struct LandArgs {
    /// The branch to land; only needed where there is more than one worktree.
    #[arg(value_name = "BRANCH")]
    pub branch: Option<String>,
    /// Leave the worktree and its runs where they are.
    #[arg(long)]
    pub keep: bool,
    /// Remove the worktree although ignored files are in it.
    #[arg(long, conflicts_with = "keep")]
    pub remove: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
