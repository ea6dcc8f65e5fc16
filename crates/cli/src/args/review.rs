//! The arguments of the commands about stories that a person has to look at.

use clap::Args;

/// List the stories that need a review, and why.
///
/// All checks of these stories pass, but a person has to look at them, for example because the result depends on changed tests or
/// configuration, because a changed file runs by itself later, or because the proof is weaker than the settings ask for. `verdone
/// accept` accepts the work, `verdone reject` drops it. Neither costs another attempt.
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
/// Its checks run once more, on top of everything that the run has committed since. If they pass, the work is committed on the
/// run's branch and your name is recorded with the reasons that you were shown; if not, nothing changes. Agents cannot accept,
/// and nobody can while a run is in progress.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone accept US-003
  verdone land                      then bring it to your branch")]
pub(crate) struct AcceptArgs {
    /// The story.
    #[arg(value_name = "STORY")]
    pub story: String,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Drop the work of a story that needs a review; the story fails.
///
/// The work is kept under a ref until `verdone prune`. If later stories were built on it, they are re-applied and verified
/// without it; if that is not possible, nothing changes. The next `verdone run` tries the story again.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone reject US-003")]
pub(crate) struct RejectArgs {
    /// The story.
    #[arg(value_name = "STORY")]
    pub story: String,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// List the protected files, and why they are protected.
///
/// Protected files judge the work: tests, test data, the configuration of tests, linters, builds and CI, and scripts that a check
/// runs. A story may change them, but its checks also have to pass with the versions from before it. `[protect]` in the config
/// adds files or excludes them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone protect                   every protected file of the last commit
  verdone protect src               every file below src, protected or not
  verdone protect pytest.ini        one file; it need not exist yet")]
pub(crate) struct ProtectArgs {
    /// A file or folder.
    #[arg(value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    pub path: Option<std::path::PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
