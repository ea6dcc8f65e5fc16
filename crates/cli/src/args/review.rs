//! Arguments of the commands about stories that need a review.

use clap::Args;

/// List the stories that need a review, and why.
///
/// All checks of these stories pass, but a person must look at them. For example, the result depends on changed tests or configuration, a
/// changed file runs automatically later, or the proof is weaker than the settings require. `verdone accept` accepts the work, `verdone
/// reject` drops it. Neither costs another attempt.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone review                    all of them, with the reasons
  verdone review US-003             one of them, with its diff
  verdone review --json

The exit code is 0, even if nothing needs a review.")]
pub(crate) struct ReviewArgs {
    /// Show this story with its diff.
    #[arg(value_name = "STORY")]
    pub story: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Accept the work of a story that needs a review.
///
/// Runs its checks again, on top of everything that the run has committed since. If they pass, the work is committed on the run's branch,
/// and your name is recorded with the reasons you were shown. Otherwise nothing changes. Agents cannot accept work, and accepting is not
/// possible while a run is in progress.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone accept US-003
  verdone land                      then bring it to your branch")]
pub(crate) struct AcceptArgs {
    /// The story's id.
    #[arg(value_name = "STORY")]
    pub story: String,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Drop the work of a story that needs a review; the story fails.
///
/// The work is kept under a ref until `verdone prune`. If later stories were built on it, they are re-applied and verified without it; if
/// that is not possible, nothing changes. The next `verdone run` tries the story again.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone reject US-003")]
pub(crate) struct RejectArgs {
    /// The story's id.
    #[arg(value_name = "STORY")]
    pub story: String,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// List the protected files, and why they are protected.
///
/// Protected files judge the work: tests, test data, the configuration of tests, linters, builds and CI, and the scripts that checks run. A
/// story may change them, but its checks must also pass with the previous versions. Use `[protect]` in the config to add or exclude files.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone protect                   every protected file of the last commit
  verdone protect src               every file below src, protected or not
  verdone protect pytest.ini        one file; it need not exist yet")]
pub(crate) struct ProtectArgs {
    /// Only this file or folder.
    #[arg(value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    pub path: Option<std::path::PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
