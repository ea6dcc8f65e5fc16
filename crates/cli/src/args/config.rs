//! Arguments of `verdone config`.

use clap::{Args, Subcommand};

/// Show the current settings, or their schema.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  verdone config show
  verdone config schema > config.schema.json")]
pub(crate) enum ConfigCommand {
    Show(ConfigShowArgs),
    Schema(ConfigSchemaArgs),
}

/// Show every setting with its value and where it comes from.
///
/// Later sources override earlier ones: the defaults; the variables `MAX_ITERATIONS`, `TIMEOUT_AGENT`, `PLAN_PATH`, `PROGRESS_PATH`,
/// `PRD_NUMBER` and `RALPH_ROOT`, if there is a `.ralph/` folder; `.verdone/config.toml`; flags.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone config show
  verdone config show --json")]
pub(crate) struct ConfigShowArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Print the JSON Schema of `.verdone/config.toml`.
///
/// Editors that support JSON Schema for TOML can use it to complete and check the file.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  verdone config schema > config.schema.json")]
pub(crate) struct ConfigSchemaArgs {}
