//! `verdone report`.

use super::{Context, Outcome, not_wired};
use crate::args::ReportArgs;

pub(super) fn run(args: &ReportArgs, context: &Context) -> Outcome {
    let _ = (args, context);
    Err(not_wired("report"))
}
