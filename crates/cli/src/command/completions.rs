//! `verdone completions`.

use clap::CommandFactory as _;

use super::Outcome;
use crate::args::{Cli, CompletionsArgs};
use crate::terminal::print_verbatim;

pub(super) fn run(args: &CompletionsArgs) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "verdone", &mut script);
    print_verbatim(&String::from_utf8_lossy(&script))?;
    Ok(0)
}
