//! Plans the pristine tree and the proof tree: for each changed path, which version goes into the tree.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::classify::{Protection, ProtectionReason, Release, Role, is_pre_commit, is_rust};
use super::inline_tests::{InlineTests, Unreadable, has_inline_tests};
use super::manifest::{Manifest, Merged, runs_on_install};

/// A file in a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The mode in git: `0o100644`, `0o100755`, `0o120000` for a link, `0o160000` for a submodule.
    pub mode: u32,
    /// Identifies the content.
    pub id: String,
    /// Only set if [`Protection::needs_content`] asks for it, and if the file is not too large to read.
    pub content: Option<Vec<u8>>,
}

impl Entry {
    fn is_file(&self) -> bool {
        self.mode & 0o170_000 == 0o100_000
    }
}

/// A path that differs between the base and the attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub path: String,
    /// The entry at `renamed_from`, if that is set.
    pub base: Option<Entry>,
    pub attempt: Option<Entry>,
    /// The file's path in the base.
    pub renamed_from: Option<String>,
}

/// Which version of a path goes into a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Version {
    /// As in the base, including its absence.
    Base,
    /// As in the attempt, including its absence.
    Attempt,
    /// Combined from both.
    Merged { mode: u32, content: Vec<u8> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    Added,
    Changed,
    Deleted,
    Renamed,
    /// Only the mode changed.
    Mode,
}

/// A change to a file that judges the work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtectedChange {
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<String>,
    pub kind: ChangeKind,
    pub why: ProtectionReason,
    /// What allows the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released: Option<Release>,
    /// The file later runs outside the workspace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub autorun: bool,
}

/// Both trees, and the protected files among the changes. Paths that are not listed are the same in base and attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreePlan {
    /// Base with only the attempt's work.
    pub pristine: BTreeMap<String, Version>,
    /// Base with only the attempt's protected files.
    pub proof: BTreeMap<String, Version>,
    pub protected_changes: Vec<ProtectedChange>,
}

/// Plans both trees.
pub fn plan_trees(protection: &Protection, changes: &[Change]) -> TreePlan {
    let is_tested = |entry: &Entry| content(Some(entry)).is_some_and(has_inline_tests);
    let rust = || changes.iter().filter(|change| is_rust(&change.path));
    let adds_tests = rust().any(|change| change.base.is_none() && change.attempt.as_ref().is_some_and(is_tested));
    // A renamed file keeps its old path in the proof tree, so a line that declares the new module would break the build.
    let new_modules = adds_tests && rust().all(|change| change.renamed_from.is_none());
    let mut planner = Planner { protection, new_modules, plan: TreePlan::default() };
    for change in changes {
        planner.change(change);
    }
    let Planner { mut plan, .. } = planner;
    resolve_file_folder_conflicts(&mut plan, changes);
    plan.protected_changes.sort_by(|a, b| a.path.cmp(&b.path));
    plan
}

struct Planner<'a> {
    protection: &'a Protection,
    /// The attempt has new Rust files with tests, so the proof tree gets the lines that declare them.
    new_modules: bool,
    plan: TreePlan,
}

impl Planner<'_> {
    fn change(&mut self, change: &Change) {
        let old_path = change.renamed_from.as_ref().filter(|old| **old != change.path);
        let is_new = change.base.is_none() || old_path.is_some();
        let class = self.protection.classify(&change.path, is_new);
        let autorun = class.autorun.is_some() && !is_version_bump(change);
        let is_set = matches!(class.why, ProtectionReason::Setting { .. });
        match (class.role, old_path) {
            (Role::Work, None) if is_rust(&change.path) && !is_set => self.rust(change),
            (Role::Work, Some(old)) if is_rust(&change.path) && !is_set && self.is_rust_work(old) => self.rust(change),
            // A manifest belongs to its folder: moving it removes one package and adds another.
            (Role::Split(manifest), None) => self.manifest(change, manifest),
            (role, Some(old)) => self.renamed(change, old, role, class.why, autorun),
            (Role::Work, None) => {
                self.take_work(&change.path);
                if autorun {
                    self.report(change, class.why, self.protection.released(&change.path), true);
                }
            }
            (Role::Protected, None) => self.protect(change, class.why, autorun),
        }
    }

    fn is_rust_work(&self, path: &str) -> bool {
        is_rust(path) && self.protection.classify(path, false).role == Role::Work
    }

    /// If a rename changes the role, treat it as a deletion and an addition.
    fn renamed(&mut self, change: &Change, old: &str, role: Role, why: ProtectionReason, autorun: bool) {
        let before = self.protection.classify(old, false);
        let gone = Change { path: old.to_owned(), base: change.base.clone(), attempt: None, renamed_from: None };
        let added = Change { path: change.path.clone(), base: None, attempt: change.attempt.clone(), renamed_from: None };
        let is_plain =
            |role: Role, path: &str| matches!(role, Role::Work | Role::Protected) && !(role == Role::Work && is_rust(path));
        if !is_plain(role, &change.path) || !is_plain(before.role, old) {
            self.change(&gone);
            self.change(&added);
            return;
        }
        let sides = [(old, before.role), (change.path.as_str(), role)];
        let protected: Vec<&str> = sides.iter().filter(|(_, role)| *role == Role::Protected).map(|(path, _)| *path).collect();
        let releases: Option<Vec<Release>> = protected.iter().map(|path| self.protection.released(path)).collect();
        for (path, role) in sides {
            match role {
                Role::Protected if releases.is_none() => self.take_protected(path),
                Role::Protected => self.take_released(path),
                Role::Work | Role::Split(_) => self.take_work(path),
            }
        }
        let autorun = autorun || before.autorun.is_some();
        if !protected.is_empty() || autorun {
            let why = if before.role == Role::Protected { before.why } else { why };
            self.report(change, why, releases.and_then(|list| list.into_iter().next()), autorun);
        }
    }

    fn protect(&mut self, change: &Change, why: ProtectionReason, autorun: bool) {
        let released = self.protection.released(&change.path);
        match released {
            Some(_) => self.take_released(&change.path),
            None => self.take_protected(&change.path),
        }
        self.report(change, why, released, autorun);
    }

    fn manifest(&mut self, change: &Change, manifest: Manifest) {
        let sides = [&change.base, &change.attempt];
        if sides.iter().any(|side| side.as_ref().is_some_and(|entry| !entry.is_file() || entry.content.is_none())) {
            let reason = "not a file that can be read".to_owned();
            return self.protect(change, ProtectionReason::Unreadable { reason }, false);
        }
        let (base, attempt) = (content(change.base.as_ref()), content(change.attempt.as_ref()));
        let merged = manifest.for_pristine(base, attempt).and_then(|pristine| Ok((pristine, manifest.for_proof(base, attempt)?)));
        let (pristine, proof) = match merged {
            Ok(merged) => merged,
            Err(error) => return self.protect(change, ProtectionReason::Unreadable { reason: error.to_string() }, false),
        };
        let mode_changed = is_mode_change(change);
        let Some(keys) = manifest.protected_change(base, attempt).or_else(|| mode_changed.then(Vec::new)) else {
            return self.take_work(&change.path);
        };
        let is_run = |key: &super::KeyPath| match key.0.as_slice() {
            [scripts, name, ..] => scripts == "scripts" && runs_on_install(name),
            [..] => false,
        };
        let autorun = manifest == Manifest::PackageJson && keys.iter().any(is_run);
        let released = self.protection.released(&change.path);
        if released.is_some() {
            self.take_released(&change.path);
        } else if mode_changed {
            self.take_protected(&change.path);
        } else {
            let mode = change.base.as_ref().or(change.attempt.as_ref()).map_or(0o100_644, |entry| entry.mode);
            self.plan.pristine.insert(change.path.clone(), to_version(pristine, mode));
            self.plan.proof.insert(change.path.clone(), to_version(proof, mode));
        }
        let why = if keys.is_empty() { ProtectionReason::Manifest } else { ProtectionReason::Keys { keys } };
        self.report(change, why, released, autorun);
    }

    /// A Rust file that is work, except for its test items.
    fn rust(&mut self, change: &Change) {
        let sides = [change.base.as_ref(), change.attempt.as_ref()];
        let [base_text, attempt_text] = sides.map(content);
        let tested = [base_text, attempt_text].map(|text| text.is_some_and(has_inline_tests));
        let unread = sides.into_iter().flatten().any(|entry| entry.is_file() && entry.content.is_none());
        let replaced = tested[0] && sides[1].is_some_and(|entry| !entry.is_file());
        if unread || replaced {
            return self.protect_rust(change, ProtectionReason::Unreadable { reason: "not a file that can be read".to_owned() });
        }
        let parts = InlineTests::read_side(base_text).and_then(|base| Ok((base, InlineTests::read_side(attempt_text)?)));
        match parts.and_then(|(base, attempt)| self.rust_parts(change, &base, &attempt)) {
            Ok(()) => {}
            Err(error) if tested.contains(&true) => {
                self.protect_rust(change, ProtectionReason::Unreadable { reason: error.to_string() });
            }
            Err(_) => self.take_rust_work(change),
        }
    }

    fn rust_parts(&mut self, change: &Change, base: &InlineTests<'_>, attempt: &InlineTests<'_>) -> Result<(), Unreadable> {
        if base.is_whole_file() || attempt.is_whole_file() {
            self.protect_rust(change, ProtectionReason::InlineTests);
            return Ok(());
        }
        let [base_text, attempt_text] = [&change.base, &change.attempt].map(|side| content(side.as_ref()));
        let same = base.same_as(attempt);
        let released = self.protection.released_by_setting(&change.path).filter(|_| !same);
        let pristine = match attempt_text {
            Some(text) if released.is_none() => Some(attempt.with_tests_of(base)?).filter(|merged| merged.as_bytes() != text),
            Some(_) | None => None,
        };
        let proof = match attempt_text {
            Some(_) if self.new_modules => Some(base.with_tests_and_modules_of(attempt)?),
            Some(_) => Some(base.with_tests_of(attempt)?).filter(|merged| base_text.is_some() || !merged.trim().is_empty()),
            None => None,
        };
        let proof = proof.filter(|merged| Some(merged.as_bytes()) != base_text);
        let merged = |text: String, side: Option<&Entry>| {
            let mode = side.or(change.attempt.as_ref()).map_or(0o100_644, |entry| entry.mode);
            Version::Merged { mode, content: text.into_bytes() }
        };
        // The base's work keeps its old path.
        self.take_rust_work(change);
        let old = change.renamed_from.as_ref().unwrap_or(&change.path);
        let pristine = pristine.map_or(Version::Attempt, |text| merged(text, change.attempt.as_ref()));
        self.plan.pristine.insert(change.path.clone(), pristine);
        self.plan.proof.insert(old.clone(), proof.map_or(Version::Base, |text| merged(text, change.base.as_ref())));
        if !same {
            self.report(change, ProtectionReason::InlineTests, released, false);
        }
        Ok(())
    }

    fn take_rust_work(&mut self, change: &Change) {
        self.take_work(&change.path);
        if let Some(old) = &change.renamed_from {
            self.take_work(old);
        }
    }

    fn protect_rust(&mut self, change: &Change, why: ProtectionReason) {
        let released = self.protection.released_by_setting(&change.path);
        for path in [Some(&change.path), change.renamed_from.as_ref()].into_iter().flatten() {
            if released.is_some() { self.take_released(path) } else { self.take_protected(path) }
        }
        self.report(change, why, released, false);
    }

    fn take_work(&mut self, path: &str) {
        self.plan.pristine.insert(path.to_owned(), Version::Attempt);
        self.plan.proof.insert(path.to_owned(), Version::Base);
    }

    fn take_protected(&mut self, path: &str) {
        self.plan.pristine.insert(path.to_owned(), Version::Base);
        self.plan.proof.insert(path.to_owned(), Version::Attempt);
    }

    fn take_released(&mut self, path: &str) {
        self.plan.pristine.insert(path.to_owned(), Version::Attempt);
        self.plan.proof.insert(path.to_owned(), Version::Attempt);
    }

    fn report(&mut self, change: &Change, why: ProtectionReason, released: Option<Release>, autorun: bool) {
        let kind = match (&change.base, &change.attempt) {
            (None, _) => ChangeKind::Added,
            (_, None) => ChangeKind::Deleted,
            (Some(_), Some(_)) if change.renamed_from.is_some() => ChangeKind::Renamed,
            (Some(_), Some(_)) if is_mode_change(change) => ChangeKind::Mode,
            (Some(_), Some(_)) => ChangeKind::Changed,
        };
        let (path, renamed_from) = (change.path.clone(), change.renamed_from.clone());
        self.plan.protected_changes.push(ProtectedChange { path, renamed_from, kind, why, released, autorun });
    }
}

/// A tree cannot have a file and a folder of the same name: `tests` as a link, next to the base's `tests/a.py`. Work files give way.
fn resolve_file_folder_conflicts(plan: &mut TreePlan, changes: &[Change]) {
    let mut in_base: BTreeMap<&str, bool> = BTreeMap::new();
    let mut in_attempt: BTreeMap<&str, bool> = BTreeMap::new();
    for change in changes {
        let old = change.renamed_from.as_deref().unwrap_or(&change.path);
        in_attempt.insert(&change.path, change.attempt.is_some());
        in_base.insert(old, change.base.is_some());
    }
    let exists = |path: &str, take: &Version| match take {
        Version::Base => in_base.get(path).copied().unwrap_or(false),
        Version::Attempt => in_attempt.get(path).copied().unwrap_or(false),
        Version::Merged { .. } => true,
    };
    for (tree, work) in [(&mut plan.pristine, Version::Attempt), (&mut plan.proof, Version::Base)] {
        let other = if work == Version::Attempt { Version::Base } else { Version::Attempt };
        let mut yields: BTreeMap<String, String> = BTreeMap::new();
        for (path, take) in tree.iter().filter(|(path, take)| exists(path, take)) {
            for (end, _) in path.match_indices('/') {
                let Some((above, above_take)) = tree.get_key_value(&path[..end]).filter(|(path, take)| exists(path, take)) else {
                    continue;
                };
                if *above_take == work {
                    yields.insert(above.clone(), path.clone());
                }
                if *take == work || *above_take != work {
                    yields.insert(path.clone(), above.clone());
                }
            }
        }
        for (path, protected) in yields {
            if tree.insert(path.clone(), other.clone()) == Some(Version::Attempt) && other == Version::Base {
                let known = plan.protected_changes.iter().any(|change| change.path == path);
                let kind = ChangeKind::Added;
                let why = ProtectionReason::InTheWay { path: protected };
                let change = ProtectedChange { path, renamed_from: None, kind, why, released: None, autorun: false };
                plan.protected_changes.extend((!known).then_some(change));
            }
        }
    }
}

fn content(entry: Option<&Entry>) -> Option<&[u8]> {
    entry.filter(|entry| entry.is_file())?.content.as_deref()
}

fn is_mode_change(change: &Change) -> bool {
    let pair = change.base.as_ref().zip(change.attempt.as_ref());
    pair.is_some_and(|(base, attempt)| base.id == attempt.id && base.mode != attempt.mode)
}

fn to_version(merged: Merged, mode: u32) -> Version {
    match merged {
        Merged::Base => Version::Base,
        Merged::Attempt => Version::Attempt,
        Merged::Text(text) => Version::Merged { mode, content: text.into_bytes() },
    }
}

/// The pre-commit configuration pins versions of third-party hooks, which are updated routinely.
fn is_version_bump(change: &Change) -> bool {
    let (Some(base), Some(attempt)) = (content(change.base.as_ref()), content(change.attempt.as_ref())) else { return false };
    let lines = |bytes: &[u8]| -> Vec<String> {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let is_pin = |line: &&str| !line.trim_start().trim_start_matches("- ").starts_with("rev:");
        text.lines().filter(is_pin).map(str::to_owned).collect()
    };
    is_pre_commit(&change.path) && lines(base) == lines(attempt)
}

#[cfg(test)]
mod tests;
