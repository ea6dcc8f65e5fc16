//! `verdone prune`.

use verdone_report::plural;
use verdone_runtime::git::Git;
use verdone_runtime::run::prune::prune;
use verdone_runtime::session::FORGOTTEN_DAYS;

use super::{Context, Outcome};
use crate::args::PruneArgs;
use crate::terminal::print;

pub(super) fn run(args: &PruneArgs, context: &Context) -> Outcome {
    let project = context.project_of_loops()?;
    let pruned = prune(&Git::open(&project.root)?, &project.root, args.keep, args.dry_run)?;
    let done = if args.dry_run { "Would delete" } else { "Deleted" };
    let runs = plural(pruned.runs.len(), "run", "runs");
    let sessions = if pruned.sessions > 0 {
        format!(" and records of hook calls in {}", plural(pruned.sessions, "session", "sessions"))
    } else {
        String::new()
    };
    print(&format!("{done} files of {runs}{sessions}, {} KB. The journals stay.\n", pruned.bytes.div_ceil(1024)))?;
    if pruned.attempts > 0 {
        print(&format!("{done} {}.\n", plural(pruned.attempts, "kept attempt", "kept attempts")))?;
    }
    if !pruned.branches.is_empty() {
        let branches = plural(pruned.branches.len(), "landed branch", "landed branches");
        print(&format!("{done} {branches}: {}.\n", pruned.branches.join(", ")))?;
    }
    if pruned.loops > 0 {
        let loops = plural(pruned.loops, "loop", "loops");
        print(&format!("{done} {loops} of sessions silent for {FORGOTTEN_DAYS} days, or of projects that no longer exist.\n"))?;
    }
    Ok(0)
}
