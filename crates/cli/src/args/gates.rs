//! The arguments of `verdone gates`.

use clap::Args;

/// List the gates in the order they run, with their results.
///
/// Shows a result if there is one for the current files; runs nothing.
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
