//! `verdone undo`.

use super::{Context, Outcome, not_wired};
use crate::args::UndoArgs;

pub(super) fn run(args: &UndoArgs, context: &Context) -> Outcome {
    let _ = (args, context);
    Err(not_wired("undo"))
}
