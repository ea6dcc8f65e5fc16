//! Files that are protected because a protected script or configuration names them.

use std::collections::{BTreeMap, BTreeSet};

use verdone_core::protect::{Protection, Role, may_be_named, named_in, scripts_in};
use verdone_core::verify::ProtectedKind;

use crate::git::{Git, GitError, TreeFile};

/// How many scripts and configuration files are read.
const MOST_READ: usize = 500;

/// Extends the protection of a tree by the files that its protected scripts and configuration name, directly or indirectly. New files count
/// only if a script runs them: others may be the subject of the work.
pub(super) fn with_named(
    protection: Protection,
    git: &Git,
    files: &[TreeFile],
    added: &[String],
    folder: &str,
) -> Result<Protection, GitError> {
    let known: BTreeMap<String, &TreeFile> =
        files.iter().filter(|file| file.is_plain()).map(|file| (file.path.to_string(), file)).collect();
    let names_others = |path: &String| {
        let class = protection.classify(path, false);
        let kind = ProtectedKind::from_reason(&class.why);
        match class.role {
            Role::Split(_) => true,
            Role::Protected => matches!(kind, Some(ProtectedKind::Config | ProtectedKind::CheckScript)),
            Role::Work => false,
        }
    };
    let mut open: Vec<String> = known.keys().filter(|path| names_others(path)).take(MOST_READ).cloned().collect();
    let mut read: BTreeSet<String> = BTreeSet::new();
    let mut named: BTreeMap<String, String> = BTreeMap::new();
    while !open.is_empty() {
        let ids: Vec<String> = open.iter().map(|path| known[path].id.to_string()).collect();
        let mut next = Vec::new();
        for (path, text) in open.iter().zip(git.contents(&ids)?) {
            read.insert(path.clone());
            let text = text.unwrap_or_default();
            let found = named_in(&text, path, folder, |other| known.contains_key(other));
            let run = scripts_in(&text, path);
            let run = if run.is_empty() { None } else { Some(protection.with_check_scripts(&run)) };
            let is_run = |other: &&String| run.as_ref().is_some_and(|run| run.runs_script(other)) && may_be_named(other);
            let run = known.keys().chain(added).filter(is_run).cloned();
            for other in found.into_iter().chain(run).filter(|other| protection.classify(other, false).role == Role::Work) {
                if read.len() + next.len() < MOST_READ && !named.contains_key(&other) {
                    named.insert(other.clone(), path.clone());
                    next.extend(known.contains_key(&other).then_some(other));
                }
            }
        }
        open = next;
    }
    Ok(protection.with_named(named))
}

/// Whether any changed file could be named. Only then are files read.
pub(super) fn could_be_named<'p>(mut changed: impl Iterator<Item = &'p str>) -> bool {
    changed.any(may_be_named)
}
