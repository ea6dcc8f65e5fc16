//! The differential proof for a check's own files: where the work changed a file that decides a check, the check is asked once more in
//! a clean tree of the work with that file as it was.

use verdone_core::check::{Check, CheckRun};
use verdone_core::id::{Oid, StoryId};
use verdone_core::machine::{Attempt, State};
use verdone_core::proof::AsBefore;
use verdone_core::scope::below;
use verdone_core::tamper::expects_change;
use verdone_core::update::Reporter;
use verdone_core::verdict::Red;

use super::StepError;
use super::agent_test::run_one_by_one;
use super::changers::{Changers, all_expect};
use crate::git::ChangedPath;
use crate::same_checks::{SameChecks, has_deciders, same_checks};
use crate::site::Site;
use crate::tamper::folder_of;

/// None where the checks are the same as before, or prove nothing anyhow.
pub(super) fn as_before(
    site: &mut Site,
    state: &State,
    attempt: &Attempt,
    tree: &Oid,
    changes: &[ChangedPath],
    reporter: &mut dyn Reporter,
) -> Result<Option<AsBefore>, StepError> {
    let (Some(base), Some(Red::Red)) = (attempt.base.clone(), attempt.red) else { return Ok(None) };
    let story = &attempt.place.story;
    let folder = folder_of(&site.git, &site.root);
    let checks: Vec<Check> = site.own_checks(story).iter().filter(|check| has_deciders(&folder, check)).cloned().collect();
    if checks.is_empty() {
        return Ok(None);
    }
    let scope = scope_of(site, story);
    let same = same_checks((&site.git, &folder), (&base, tree), changes, &checks, &|path| expects_change(&scope, path))?;
    let seen = same.map(|same| same.run(site, reporter)).transpose()?;
    if seen.as_ref().is_some_and(|seen| !seen.holds()) {
        return Ok(seen);
    }
    Ok(as_at_the_start(site, state, tree, &checks, reporter)?.or(seen))
}

/// The same with what earlier stories of the run did to the checks: a check that is weaker than the one that the plan was written for
/// proves less, whoever made it so.
fn as_at_the_start(
    site: &mut Site,
    state: &State,
    tree: &Oid,
    checks: &[Check],
    reporter: &mut dyn Reporter,
) -> Result<Option<AsBefore>, StepError> {
    let Some(base) = state.committed.first().and_then(|first| first.base.clone()) else { return Ok(None) };
    let since = site.git.changed_paths(Some(&base), tree)?;
    let folder = folder_of(&site.git, &site.root);
    if same_checks((&site.git, &folder), (&base, tree), &since, checks, &|_| false)?.is_none() {
        return Ok(None);
    }
    let mut changers = Changers::of(&state.committed);
    changers.read(site, 0)?;
    // What only this attempt changed was looked at already.
    let earlier: Vec<ChangedPath> =
        since.into_iter().filter(|change| !changers.by(0, &change.path.to_string()).is_empty()).collect();
    let expected = |path: &str| all_expect(site, &changers.by(0, path), path);
    let Some(same) = same_checks((&site.git, &folder), (&base, tree), &earlier, checks, &expected)? else { return Ok(None) };
    let by = changers.by_any(0, &same.files);
    Ok(Some(AsBefore { by, ..same.run(site, reporter)? }))
}

impl SameChecks {
    pub(super) fn run(self, site: &mut Site, reporter: &mut dyn Reporter) -> Result<AsBefore, StepError> {
        let seen = run_one_by_one(site, &self.tree, &self.checks, reporter)?;
        let runs: Vec<CheckRun> = seen.into_iter().map(|seen| seen.run).collect();
        Ok(AsBefore { files: self.files, by: Vec::new(), runs, unproven: None })
    }
}

/// A story's scope as seen from the top of the tree.
pub(super) fn scope_of(site: &Site, story: &StoryId) -> Vec<String> {
    site.plan.plan().story(story).map_or_else(Vec::new, |story| below(&story.scope, &folder_of(&site.git, &site.root)))
}
