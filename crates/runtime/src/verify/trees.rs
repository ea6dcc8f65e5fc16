//! The trees of a verification: the changes of an attempt, and the pristine and proof trees built from them.

use std::collections::{BTreeMap, BTreeSet};

use verdone_core::base::id::Oid;
use verdone_core::config::ProtectSettings;
use verdone_core::protect::{Change, Ecosystem, Entry, Protection, TreePlan, Version, plan_trees};
use verdone_core::verify::Tree;

use super::VerifyError;
use super::referenced_files::{could_be_named, with_named};
use crate::git::{Git, GitError, PathSet, RepoPath, Side, TreeChange, TreeFile};

/// A larger file is not split into parts: all of it is protected, or all of it is work.
const LARGEST_READ: u64 = 4 * 1024 * 1024;

/// The input for planning the trees.
#[derive(Debug)]
pub struct TreesRequest<'a> {
    pub git: &'a Git,
    pub settings: &'a ProtectSettings,
    /// The project's path below the top of the repository.
    pub folder: &'a str,
    /// The story's `Scope:`, relative to the project.
    pub scope: &'a [String],
    /// Scripts that checks run, relative to the project.
    pub check_scripts: &'a BTreeSet<String>,
    /// Files that the story's own checks inspect, relative to the project.
    pub subjects: &'a BTreeSet<String>,
    /// The commit that the run started from, if the run may have added files since.
    pub start: Option<&'a Oid>,
    /// Trees, or commits.
    pub base: &'a Oid,
    pub attempt: &'a Oid,
    /// Files that Verdone itself writes.
    pub ours: &'a PathSet,
}

/// The differences between base and attempt, and how to build the other trees from them.
#[derive(Debug)]
pub struct Trees {
    base: Oid,
    attempt: Oid,
    plan: TreePlan,
    /// Changed paths before and after.
    old: BTreeMap<String, (RepoPath, Side)>,
    new: BTreeMap<String, (RepoPath, Side)>,
}

impl Trees {
    pub fn compare(request: &TreesRequest<'_>) -> Result<Self, VerifyError> {
        let TreesRequest { git, base, attempt, ours, .. } = *request;
        let changes: Vec<TreeChange> =
            git.tree_changes(base, attempt)?.into_iter().filter_map(|change| without_ours(change, ours)).collect();
        let protection = protection(request, &changes)?.with_added(&added_by_run(request)?);
        let changes_with_text = with_content(git, &protection, &changes)?;
        let plan = plan_trees(&protection, &changes_with_text);
        let (mut old, mut new) = (BTreeMap::new(), BTreeMap::new());
        for change in changes {
            if let Some(side) = change.old {
                let path = change.renamed_from.unwrap_or_else(|| change.path.clone());
                old.insert(path.to_string(), (path, side));
            }
            if let Some(side) = change.new {
                new.insert(change.path.to_string(), (change.path, side));
            }
        }
        Ok(Self { base: base.clone(), attempt: attempt.clone(), plan, old, new })
    }

    pub fn plan(&self) -> &TreePlan {
        &self.plan
    }

    /// Builds the pristine or proof tree. Base and attempt already exist.
    pub fn build(&self, git: &Git, tree: Tree) -> Result<Oid, GitError> {
        let (start, takes, unchanged) = match tree {
            Tree::Base => return Ok(self.base.clone()),
            Tree::Attempt => return Ok(self.attempt.clone()),
            Tree::Pristine => (&self.attempt, &self.plan.pristine, Version::Attempt),
            Tree::Proof => (&self.base, &self.plan.proof, Version::Base),
        };
        let mut files = Vec::new();
        for (path, take) in takes.iter().filter(|(_, take)| **take != unchanged) {
            files.push(self.file(git, path, take)?);
        }
        // A file that is replaced by a folder must be removed first.
        files.sort_by_key(|file| !file.is_gone());
        git.overlaid(Some(start), &files)
    }

    fn file(&self, git: &Git, path: &str, take: &Version) -> Result<TreeFile, GitError> {
        let side = match take {
            Version::Base => self.old.get(path),
            Version::Attempt => self.new.get(path),
            Version::Merged { mode, content } => {
                let id = git.keep_bytes(content)?;
                return Ok(TreeFile::new(self.repo_path(path), *mode, id));
            }
        };
        Ok(match side {
            Some((path, side)) => TreeFile::new(path.clone(), side.mode, side.id.clone()),
            None => TreeFile::gone(self.repo_path(path), &self.base),
        })
    }

    /// The real path for a displayed name. They differ if the name is not UTF-8.
    fn repo_path(&self, shown: &str) -> RepoPath {
        let known = self.new.get(shown).or_else(|| self.old.get(shown));
        known.map_or_else(|| RepoPath::from(shown), |(path, _)| path.clone())
    }
}

/// Removes the files that Verdone itself writes from a change. A file moved onto one of them counts as deleted.
fn without_ours(change: TreeChange, ours: &PathSet) -> Option<TreeChange> {
    let TreeChange { path, renamed_from, old, new } = change;
    let was_ours = renamed_from.as_ref().is_some_and(|from| ours.contains(from));
    match (renamed_from, ours.contains(&path)) {
        (None, true) => None,
        (Some(_), true) if was_ours => None,
        (Some(from), true) => Some(TreeChange { path: from, renamed_from: None, old, new: None }),
        (Some(_), false) if was_ours => Some(TreeChange { path, renamed_from: None, old: None, new }),
        (renamed_from, false) => Some(TreeChange { path, renamed_from, old, new }),
    }
}

/// Files of the base that were added by stories of this run.
fn added_by_run(request: &TreesRequest<'_>) -> Result<BTreeSet<String>, VerifyError> {
    let Some(start) = request.start else { return Ok(BTreeSet::new()) };
    let changed = request.git.changed_paths(Some(start), request.base)?;
    Ok(changed
        .into_iter()
        .filter(|change| change.change == crate::git::Change::Added)
        .map(|change| change.path.to_string())
        .collect())
}

/// The protected files, by the settings and the conventions of all ecosystems in base or attempt.
fn protection(request: &TreesRequest<'_>, changes: &[TreeChange]) -> Result<Protection, VerifyError> {
    let files = request.git.files_of(request.base)?;
    let names: Vec<String> = files.iter().map(|file| file.path.to_string()).collect();
    let added: Vec<String> = changes.iter().map(|change| change.path.to_string()).collect();
    let ecosystems = Ecosystem::present(names.iter().chain(&added).map(String::as_str));
    // If the story's check inspects a new script's output, the script is the subject of the work.
    let exists = |script: &String| {
        names.iter().any(|name| name.strip_prefix(request.folder).is_some_and(|rest| rest.trim_start_matches('/') == script))
    };
    let judges = |script: &&String| !request.subjects.contains(*script) || exists(script);
    let scripts: BTreeSet<String> = request.check_scripts.iter().filter(judges).cloned().collect();
    let protection = Protection::new(request.settings, &ecosystems, request.folder)
        .map_err(|error| GitError::Unexpected { what: "[protect]", detail: error.to_string() })?;
    let protection = protection.with_scope(request.scope).with_check_scripts(&scripts).with_subjects(request.subjects);
    let old = changes.iter().filter_map(|change| change.renamed_from.as_ref()).map(ToString::to_string);
    let touched: Vec<String> = old.chain(added.iter().cloned()).collect();
    if !could_be_named(touched.iter().map(String::as_str)) {
        return Ok(protection);
    }
    Ok(with_named(protection, request.git, &files, &added, request.folder)?)
}

/// The changes, with the contents of files that are split into parts.
fn with_content(git: &Git, protection: &Protection, changes: &[TreeChange]) -> Result<Vec<Change>, VerifyError> {
    let needs = |change: &TreeChange| {
        let paths = [Some(&change.path), change.renamed_from.as_ref()];
        paths.into_iter().flatten().any(|path| protection.needs_content(&path.to_string()))
    };
    let versions = changes.iter().filter(|change| needs(change)).flat_map(|change| [&change.old, &change.new]).flatten();
    let wanted: BTreeSet<String> =
        versions.filter(|side| side.mode & 0o170_000 == 0o100_000).map(|side| side.id.to_string()).collect();
    let wanted: Vec<String> = wanted.into_iter().collect();
    let sizes = git.sizes(&wanted.iter().map(String::as_str).collect::<Vec<_>>())?;
    let small: Vec<String> = wanted.into_iter().zip(sizes).filter(|(_, size)| *size <= LARGEST_READ).map(|(id, _)| id).collect();
    let texts: BTreeMap<String, Option<Vec<u8>>> = small.iter().cloned().zip(git.contents(&small)?).collect();
    let entry =
        |side: &Side| Entry { mode: side.mode, id: side.id.to_string(), content: texts.get(side.id.as_str()).cloned().flatten() };
    let change = |change: &TreeChange| Change {
        path: change.path.to_string(),
        base: change.old.as_ref().map(entry),
        attempt: change.new.as_ref().map(entry),
        renamed_from: change.renamed_from.as_ref().map(ToString::to_string),
    };
    Ok(changes.iter().map(change).collect())
}
