//! The files that decide a check: what its command runs or names, of those that were there before the work.
//!
//! A check that was red and is green proves the work only if it is the same check. Where the work changed a file that decides it, the
//! check is asked once more with that file as it was; here is told which files those are, and what to put back. A program whose output
//! something else judges (`./greet | grep -q hello`) is the work and no decider, unless its name says that it judges.

mod follow;
mod makefile;
mod part;
mod runners;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::expected::scope_names;
use super::reach::package_script;
use super::watched::is_test_path;
use crate::pattern::path_fits;

pub use follow::deciders;
use makefile::decisive;
pub(super) use runners::is_runner;

/// A file of the tree from before, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Held {
    Text(String),
    /// A link to another path.
    Link(String),
}

/// The files from before that were asked for; none where there is no such file.
pub type HeldFiles = BTreeMap<String, Option<Held>>;

/// What decides some checks. Paths are relative to the top of the tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deciders {
    /// Scripts, test files and settings by their paths. A folder stands for the tests in it.
    pub files: BTreeSet<String>,
    /// Targets that are used, by makefile. Empty text is the first target.
    pub targets: BTreeMap<String, BTreeSet<String>>,
    /// Scripts that are used, by the `package.json` that they are in.
    pub scripts: BTreeMap<String, BTreeSet<String>>,
    /// Files that come before another, or change what it does, as soon as they are there: by their path, those others.
    pub rivals: BTreeMap<String, BTreeSet<String>>,
    /// Files that were not given and would tell more.
    pub wanted: BTreeSet<String>,
}

/// A path that differs between the tree from before and the work.
#[derive(Debug, Clone, Copy)]
pub struct Touched<'a> {
    pub path: &'a str,
    /// It was there before.
    pub existed: bool,
    /// Before and now; only asked for where `Deciders::reads` says so.
    pub old: Option<&'a str>,
    pub new: Option<&'a str>,
}

/// What makes a decider as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutBack {
    pub path: String,
    pub how: How,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum How {
    /// The file as it was, with its mode.
    AsItWas,
    /// It was not there.
    Away,
    /// The file of now with a part as it was.
    Text(String),
}

impl Deciders {
    /// Whether no file of the tree has a say.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.targets.is_empty() && self.scripts.is_empty()
    }

    /// Whether the file's text says whether the part of it that counts was changed.
    pub fn reads(&self, path: &str) -> bool {
        self.targets.contains_key(path) || self.scripts.contains_key(path) || self.is_read_by_pytest(path)
    }

    /// What has to be put back for these checks to be the same checks; `expected` says which files are meant to change.
    pub fn put_back(&self, touched: &[Touched<'_>], held: &HeldFiles, expected: &dyn Fn(&str) -> bool) -> Vec<PutBack> {
        let decides = touched.iter().filter(|it| !expected(it.path));
        decides.filter_map(|it| self.how(it, held).map(|how| PutBack { path: it.path.to_owned(), how })).collect()
    }

    fn how(&self, touched: &Touched<'_>, held: &HeldFiles) -> Option<How> {
        let path = touched.path;
        let (old, new) = (touched.old.unwrap_or_default(), touched.new);
        if self.is_read_by_pytest(path) && pytest_section(old) == pytest_section(new.unwrap_or_default()) {
            return None;
        }
        if !touched.existed {
            let was_there = |other: &String| held.get(other).is_some_and(Option::is_some);
            let mut others = self.rivals.iter().filter(|(rival, _)| path_fits(rival, path)).flat_map(|(_, others)| others);
            return others.any(was_there).then_some(How::Away);
        }
        if let Some(targets) = self.targets.get(path) {
            let same = new.is_some_and(|new| decisive(old, targets) == decisive(new, targets));
            return (!same).then_some(How::AsItWas);
        }
        if let Some(names) = self.scripts.get(path) {
            let Some(new) = new else { return Some(How::AsItWas) };
            let same = names.iter().all(|name| package_script(old, name) == package_script(new, name));
            return (!same).then(|| with_scripts_of(old, new, names).map_or(How::AsItWas, How::Text));
        }
        let decides =
            self.files.contains(path) || self.has_folder_of(path) || self.rivals.keys().any(|rival| path_fits(rival, path));
        decides.then_some(How::AsItWas)
    }

    /// Settings of many tools, of which a part is about the tests of a check.
    fn is_read_by_pytest(&self, path: &str) -> bool {
        self.rivals.contains_key(path) && matches!(path.rsplit('/').next(), Some("pyproject.toml" | "setup.cfg" | "tox.ini"))
    }

    /// Whether it is a test in a folder that a runner of tests is given.
    fn has_folder_of(&self, path: &str) -> bool {
        let mut folders = path.match_indices('/').map(|(at, _)| &path[..at]);
        is_test_path(path) && folders.any(|folder| self.files.contains(folder))
    }
}

/// Whether a story's scope, as seen from the top of the tree, means this file or these tests to change.
pub fn expects_change(scope: &[String], path: &str) -> bool {
    scope.iter().any(|scope| scope_names(scope, path, is_test_path(path)))
}

/// The part of such a file that pytest reads.
fn pytest_section(text: &str) -> Vec<&str> {
    let mut inside = false;
    let said = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    said.filter(|line| {
        if line.starts_with('[') && line.ends_with(']') {
            inside = line.contains("pytest");
        }
        inside
    })
    .collect()
}

/// A package.json with these scripts as another one has them. What it depends on stays: the work may need it.
fn with_scripts_of(old: &str, new: &str, names: &BTreeSet<String>) -> Option<String> {
    let mut package: Value = serde_json::from_str(new).ok()?;
    let scripts = package.as_object_mut()?.entry("scripts").or_insert_with(|| Value::Object(serde_json::Map::new()));
    let scripts = scripts.as_object_mut()?;
    for name in names {
        match package_script(old, name) {
            Some(script) => drop(scripts.insert(name.clone(), Value::String(script))),
            None => drop(scripts.remove(name)),
        }
    }
    serde_json::to_string_pretty(&package).ok()
}

#[cfg(test)]
mod tests;
