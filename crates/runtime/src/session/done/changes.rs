//! What a session changed (committed or not) and what is uncommitted, compared with the start of its loop, or else of the session. The
//! user's changes from before the loop do not count.

use std::collections::BTreeSet;
use std::path::Path;

use verdone_core::base::id::Oid;
use verdone_core::done::GitFact;
use verdone_core::hook::SessionFold;
use verdone_core::policy::Scope;
use verdone_plan::Story;
use verdone_plan::scope;

use crate::git::{Git, GitError, PathSet};
use crate::project::HOME;
use crate::project::plan_file::PlanFile;
use crate::session::{self, SeenLoop};

/// Whose changes are looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChangeRequest<'a> {
    pub(super) root: &'a Path,
    pub(super) records: &'a SessionFold,
    pub(super) held_by: Option<&'a SeenLoop>,
    pub(super) plan: Option<&'a PlanFile>,
    pub(super) story: Option<&'a Story>,
}

/// What was found.
#[derive(Debug)]
pub(super) struct Changes {
    pub(super) fact: GitFact,
    /// Files that differ, inside the story's scope.
    pub(super) changed: Vec<String>,
    pub(super) base: Option<String>,
}

/// What git cannot tell is unknown.
pub(super) fn collect_changes(whose: ChangeRequest<'_>) -> Changes {
    try_to(whose).unwrap_or_else(|error| {
        let fact = GitFact::Unknown { why: error.to_string() };
        Changes { fact, changed: Vec::new(), base: None }
    })
}

fn try_to(whose: ChangeRequest<'_>) -> Result<Changes, GitError> {
    let ChangeRequest { root, records, held_by, plan, story } = whose;
    let git = Git::open(root)?;
    let status = git.status()?;
    // Git may spell the top otherwise than we spell the root.
    let folder =
        root.canonicalize().ok().and_then(|root| Some(root.strip_prefix(git.top()).ok()?.to_string_lossy().into_owned()));
    let folder = folder.unwrap_or_default();
    let home = Path::new(&folder).join(HOME).to_string_lossy().into_owned();
    let own_files = plan.map(PlanFile::protected_paths).unwrap_or_default();
    let ours: BTreeSet<String> = own_files.iter().filter_map(|path| git.repo_path(path)).map(|path| path.to_string()).collect();
    let is_theirs = |path: &String| !ours.contains(path) && *path != home && !path.starts_with(&format!("{home}/"));
    let earlier = users_own(&git, held_by)?;
    let open = status.entries.iter().map(|entry| entry.path.to_string());
    let uncommitted: Vec<String> = open.filter(is_theirs).filter(|path| !earlier.contains(path)).collect();
    let mut changed: BTreeSet<String> = uncommitted.iter().cloned().collect();
    let began = base(&git, records, held_by)?;
    if let (Some(base), Some(head)) = (&began, &status.head)
        && base.as_ref() != Some(head)
    {
        let committed = git.changed_paths(base.as_ref(), head)?;
        changed.extend(committed.iter().map(|change| change.path.to_string()).filter(is_theirs));
    }
    // What was uncommitted when a loop began, and still is, is no change.
    let differs = held_by.map(|seen| session::differs_from(&seen.held.base, root, git.top(), &own_files));
    if differs == Some(Some(false)) {
        changed.clear();
    }
    if changed.is_empty() && began.is_none() && status.head.is_some() {
        let why = "no hook saw the session start, so its commits are unknown: `verdone install` adds hooks for the next session, \
                   `verdone loop start` marks where work begins";
        return Ok(Changes { fact: GitFact::Unknown { why: why.to_owned() }, changed: Vec::new(), base: None });
    }
    let paths = story.map(|story| scope::below(&story.scope, &folder)).unwrap_or_default();
    let scope = (!paths.is_empty()).then(|| Scope { paths, enforced: false, exempt: Vec::new() });
    let is_outside = scope.as_ref().map(|scope| scope.outside(false));
    let (outside, inside): (Vec<String>, Vec<String>) =
        changed.into_iter().partition(|path| is_outside.as_ref().is_some_and(|is_outside| is_outside(path)));
    let fact = GitFact::Seen { changed: u32::try_from(inside.len()).unwrap_or(u32::MAX), outside, uncommitted };
    Ok(Changes { fact, changed: inside, base: began.flatten().map(|base| base.0) })
}

/// Where the branch was when the work began, if anybody knows: at a commit, or before the first one.
#[expect(clippy::option_option, reason = "no commit yet is a known starting point, unlike an unknown one")]
fn base(git: &Git, records: &SessionFold, held_by: Option<&SeenLoop>) -> Result<Option<Option<Oid>>, GitError> {
    if let Some(state) = held_by {
        return Ok(Some(state.held.base.head.clone()));
    }
    match (&records.head, records.first) {
        (Some(head), _) => Ok(Some(Some(head.clone()))),
        // There was none, or the hooks are from before they wrote it down.
        (None, Some(first)) => git.last_commit_before(first).map(Some),
        (None, None) => Ok(None),
    }
}

/// What was in no commit when the loop began, and is as it was: known of loops that commit.
fn users_own(git: &Git, held_by: Option<&SeenLoop>) -> Result<BTreeSet<String>, GitError> {
    let Some(checkpoint) = held_by.and_then(|state| state.held.checkpoint.as_ref()) else { return Ok(BTreeSet::new()) };
    let earlier = git.earlier_changes(checkpoint, &PathSet::default())?;
    Ok(earlier.same.iter().chain(&earlier.untracked).map(ToString::to_string).collect())
}
