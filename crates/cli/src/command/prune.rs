//! `verdone prune`.

use verdone_report::plural;
use verdone_runtime::git::Git;
use verdone_runtime::prune::prune;
use verdone_runtime::stop::FORGOTTEN_DAYS;

use super::{Context, Outcome};
use crate::args::PruneArgs;
use crate::terminal::{print, printable};

pub(super) fn run(args: &PruneArgs, context: &Context) -> Outcome {
    let project = context.project_of_loops()?;
    let pruned = prune(&Git::open(&project.root)?, &project.root, args.keep, args.dry_run)?;
    let done = if args.dry_run { "Would delete" } else { "Deleted" };
    let runs = plural(pruned.runs.len(), "run", "runs");
    let sessions = if pruned.sessions > 0 {
        format!(" and what hooks recorded of {}", plural(pruned.sessions, "session", "sessions"))
    } else {
        String::new()
    };
    print(&format!("{done} what {runs} kept{sessions}, {} KB. Their journals stay.\n", pruned.bytes.div_ceil(1024)))?;
    if pruned.clean_trees > 0 {
        let trees = plural(pruned.clean_trees, "clean tree", "clean trees");
        print(&format!("{done} {trees} that killed processes left, {} KB.\n", pruned.clean_bytes.div_ceil(1024)))?;
    }
    if pruned.loops > 0 {
        let loops = plural(pruned.loops, "loop", "loops");
        print(&format!(
            "{done} {loops} of sessions that were silent for {FORGOTTEN_DAYS} days, or of projects that are gone.\n"
        ))?;
    }
    for run in &pruned.with_changes {
        let text = format!(
            "Left alone: run {run} keeps uncommitted changes of yours. To let them go: git update-ref -d refs/verdone/{run}\n"
        );
        print(&printable(&text))?;
    }
    Ok(0)
}
