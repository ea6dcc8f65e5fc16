//! Proven stories whose checks are other checks by now: where later work changed the files that decide a check, it is asked once more
//! as it was when it proved the story.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use verdone_core::check::{Check, CheckOutcome};
use verdone_core::id::{Oid, StoryId};
use verdone_core::machine::State;
use verdone_core::proof::Doubted;
use verdone_core::update::Reporter;
use verdone_core::verify::Proof;

use super::StepError;
use super::changers::{Changers, all_expect};
use super::regression::within;
use crate::git::ChangedPath;
use crate::same_checks::{has_deciders, same_checks};
use crate::site::Site;
use crate::tamper::folder_of;

/// What is left of the time for all of it.
type Left<'a> = &'a dyn Fn(&Site) -> Option<Duration>;

pub(super) struct Doubts<'a> {
    state: &'a State,
    earlier: &'a BTreeMap<StoryId, Proof>,
    tree: &'a Oid,
    /// What differs between a commit and the tree of now.
    since: BTreeMap<Oid, Vec<ChangedPath>>,
    changers: Changers<'a>,
    pub(super) found: BTreeMap<StoryId, Doubted>,
    pub(super) not_looked_at: BTreeSet<StoryId>,
}

impl<'a> Doubts<'a> {
    /// `earlier`: what runs before this one proved.
    pub(super) fn of(state: &'a State, earlier: &'a BTreeMap<StoryId, Proof>, tree: &'a Oid) -> Self {
        Self {
            state,
            earlier,
            tree,
            since: BTreeMap::new(),
            changers: Changers::of(&state.committed),
            found: BTreeMap::new(),
            not_looked_at: BTreeSet::new(),
        }
    }

    /// A check that passes on the tree of now, and the stories that it proves.
    pub(super) fn look(
        &mut self,
        site: &mut Site,
        check: &Check,
        stories: &[StoryId],
        left: Left<'_>,
        reporter: &mut dyn Reporter,
    ) -> Result<(), StepError> {
        let folder = folder_of(&site.git, &site.root);
        if !has_deciders(&folder, check) {
            return Ok(());
        }
        for story in stories {
            if !self.can_fall(story) || self.found.contains_key(story) {
                continue;
            }
            let Some((from, base)) = self.proven_at(story).filter(|(from, _)| *from < self.state.committed.len()) else {
                continue;
            };
            if !self.since.contains_key(&base) {
                let changes = site.git.changed_paths(Some(&base), self.tree)?;
                let theirs = changes.into_iter().filter(|change| !site.plan.paths().contains(&change.path)).collect();
                self.since.insert(base.clone(), theirs);
            }
            let (one, changes) = (std::slice::from_ref(check), &self.since[&base]);
            if same_checks((&site.git, &folder), (&base, self.tree), changes, one, &|_| false)?.is_none() {
                continue;
            }
            self.changers.read(site, from)?;
            let expected = |path: &str| all_expect(site, &self.changers.by(from, path), path);
            let Some(mut same) = same_checks((&site.git, &folder), (&base, self.tree), changes, one, &expected)? else {
                continue;
            };
            let by = self.changers.by_any(from, &same.files);
            let time = left(site);
            if time == Some(Duration::ZERO) {
                self.not_looked_at.insert(story.clone());
                continue;
            }
            let (bounded, cut) = within(check, time);
            same.checks = vec![bounded];
            let seen = same.run(site, reporter)?;
            let ended = |ends: fn(&CheckOutcome) -> bool| seen.runs.iter().any(|run| ends(&run.outcome));
            if ended(|outcome| *outcome == CheckOutcome::Interrupted) {
                return Ok(());
            }
            if cut && ended(|outcome| matches!(outcome, CheckOutcome::TimedOut { .. })) {
                self.not_looked_at.insert(story.clone());
            } else if !seen.holds() {
                self.found.insert(story.clone(), Doubted { story: story.clone(), by, seen });
            }
        }
        Ok(())
    }

    /// One that is unproven already cannot fall.
    fn can_fall(&self, story: &StoryId) -> bool {
        let verdict = self.state.verdicts.get(story).or_else(|| self.earlier.get(story));
        verdict.is_some_and(|verdict| *verdict > Proof::Untested)
    }

    /// The commit that it was proven at, and from where on commits of this run came later. For one of an earlier run that is where this
    /// run began.
    fn proven_at(&self, story: &StoryId) -> Option<(usize, Oid)> {
        let all = &self.state.committed;
        match all.iter().rposition(|done| done.story == *story) {
            Some(at) => Some((at + 1, all[at].commit.clone())),
            None => Some((0, all.first()?.base.clone()?)),
        }
    }
}
