//! `verdone undo`.

use verdone_report::plural;
use verdone_runtime::git::Git;
use verdone_runtime::undo;

use super::{Context, Outcome};
use crate::args::UndoArgs;
use crate::terminal::{print, printable};

pub(super) fn run(args: &UndoArgs, context: &Context) -> Outcome {
    let UndoArgs {} = args;
    let project = context.project()?;
    let git = Git::open(&project.root)?;
    let undone = undo::undo(&git, &project.root)?;
    let files = plural(undone.files as usize, "file", "files");
    print(&printable(&format!("Undone: {} ({files} changed). `verdone undo` takes this back.\n", undone.what)))?;
    Ok(0)
}
