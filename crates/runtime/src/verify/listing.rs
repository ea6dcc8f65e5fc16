//! Lists what is protected in a project, file by file, and why: `verdone protect`.

use std::path::Path;

use serde::Serialize;
use verdone_core::check::Check;
use verdone_core::config::ProtectSettings;
use verdone_core::protect::{Ecosystem, Protection, Role, check_scripts};

use super::VerifyError;
use super::referenced_files::with_named;
use crate::git::{Git, GitError};

/// A file and its classification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListedFile {
    /// The path relative to the top of the repository.
    pub path: String,
    pub role: ListedRole,
    pub why: String,
    /// Whether it runs outside the workspace later.
    pub autorun: bool,
    /// Whether every story may change it.
    pub released: bool,
    /// Whether it is in the last commit.
    pub exists: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ListedRole {
    Protected,
    /// Some of its parts are protected.
    Partly,
    Work,
}

/// The input of a listing.
#[derive(Debug)]
pub struct ListingRequest<'a> {
    pub git: &'a Git,
    pub settings: &'a ProtectSettings,
    pub gates: &'a [Check],
    /// The project's root.
    pub root: &'a Path,
    /// A file or folder; absolute.
    pub path: Option<&'a Path>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listing {
    /// The ecosystems whose conventions apply.
    pub ecosystems: Vec<String>,
    pub files: Vec<ListedFile>,
}

/// All protected files of the last commit. With a path, all files at or below it, protected or not.
pub fn listing(request: &ListingRequest<'_>) -> Result<Listing, VerifyError> {
    let ListingRequest { git, settings, gates, root, path } = *request;
    let head = git.status()?.head;
    let files = head.map(|head| git.files_of(&head)).transpose()?.unwrap_or_default();
    let names: Vec<String> = files.iter().map(|file| file.path.to_string()).collect();
    let ecosystems = Ecosystem::present(names.iter().map(String::as_str));
    let folder = git.repo_path(root).map(|folder| folder.to_string()).unwrap_or_default();
    let protection = Protection::new(settings, &ecosystems, &folder)
        .map_err(|error| GitError::Unexpected { what: "[protect]", detail: error.to_string() })?;
    let protection = protection.with_check_scripts(&check_scripts(gates.iter().map(|gate| &gate.command)));
    let protection = with_named(protection, git, &files, &[], &folder)?;
    let wanted = path.and_then(|path| git.repo_path(path)).map(|path| path.to_string());
    let is_wanted = |name: &str| match &wanted {
        Some(wanted) => {
            wanted.is_empty() || name == wanted || name.strip_prefix(wanted.as_str()).is_some_and(|rest| rest.starts_with('/'))
        }
        None => true,
    };
    let mut found: Vec<ListedFile> =
        names.iter().filter(|name| is_wanted(name)).map(|name| one(&protection, name, true)).collect();
    match wanted {
        // How a new file at this path would be classified.
        Some(wanted) if found.is_empty() && !wanted.is_empty() => found.push(one(&protection, &wanted, false)),
        Some(_) => {}
        None => found.retain(|file| file.role != ListedRole::Work || file.autorun),
    }
    let ecosystems = ecosystems.iter().filter(|one| **one != Ecosystem::Any).map(|one| one.name().to_owned()).collect();
    Ok(Listing { ecosystems, files: found })
}

fn one(protection: &Protection, path: &str, exists: bool) -> ListedFile {
    let class = protection.classify(path, !exists);
    let role = match class.role {
        Role::Protected => ListedRole::Protected,
        Role::Split(_) => ListedRole::Partly,
        Role::Work if protection.needs_content(path) => ListedRole::Partly,
        Role::Work => ListedRole::Work,
    };
    let why = match role {
        // Rust files contain tests next to the code.
        ListedRole::Partly if class.role == Role::Work => "tests in the file are protected, the rest is work".to_owned(),
        ListedRole::Protected | ListedRole::Partly | ListedRole::Work => class.why.to_string(),
    };
    ListedFile {
        path: path.to_owned(),
        role,
        why,
        autorun: class.autorun.is_some(),
        released: protection.released(path).is_some(),
        exists,
    }
}
