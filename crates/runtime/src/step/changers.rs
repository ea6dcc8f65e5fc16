//! Which stories of the run changed a path, as their commits tell.

use std::collections::BTreeSet;

use verdone_core::id::StoryId;
use verdone_core::machine::CommittedStory;
use verdone_core::tamper::expects_change;

use super::as_before::scope_of;
use crate::git::GitError;
use crate::site::Site;

pub(super) struct Changers<'a> {
    committed: &'a [CommittedStory],
    /// What each commit changed, once it was read.
    paths: Vec<Option<BTreeSet<String>>>,
}

impl<'a> Changers<'a> {
    pub(super) fn of(committed: &'a [CommittedStory]) -> Self {
        Self { committed, paths: vec![None; committed.len()] }
    }

    /// Reads the commits from this one on.
    pub(super) fn read(&mut self, site: &Site, from: usize) -> Result<(), GitError> {
        for (done, paths) in self.committed.iter().zip(&mut self.paths).skip(from).filter(|(_, paths)| paths.is_none()) {
            let changed = site.git.changed_paths(done.base.as_ref(), &done.commit)?;
            *paths = Some(changed.iter().map(|change| change.path.to_string()).collect());
        }
        Ok(())
    }

    /// Those that changed a path, of the commits from this one on.
    pub(super) fn by(&self, from: usize, path: &str) -> Vec<&'a StoryId> {
        let later = self.committed.iter().zip(&self.paths).skip(from);
        let changed = later.filter(|(_, paths)| paths.as_ref().is_some_and(|paths| paths.contains(path)));
        changed.map(|(done, _)| &done.story).collect()
    }

    /// The same for several paths, each story once.
    pub(super) fn by_any(&self, from: usize, paths: &[String]) -> Vec<StoryId> {
        let all: BTreeSet<&StoryId> = paths.iter().flat_map(|path| self.by(from, path)).collect();
        all.into_iter().cloned().collect()
    }
}

/// Whether the scope of each of these stories names the path, and there is one.
pub(super) fn all_expect(site: &Site, stories: &[&StoryId], path: &str) -> bool {
    !stories.is_empty() && stories.iter().all(|story| expects_change(&scope_of(site, story), path))
}
