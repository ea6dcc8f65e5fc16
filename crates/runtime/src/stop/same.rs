//! Checks of a loop's stories as they were: what decides a check is compared with the tree that the story began with and with the one
//! that the loop began with, and at the end with the tree that proved the story. Only the same check proves anything.

use serde::{Deserialize, Serialize};
use verdone_core::check::Check;
use verdone_core::id::{Oid, StoryId};
use verdone_core::proof::{AsBefore, Doubted};
use verdone_core::scope::below;
use verdone_core::stop::Marked;
use verdone_core::tamper::expects_change;
use verdone_core::verify::Proof;

use crate::git::{Change, ChangedPath, Git, GitError, Ignored, RepoPath};
use crate::same_checks::{SameChecks, has_deciders, same_checks};
use crate::tamper::folder_of;

use super::look::Looker;
use super::tree::not_work;
use super::verify::{Ask, Verdict};

/// A story's own checks, and a tree in which they were as they have to be.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SameAsk {
    pub(super) story: StoryId,
    checks: Vec<Check>,
    pub(super) base: Oid,
    /// Files that differ between the two alone count, where there is such a tree: later changes are looked at apart.
    until: Option<Oid>,
    /// What the stories since then are meant to change.
    scope: Vec<String>,
}

impl SameAsk {
    /// The checks of it that other files decide now, and a tree in which the files are as they were. `ignored` are in no tree: what a
    /// new rule hides is new as well.
    pub(super) fn changed(&self, ask: &Ask, git: &Git, now: &Oid, ignored: &[Ignored]) -> Result<Option<SameChecks>, GitError> {
        let folder = folder_of(git, &ask.root);
        let checks: Vec<Check> = self.checks.iter().filter(|check| has_deciders(&folder, check)).cloned().collect();
        if checks.is_empty() || (self.base == *now && ignored.is_empty()) {
            return Ok(None);
        }
        let ours = not_work(git, &ask.root, &ask.top, &ask.ours);
        let until = self.until.as_ref().map(|until| git.changed_paths(Some(&self.base), until)).transpose()?;
        let counts = |path: &RepoPath| {
            !ours.contains(path) && until.as_ref().is_none_or(|until| until.iter().any(|change| change.path == *path))
        };
        let mut changes: Vec<ChangedPath> =
            git.changed_paths(Some(&self.base), now)?.into_iter().filter(|change| counts(&change.path)).collect();
        let hidden = git.ignored_since(&self.base, ignored)?.into_iter().filter(|path| !ours.contains(path));
        changes.extend(hidden.map(|path| ChangedPath { path, change: Change::Added }));
        let scope = below(&self.scope, &folder);
        same_checks((git, &folder), (&self.base, now), &changes, &checks, &|path| expects_change(&scope, path))
    }
}

impl Verdict {
    /// A story's own checks as they were; first those that do not pass so.
    pub(super) fn as_before(&self, story: &StoryId) -> Option<&AsBefore> {
        let all = || self.as_before.iter().filter(|(about, _)| about == story).map(|(_, seen)| seen);
        all().find(|seen| !seen.holds()).or_else(|| all().next_back())
    }
}

impl Looker<'_> {
    /// For the story at work.
    pub(super) fn same_asks(&self, story: &StoryId) -> Vec<SameAsk> {
        let ask = |base: &Option<Oid>, until: Option<Oid>, scope| {
            let checks = self.own_checks(story);
            base.clone().map(|base| SameAsk { story: story.clone(), checks, base, until, scope })
        };
        let last = ask(&self.state.tree, None, self.scope_of([story]));
        let start = ask(&self.state.start, self.state.tree.clone(), self.scope_of(self.state.marked.iter().map(|it| &it.story)));
        last.into_iter().chain(start.filter(|_| self.state.start != self.state.tree)).collect()
    }

    /// For the stories that were verified: as their checks were when they proved them. Nothing is left to compare with the tree that was
    /// marked last where it is still that one.
    pub(super) fn same_asks_of_marked(&self, as_marked: bool) -> Vec<SameAsk> {
        let marked = &self.state.marked;
        let ask = |(at, it): (usize, &Marked)| {
            let scope = self.scope_of(marked[at + 1..].iter().map(|later| &later.story));
            let base = it.work.clone().filter(|_| it.verdict == Proof::Verified)?;
            if as_marked && self.state.tree.as_ref() == Some(&base) {
                return None;
            }
            Some(SameAsk { story: it.story.clone(), checks: self.own_checks(&it.story), base, until: None, scope })
        };
        marked.iter().enumerate().filter_map(ask).collect()
    }

    fn scope_of<'s>(&self, stories: impl IntoIterator<Item = &'s StoryId>) -> Vec<String> {
        let frozen = stories.into_iter().filter_map(|story| self.state.open.get(story));
        frozen.flat_map(|frozen| frozen.scope.iter().cloned()).collect()
    }

    /// A story whose check passes only since its files changed is not proven any more.
    pub(super) fn doubt_marked(&mut self, verdict: &Verdict) {
        for marked in self.state.marked.iter_mut().filter(|marked| marked.verdict == Proof::Verified) {
            if let Some(seen) = verdict.as_before(&marked.story).filter(|seen| !seen.holds()).cloned() {
                marked.verdict = Proof::Untested;
                let doubted = Doubted { story: marked.story.clone(), by: Vec::new(), seen };
                self.notes.push(format!("story {} is unproven: {}.", marked.story, doubted.reason()));
            }
        }
    }
}
