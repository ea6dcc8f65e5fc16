//! Arguments of `verdone land`.

use clap::Args;

/// Bring a run's commits to your branch.
///
/// Fast-forwards the branch that you were on when the run started, under the same conditions as `git merge --ff-only`. If that branch has
/// new commits, the run's commits are first re-applied on top of them and verified again. If landing is not possible, it says why and
/// changes nothing. Uncommitted changes are never overwritten; if you are on another branch now, no files change. A story that needs a
/// review lands after `verdone accept`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone land                      the only run with commits to land
  verdone land verdone/20260101-120000-0a1b
  verdone land --proof agent-tested stop before the first story without tests
  verdone land --dry-run            show what would land")]
pub(crate) struct LandArgs {
    /// The run's branch. Only needed if several runs have commits to land.
    #[arg(value_name = "BRANCH")]
    pub branch: Option<String>,
    /// Land only the commits before the first story whose proof is weaker than this: `verified`, `agent-tested` or `untested`.
    #[arg(long, value_name = "PROOF")]
    pub proof: Option<String>,
    /// Show what would be landed without changing anything.
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
