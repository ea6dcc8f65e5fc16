//! `verdone show`.

use super::{Context, Outcome, not_wired};
use crate::args::ShowArgs;

pub(super) fn run(args: &ShowArgs, context: &Context) -> Outcome {
    let _ = (args, context);
    Err(not_wired("show"))
}
