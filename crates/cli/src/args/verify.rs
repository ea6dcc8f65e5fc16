//! The arguments of `verdone verify`.

use clap::{Args, ValueEnum};

/// Verify the current checkout, or a range of commits.
///
/// Needs no run and changes nothing: it neither marks the plan nor commits. Checks run in private workspaces, never in the checkout.
///
/// Without --base, the work is everything uncommitted, including new files. All gates run and, with STORY, its own checks, too. A check
/// that already has a result for exactly these files does not run again, unless --no-cache is given.
///
/// With --base, the work is what the commits since REF changed, whoever made them. Settings and gates come from REF, never from the work,
/// and so does the story if REF has it. Does not need `.verdone/runs`, so it works in CI.
///
/// Exit code: 0 if the work is done, 1 if a check fails or gives no answer, 2 for wrong usage, 4 if the work needs a review or there is
/// nothing to verify.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone verify                       the checkout, all gates
  verdone verify US-003                and the checks of this story
  verdone verify --stage quality       the gates of one stage
  verdone verify --base origin/main    the commits of a pull request
  verdone verify --base origin/main --format github")]
pub(crate) struct VerifyArgs {
    /// Also run this story's own checks.
    #[arg(value_name = "STORY")]
    pub story: Option<String>,
    /// Verify the commits since REF. If REF has newer commits, the work is compared with the commit where it branched off.
    #[arg(long, value_name = "REF")]
    pub base: Option<String>,
    /// The last commit to verify. Default: HEAD.
    #[arg(long, value_name = "REF", requires = "base")]
    pub head: Option<String>,
    /// Run only the gates of this stage.
    #[arg(long, value_name = "STAGE")]
    pub stage: Option<String>,
    /// Run every check, even if it has a result for these files.
    #[arg(long, conflicts_with = "base")]
    pub no_cache: bool,
    /// The output format.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = VerifyFormat::Human)]
    pub format: VerifyFormat,
    /// Same as `--format json`.
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum VerifyFormat {
    /// Text for people.
    Human,
    /// The complete result, with the exit code.
    Json,
    /// `JUnit` XML: one suite per tree, one case per check.
    Junit,
    /// Annotations for a GitHub workflow, and the step summary.
    Github,
}

impl VerifyArgs {
    pub(crate) fn wanted(&self) -> VerifyFormat {
        if self.json { VerifyFormat::Json } else { self.format }
    }
}
