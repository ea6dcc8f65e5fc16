//! Arguments of `verdone guardrails`.

use clap::Args;

/// List the lessons from failed attempts, with their history.
///
/// An attempt that fails or needs a review adds one line to `.verdone/guardrails.md`; later prompts get the lines that share a file or a check with
/// their story. Edit or delete lines in the file as you like: what you delete does not come back, and your own lines are never changed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone guardrails
  verdone guardrails --json")]
pub(crate) struct GuardrailsArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
