//! `verdone plan show`.

use super::{Context, Outcome, not_wired};
use crate::args::PlanShowArgs;

pub(super) fn run(args: &PlanShowArgs, context: &Context) -> Outcome {
    let _ = (args, context);
    Err(not_wired("plan show"))
}
