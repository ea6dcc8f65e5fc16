//! `verdone plan new`.

use super::{Context, Outcome, not_wired};
use crate::args::PlanNewArgs;

pub(super) fn run(args: &PlanNewArgs, context: &Context) -> Outcome {
    let _ = (args, context);
    Err(not_wired("plan new"))
}
