//! `verdone prune`.

use verdone_report::plural;
use verdone_runtime::git::Git;
use verdone_runtime::prune::prune;

use super::{Context, Outcome};
use crate::args::PruneArgs;
use crate::terminal::print;

pub(super) fn run(args: &PruneArgs, context: &Context) -> Outcome {
    let project = context.project()?;
    let pruned = prune(&Git::open(&project.root)?, &project.root, args.keep, args.dry_run)?;
    let done = if args.dry_run { "Would delete" } else { "Deleted" };
    let runs = plural(pruned.runs.len(), "run", "runs");
    print(&format!("{done} what {runs} kept, {} KB. Their journals stay.\n", pruned.bytes.div_ceil(1024)))?;
    Ok(0)
}
