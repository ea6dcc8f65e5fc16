//! `verdone demo`.

use super::{Context, Outcome, not_wired};
use crate::args::DemoArgs;

pub(super) fn run(args: &DemoArgs, context: &Context) -> Outcome {
    let _ = (args, context);
    Err(not_wired("demo"))
}
