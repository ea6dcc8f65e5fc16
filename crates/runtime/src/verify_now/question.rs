//! Checks of one tree as questions whose answers can be kept.

use verdone_core::check::{Check, CheckRun, ResultKey, counts_for_results, stages};
use verdone_core::id::{Oid, digest};

use crate::gate_cache::GateCache;
use crate::git::TreeNow;
use crate::matching::matching;
use crate::process;
use crate::project::Project;
use crate::regular::read_regular;

/// A larger input is no input but data; then nothing is kept.
const LARGEST_INPUT: u64 = 64 * 1024 * 1024;

pub(super) struct Questions<'a> {
    now: &'a TreeNow,
    project: &'a Project,
    /// None where nothing may be kept.
    cache: Option<&'a GateCache>,
    environment: Vec<(String, String)>,
}

impl<'a> Questions<'a> {
    pub(super) fn about(now: &'a TreeNow, project: &'a Project, cache: Option<&'a GateCache>) -> Self {
        let environment = process::inherited().into_iter().filter(|(name, _)| counts_for_results(name)).collect();
        Self { now, project, cache, environment }
    }

    pub(super) fn tree(&self) -> &'a Oid {
        &self.now.tree
    }

    /// What is known about a check.
    pub(super) fn known(&self, check: &Check) -> Option<CheckRun> {
        self.cache?.get(&self.key(check)?, check)
    }

    /// Marks what was red before and is green now as flaky. `keep`: what was seen is kept.
    pub(super) fn settle(&self, checks: &[Check], runs: &mut [CheckRun], keep: bool) {
        let Some(cache) = self.cache else { return };
        for (check, run) in stages(checks).into_iter().flatten().zip(runs).filter(|(_, run)| !run.cached) {
            let Some(key) = self.key(check) else { continue };
            let was_red = cache.get(&key, check).is_some_and(|before| !before.outcome.passed());
            run.flaky |= was_red && run.outcome.passed();
            if keep {
                // A result that is not kept only has to be found out again.
                let _ = cache.put(&key, run);
            }
        }
    }

    /// Nothing for a check that cannot be answered twice: hidden files may change without notice.
    fn key(&self, check: &Check) -> Option<String> {
        if check.terms.hidden.is_some() {
            return None;
        }
        let folder = self.project.root.strip_prefix(&self.project.git_top).ok()?.to_string_lossy().into_owned();
        let inputs = inputs(&check.terms.inputs, self.project)?;
        let version = env!("CARGO_PKG_VERSION");
        let TreeNow { tree, looked, .. } = self.now;
        let in_place = format!("{} {}", looked.content, looked.around);
        let key =
            ResultKey { version, tree, in_place: &in_place, folder: &folder, inputs: &inputs, environment: &self.environment };
        Some(key.of(check))
    }
}

/// The declared inputs with their contents, as a digest; nothing where they cannot be read.
fn inputs(patterns: &[String], project: &Project) -> Option<String> {
    let mut all = Vec::new();
    for pattern in patterns {
        for path in matching(&project.root, pattern).ok()? {
            let content = read_regular(&path, LARGEST_INPUT).ok()?;
            all.push((path.to_string_lossy().into_owned(), digest(&content)));
        }
    }
    Some(digest(&serde_json::to_vec(&all).ok()?))
}
