//! `verdone checkpoints`.

use jiff::tz::TimeZone;

use super::latest::{latest, view};
use super::{Context, Outcome};
use crate::args::CheckpointsArgs;
use crate::terminal::print;

pub(super) fn run(args: &CheckpointsArgs, context: &Context) -> Outcome {
    let CheckpointsArgs {} = args;
    let (_, stored) = latest(context)?;
    print(&verdone_report::checkpoints(&view(&stored)?, &TimeZone::system(), &context.terminal.report_style()))?;
    Ok(0)
}
