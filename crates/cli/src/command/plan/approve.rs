//! `verdone plan approve`.

use super::{Context, Outcome, not_wired};
use crate::args::PlanApproveArgs;

pub(super) fn run(args: &PlanApproveArgs, context: &Context) -> Outcome {
    let _ = (args, context);
    Err(not_wired("plan approve"))
}
