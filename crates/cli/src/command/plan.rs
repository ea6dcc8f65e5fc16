//! `verdone plan`: one file a subcommand.

mod approve;
mod lint;
mod new;
mod show;

use super::{Context, Outcome, not_wired};
use crate::args::PlanCommand;

pub(super) fn run(command: &PlanCommand, context: &Context) -> Outcome {
    match command {
        PlanCommand::New(args) => new::run(args, context),
        PlanCommand::Approve(args) => approve::run(args, context),
        PlanCommand::Lint(args) => lint::run(args, context),
        PlanCommand::Show(args) => show::run(args, context),
    }
}
