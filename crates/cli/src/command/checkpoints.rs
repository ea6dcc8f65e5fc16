//! `verdone checkpoints`.

use super::{Context, Outcome, not_wired};
use crate::args::CheckpointsArgs;

pub(super) fn run(args: &CheckpointsArgs, context: &Context) -> Outcome {
    let _ = (args, context);
    Err(not_wired("checkpoints"))
}
