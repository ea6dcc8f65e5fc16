//! Arguments of `verdone notify`.

use clap::{Args, Subcommand};

/// Test the configured notifications.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Example:
  verdone notify test")]
pub(crate) enum NotifyCommand {
    Test(NotifyTestArgs),
}

/// Send a test notification through each configured channel.
///
/// Prints the result for each channel. The exit code is 0 if every channel worked, 1 if one did not, and 2 if `[notify]` in the config
/// names none.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone notify test
  verdone notify test --json")]
pub(crate) struct NotifyTestArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
