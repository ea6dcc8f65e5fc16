//! Arguments of the commands that verify and list checks by hand.

use clap::{Args, ValueEnum};

/// Verify the checkout as it is now, or a range of commits.
///
/// Needs no run and changes nothing: no mark in the plan, no commit. Checks run in private workspaces, never in the checkout.
///
/// Without --base, the work is everything that is not committed, new files included. All gates run, and with STORY its own checks.
/// What was seen before of the very same files is not run again, unless --no-cache is given.
///
/// With --base, the work is what the commits since REF changed, whoever made them. Settings and gates come from REF, never from the
/// work, and so does the story if REF has it. Needs no `.verdone/runs`: made for CI.
///
/// Ends with 0 when the work is done, 1 when a check fails or gives no answer, 4 when a person has to look at it, 2 for wrong usage.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone verify                       the checkout, all gates
  verdone verify US-003                and the checks of this story
  verdone verify --stage quality       the gates of one stage
  verdone verify --base origin/main    the commits of a pull request
  verdone verify --base origin/main --format github")]
pub(crate) struct VerifyArgs {
    /// Run this story's own checks too.
    #[arg(value_name = "STORY")]
    pub story: Option<String>,
    /// Verify the commits since REF. If they branched off earlier, they are compared with where they did.
    #[arg(long, value_name = "REF")]
    pub base: Option<String>,
    /// The last commit to verify, instead of the present one.
    #[arg(long, value_name = "REF", requires = "base")]
    pub head: Option<String>,
    /// Run only the gates of this stage.
    #[arg(long, value_name = "STAGE")]
    pub stage: Option<String>,
    /// Run everything, whatever is known of these files.
    #[arg(long, conflicts_with = "base")]
    pub no_cache: bool,
    /// What to print.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = VerifyFormat::Human)]
    pub format: VerifyFormat,
    /// The same as `--format json`.
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum VerifyFormat {
    /// A page for people.
    Human,
    /// Everything that was found, with the exit code.
    Json,
    /// `JUnit` XML: a suite for each tree, a case for each check.
    Junit,
    /// Commands of a GitHub workflow, and a summary of the step.
    Github,
}

impl VerifyArgs {
    pub(crate) fn wanted(&self) -> VerifyFormat {
        if self.json { VerifyFormat::Json } else { self.format }
    }
}

/// List the gates in the order in which they run, with what is known of them.
///
/// The last result is the one for the files as they are now; nothing is run.
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
