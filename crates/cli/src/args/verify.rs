//! Arguments of the commands that verify and list checks by hand.

use clap::{Args, ValueEnum};

/// Verify the checkout as it is now, or a range of commits.
///
/// Needs no run and changes nothing: no mark in the plan, no commit. Checks run in private workspaces, never in the checkout.
///
/// Without --base, the work is everything that is not committed, new files included. All gates run, and with STORY its own
/// checks, too. A check that already has a result for exactly these files does not run again, unless --no-cache is given.
///
/// With --base, the work is what the commits since REF changed, whoever made them. Settings and gates come from REF, never from the
/// work, and so does the story if REF has it. Needs no `.verdone/runs`: made for CI.
///
/// Ends with 0 if the work is done, 1 if a check fails or gives no answer, 4 if the work needs a review or there is nothing to
/// verify, 2 for wrong usage.
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
    /// Verify the commits since REF. If REF has moved on, they are compared with the commit where they branched off.
    #[arg(long, value_name = "REF")]
    pub base: Option<String>,
    /// The last commit to verify, instead of HEAD.
    #[arg(long, value_name = "REF", requires = "base")]
    pub head: Option<String>,
    /// Run only the gates of this stage.
    #[arg(long, value_name = "STAGE")]
    pub stage: Option<String>,
    /// Run every check, even if it has a result for these files.
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
    /// Text for people.
    Human,
    /// Everything that was found, with the exit code.
    Json,
    /// `JUnit` XML: a suite for each tree, a case for each check.
    Junit,
    /// Annotations for a GitHub workflow, and the step summary.
    Github,
}

impl VerifyArgs {
    pub(crate) fn wanted(&self) -> VerifyFormat {
        if self.json { VerifyFormat::Json } else { self.format }
    }
}

/// List the gates in the order in which they run, with their results.
///
/// A result is shown if there is one for the files as they are now; nothing is run.
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
