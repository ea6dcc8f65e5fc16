//! Arguments of `verdone help`.

use clap::Args;

/// Read a page of the manual, or the help of a command.
///
/// Without a topic, lists the commands and the topics. The pages are those of `docs/`, for a terminal.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone help                 all commands and topics
  verdone help plans           how to write a plan
  verdone help checks          checks, gates and proofs
  verdone help run             the help of `verdone run`")]
pub(crate) struct HelpArgs {
    /// A topic, or a command.
    #[arg(value_name = "TOPIC")]
    pub topic: Vec<String>,
}
