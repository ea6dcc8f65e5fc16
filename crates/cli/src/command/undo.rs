//! `verdone undo`.

use verdone_runtime::git::Git;
use verdone_runtime::run::undo::undo;

use super::{Context, Outcome};
use crate::args::UndoArgs;
use crate::terminal::{print, printable};

pub(super) fn run(args: &UndoArgs, context: &Context) -> Outcome {
    let UndoArgs {} = args;
    let project = context.project()?;
    let undone = undo(&Git::open(&project.root)?, &project.root)?;
    let how = match &undone.reverted_by {
        Some((commit, branch)) => format!("reverted by {} on {branch}", commit.short()),
        None => "removed from the run's branch".to_owned(),
    };
    print(&printable(&format!("Undone: {} ({how}). {} is open again.\n", undone.what, undone.story)))?;
    Ok(0)
}
