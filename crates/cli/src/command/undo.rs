//! `verdone undo`.

use verdone_core::base::id::StoryId;
use verdone_runtime::git::Git;
use verdone_runtime::project::Project;
use verdone_runtime::run::undo::{undo, undoable};

use super::{Context, Outcome};
use crate::args::UndoArgs;
use crate::terminal::{print, print_json, printable, printable_line, say};

pub(super) fn run(args: &UndoArgs, context: &Context) -> Outcome {
    let project = context.project()?;
    if args.list {
        return list(&project, args.json);
    }
    let story = args.story.as_deref().map(StoryId::from);
    let undone = undo(&Git::open(&project.root)?, &project.root, story.as_ref())?;
    let how = match &undone.reverted_by {
        Some((commit, branch)) => format!("reverted by {} on {branch}", commit.short()),
        None => "removed from the run's branch".to_owned(),
    };
    print(&printable(&format!("Undone: {} ({how}). {} is open again.\n", undone.what, undone.story)))?;
    Ok(0)
}

/// What can be undone, newest first.
fn list(project: &Project, json: bool) -> Outcome {
    let found = undoable(&project.root)?;
    if json {
        let list =
            found.iter().map(|found| serde_json::json!({ "story": found.story, "commit": found.commit, "run": found.run }));
        print_json(&serde_json::json!(list.collect::<Vec<_>>()))?;
        return Ok(0);
    }
    if found.is_empty() {
        say("there is nothing to undo\n");
    }
    for found in found {
        print(&(printable_line(&format!("{}  {}  run {}", found.story, found.commit.short(), found.run)) + "\n"))?;
    }
    Ok(0)
}
