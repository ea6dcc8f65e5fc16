//! The command line: reads arguments, calls the other crates, prints. It makes no decisions about stories.

mod args;
mod command;
#[cfg(test)]
mod docs;
mod error;
mod help;
mod question;
mod terminal;

use std::process::ExitCode;

fn main() -> ExitCode {
    command::run_from(std::env::args_os().collect())
}
