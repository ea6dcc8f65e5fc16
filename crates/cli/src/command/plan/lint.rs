//! `verdone plan lint`.

use super::{Context, Outcome, not_wired};
use crate::args::PlanLintArgs;

pub(super) fn run(args: &PlanLintArgs, context: &Context) -> Outcome {
    let _ = (args, context);
    Err(not_wired("plan lint"))
}
