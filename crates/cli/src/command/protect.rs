//! `verdone protect`.

use verdone_runtime::git::Git;
use verdone_runtime::project::config_file::Flags;
use verdone_runtime::verify::checks::gates;
use verdone_runtime::verify::{ListedFile, ListedRole, Listing, ListingRequest, listing};

use super::{Context, Outcome};
use crate::args::ProtectArgs;
use crate::error::CliError;
use crate::terminal::{print, print_json, printable_line};

pub(super) fn run(args: &ProtectArgs, context: &Context) -> Outcome {
    let project = context.project()?;
    let config = context.settings(&project, &Flags::default())?.resolved.config;
    let git = Git::open(&project.root)?;
    let path = args.path.as_ref().map(|path| context.start.join(path));
    if let Some(path) = path.as_ref().filter(|path| git.repo_path(path).is_none()) {
        return Err(CliError::usage(format!("{} is not in this repository", path.display())));
    }
    let gates = gates(&config);
    let request =
        ListingRequest { git: &git, settings: &config.protect, gates: &gates, root: &project.root, path: path.as_deref() };
    let found = listing(&request)?;
    if args.json {
        print_json(&serde_json::json!(found))?;
    } else {
        print(&text(&found))?;
    }
    Ok(0)
}

fn text(found: &Listing) -> String {
    let Listing { ecosystems, files } = found;
    let mut out = match ecosystems.as_slice() {
        [] => "Conventions of: any project\n".to_owned(),
        known => format!("Conventions of: {}\n", known.join(", ")),
    };
    if files.is_empty() {
        out.push_str("Nothing is protected yet.\n");
    }
    let width = files.iter().map(|file| printable_line(&file.path).chars().count()).max().unwrap_or(0).min(60);
    for file in files {
        out.push_str(&format!("{:<9}  {:<width$}  {}\n", role(file), printable_line(&file.path), why(file)));
    }
    out
}

fn role(file: &ListedFile) -> &'static str {
    match file.role {
        ListedRole::Protected => "protected",
        ListedRole::Partly => "partly",
        ListedRole::Work => "work",
    }
}

fn why(file: &ListedFile) -> String {
    let mut parts = vec![printable_line(&file.why)];
    if file.released {
        parts.push("every story may change it".to_owned());
    }
    if file.autorun && !file.why.contains("runs outside") {
        parts.push("runs outside the workspace later".to_owned());
    }
    if !file.exists {
        parts.push("not in the last commit".to_owned());
    }
    parts.join("; ")
}
