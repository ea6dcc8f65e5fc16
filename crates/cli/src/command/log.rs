//! `verdone log`.

use super::{Context, Outcome, not_wired};
use crate::args::LogArgs;

pub(super) fn run(args: &LogArgs, context: &Context) -> Outcome {
    let _ = (args, context);
    Err(not_wired("log"))
}
