//! `verdone doctor`.

use super::{Context, Outcome, not_wired};
use crate::args::DoctorArgs;

pub(super) fn run(args: &DoctorArgs, context: &Context) -> Outcome {
    let _ = (args, context);
    Err(not_wired("doctor"))
}
