//! `verdone checkpoints`.

use jiff::tz::TimeZone;
use verdone_runtime::git::Git;

use super::latest::{latest, view};
use super::{Context, Outcome};
use crate::args::CheckpointsArgs;
use crate::terminal::{print, say};

pub(super) fn run(args: &CheckpointsArgs, context: &Context) -> Outcome {
    let CheckpointsArgs {} = args;
    let (project, stored) = latest(context)?;
    if !Git::open(&project.root)?.runs_with_refs()?.iter().any(|run| run == stored.id.as_str()) {
        say(&format!("run {} keeps nothing: it took no checkpoint, or was pruned\n", stored.id));
        return Ok(0);
    }
    print(&verdone_report::checkpoints(&view(&stored)?, &TimeZone::system(), &context.terminal.report_style()))?;
    Ok(0)
}
