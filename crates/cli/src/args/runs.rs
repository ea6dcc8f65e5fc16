//! Which run a command looks at, and `verdone runs`.

use clap::Args;

/// Which run a command looks at.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RunArg {
    /// Look at this run: an id from `verdone runs`, its start or end, or `last`, `last-1` and so on.
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,
}

/// List the runs and session loops of this project, newest first.
///
/// Shows when each one started, its plan, its results, and whether its commits have landed. The other commands take a run's id as
/// `--run ID`; its last four characters are enough.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone runs
  verdone runs --limit 100
  verdone show --run last-1     the stories of the run before the last one")]
pub(crate) struct RunsArgs {
    /// How many runs to list.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: usize,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
