//! `verdone undo`.

use verdone_core::machine::PutBack;
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
    let undone = match undo::undo(&git, &project.root)? {
        undo::Outcome::Undone(undone) => undone,
        undo::Outcome::TakenBack { found } => {
            let text = "An undo was interrupted; the work tree is as it was before it. What was found is kept as";
            print(&printable(&format!("{text} {}. `verdone undo` undoes again.\n", found.id.short())))?;
            return Ok(0);
        }
    };
    let files = plural(undone.files as usize, "file", "files");
    print(&printable(&format!("Undone: {} ({files} changed). `verdone undo` takes this back.\n", undone.what)))?;
    match undone.changes {
        Some(PutBack::Refused { reason, overlap }) => {
            let overlap = if overlap.is_empty() { String::new() } else { format!(": {}", overlap.join(", ")) };
            let text = format!("Your own changes were not put back ({reason}{overlap}); `verdone undo` brings them back.\n");
            print(&printable(&text))?;
        }
        Some(PutBack::Done { .. }) | None => {}
    }
    Ok(0)
}
