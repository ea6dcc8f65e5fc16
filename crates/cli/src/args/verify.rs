//! Arguments of the commands that run and list checks by hand.

use clap::Args;

/// Run the gates on the work tree as it is now, and a story's own checks.
///
/// Needs no run and changes nothing: no mark in the plan, no commit. What was seen before of the very same tree is not run again,
/// unless `--no-cache` is given. Every gate counts as due, whatever was changed.
///
/// The exit code is 0 when everything that counts passed, 1 when something is red, 4 when nothing could be told: nothing to verify,
/// no tests, a command that is not there.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone verify                     all gates
  verdone verify US-003              and the checks of this story
  verdone verify --stage quality     the gates of one stage
  verdone verify --no-cache --json")]
pub(crate) struct VerifyArgs {
    /// Run this story's own checks too.
    #[arg(value_name = "STORY")]
    pub story: Option<String>,
    /// Run only the gates of this stage.
    #[arg(long, value_name = "STAGE")]
    pub stage: Option<String>,
    /// Run everything, whatever is known of this tree.
    #[arg(long)]
    pub no_cache: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// List the gates in the order in which they run, with what is known of them.
///
/// The last column is the last result for the work tree as it is now; nothing is run.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone gates
  verdone gates --json")]
pub(crate) struct GatesArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
