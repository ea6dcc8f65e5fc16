//! `verdone status`.

use super::{Context, Outcome, not_wired};
use crate::args::StatusArgs;

pub(super) fn run(args: &StatusArgs, context: &Context) -> Outcome {
    let _ = (args, context);
    Err(not_wired("status"))
}
