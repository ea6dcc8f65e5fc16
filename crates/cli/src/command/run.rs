//! `verdone run`.

use super::{Context, Outcome, not_wired};
use crate::args::RunArgs;

pub(super) fn run(args: &RunArgs, context: &Context) -> Outcome {
    let project = context.project()?;
    let _settings = context.settings(&project, &args.flags())?;
    Err(not_wired("run"))
}
