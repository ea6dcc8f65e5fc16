//! Work that the user's branch has already: nothing of it would be left in a re-applied commit, so its checks would prove nothing.

use std::collections::HashSet;

use verdone_core::base::id::{Oid, RunId};

use super::{LandError, Reapplying};
use verdone_text::shell_word::shell_word;

use crate::git::RepoPath;
use crate::project::plan_file::PlanLocation;
use crate::store::Store;

impl Reapplying<'_> {
    /// Refuses a story's commit if a file that it changes would not change any more.
    pub(super) fn refuse_absorbed(&self, commit: &Oid, tree: &Oid, onto: &Oid, story: &str) -> Result<(), LandError> {
        let parent = self.git.first_parent(commit)?;
        let left: HashSet<RepoPath> = self.git.changed_paths(Some(onto), tree)?.into_iter().map(|change| change.path).collect();
        let plan = self.plan_paths();
        let changed = self.git.changed_paths(parent.as_ref(), commit)?.into_iter().map(|change| change.path);
        let absorbed: Vec<String> =
            changed.filter(|path| !left.contains(path) && !plan.contains(path)).map(|path| path.to_string()).collect();
        let Some(first) = absorbed.first() else { return Ok(()) };
        let reason = format!("your branch already has the change of {first} by {story}, so its checks would prove nothing there");
        Err(LandError::Refused { reason, hint: Some(format!("verdone undo {} drops it", shell_word(story))) })
    }

    /// The run's plan and the files beside it, which may be ticked already.
    fn plan_paths(&self) -> Vec<RepoPath> {
        let plan = Store::new(&self.request.project.root).run(RunId::from(self.run)).brief_view().map(|(view, _)| view.plan);
        let files = plan.map(|plan| PlanLocation::new(self.request.project.root.join(plan)).files()).unwrap_or_default();
        files.iter().filter_map(|file| self.git.repo_path(file)).collect()
    }
}
