//! `verdone config`: one file per subcommand.

mod schema;
mod show;

use super::{Context, Outcome};
use crate::args::ConfigCommand;

pub(super) fn run(command: &ConfigCommand, context: &Context) -> Outcome {
    match command {
        ConfigCommand::Show(args) => show::run(args, context),
        ConfigCommand::Schema(_) => schema::run(),
    }
}
