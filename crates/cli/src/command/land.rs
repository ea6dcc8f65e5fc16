//! `verdone land`.

use verdone_report::plural;
use verdone_runtime::git::Git;
use verdone_runtime::land::{Fate, LandRequest, Landed, Waiting, land, waiting};
use verdone_runtime::project::Project;

use super::{Context, Outcome};
use crate::args::LandArgs;
use crate::terminal::{print, print_json, printable_line};

pub(super) fn run(args: &LandArgs, context: &Context) -> Outcome {
    let request = LandRequest { branch: args.branch.as_deref(), keep: args.keep, remove: args.remove };
    let landed = land(&context.project()?, request)?;
    if args.json {
        print_json(&json(&landed))?;
    } else {
        print(&lines(&landed).iter().map(|line| printable_line(line) + "\n").collect::<String>())?;
    }
    Ok(0)
}

/// Worktrees of runs, seen from the user's own checkout; none where nothing can be said.
pub(super) fn worktrees(project: &Project) -> Vec<Waiting> {
    // In a linked worktree `.git` is a file, and landing is for the user's own checkout.
    if !project.git_top.join(".git/worktrees").is_dir() {
        return Vec::new();
    }
    Git::open(&project.git_top).ok().and_then(|git| waiting(&git).ok()).unwrap_or_default()
}

/// One of them in a line.
pub(super) fn note(waiting: &Waiting) -> String {
    let Waiting { branch, path, commits } = waiting;
    let commits = plural(*commits as usize, "commit", "commits");
    format!("the worktree {} has {commits} to land on branch {branch}", path.display())
}

fn lines(landed: &Landed) -> Vec<String> {
    let Landed { branch, into, from, to, commits, runs, worktree, fate } = landed;
    let mut lines = Vec::new();
    lines.push(if *commits == 0 {
        format!("Nothing to land: {into} has every commit of {branch}.")
    } else {
        let commits = plural(*commits as usize, "commit", "commits");
        format!("Landed {commits} of {branch} on {into}: {}..{}", from.short(), to.short())
    });
    if !runs.is_empty() {
        lines.push(format!("{} moved to .verdone/runs/ here.", plural(runs.len(), "run", "runs")));
    }
    let place = worktree.display();
    match fate {
        Fate::Removed => {
            lines.push(format!("The worktree {place} is removed; branch {branch} is kept (git branch -d {branch} deletes it)."));
        }
        Fate::Kept => lines.push(format!("The worktree {place} is kept, with its runs.")),
        Fate::Stays { reason, hint } => {
            lines.push(format!("The worktree {place} stays: {reason}"));
            lines.push(format!("Next: {hint}"));
        }
    }
    lines
}

fn json(landed: &Landed) -> serde_json::Value {
    let (fate, reason) = match &landed.fate {
        Fate::Removed => ("removed", None),
        Fate::Kept => ("kept", None),
        Fate::Stays { reason, .. } => ("stays", Some(reason)),
    };
    serde_json::json!({
        "branch": landed.branch,
        "into": landed.into,
        "from": landed.from,
        "to": landed.to,
        "commits": landed.commits,
        "runs": landed.runs,
        "worktree": { "path": landed.worktree, "fate": fate, "reason": reason },
    })
}
