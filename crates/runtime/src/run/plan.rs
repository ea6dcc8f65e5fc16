//! The plan of a run. A plan that is committed unchanged is read from the tip of the run's branch and marked in story commits. Any other
//! plan is the user's file, which is marked when a story is committed.

use std::fs;
use std::io;
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use verdone_core::base::id::{Oid, StoryId, digest};
use verdone_core::config::OnReview;
use verdone_core::plan::DIALECT;
use verdone_plan::{Document, Plan, Status};

use crate::base::plain_file::read_linked;
use crate::git::{Git, GitError, PathSet, RepoPath};
use crate::project::plan_file::{LARGEST_PLAN, PlanFile, PlanFileError, PlanLocation};

#[derive(Debug)]
pub struct RunPlan {
    /// Opened on our copies if the plan is committed, else on the user's files.
    file: PlanFile,
    /// Where the user's files are.
    location: PlanLocation,
    /// The plan's files inside the repository, as git names them.
    paths: PathSet,
    committed: Vec<CommittedFile>,
    /// The files that were given to the agent's workspace.
    given: Vec<(RepoPath, Vec<u8>)>,
}

/// A file of the plan that is marked in story commits.
#[derive(Debug)]
struct CommittedFile {
    path: RepoPath,
    copy: PathBuf,
    original: PathBuf,
    /// Digest of the user's file when last read. `None` if it did not exist.
    seen: Option<String>,
    /// Digest of the text in the last commit: landing writes that text to the user's file.
    in_commit: Option<String>,
}

/// The result of [`RunPlan::refresh`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refreshed {
    Same,
    /// The user edited the plan, and the new text applies.
    Edited,
}

#[derive(Debug, thiserror::Error)]
pub enum RunPlanError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Plan(#[from] PlanFileError),
    #[error("cannot copy the plan to {}: {source}", path.display())]
    Copy { path: PathBuf, source: io::Error },
}

impl RunPlan {
    /// The user's file, read-only: no run marks it.
    pub fn of_user(git: &Git, file: PlanFile) -> Self {
        let location = file.location().clone();
        let paths = location.files().iter().filter_map(|file| git.repo_path(file)).collect();
        Self { file, location, paths, committed: Vec::new(), given: Vec::new() }
    }

    /// Decides where the plan is read and marked. `tip` is the tip of the run's branch, `head` that of the user's. Copies go to `folder`.
    pub fn open(git: &Git, user: PlanFile, tip: &Oid, head: &Oid, folder: &Path) -> Result<Self, RunPlanError> {
        let (mut plan, waiting) = Self::open_read_only(git, user, tip, head, folder)?;
        if !plan.is_committed() {
            mark_all(&mut plan.file, &waiting)?;
        }
        Ok(plan)
    }

    /// The same without marking the user's file. Also returns the stories that are done on the run's branch but have not landed.
    pub fn open_read_only(
        git: &Git,
        user: PlanFile,
        tip: &Oid,
        head: &Oid,
        folder: &Path,
    ) -> Result<(Self, Vec<StoryId>), RunPlanError> {
        let plan = Self::of_user(git, user);
        let all: Vec<PathBuf> = plan.location.files();
        let known: Vec<(PathBuf, RepoPath)> = all.iter().filter_map(|file| Some((file.clone(), git.repo_path(file)?))).collect();
        let names: Vec<String> = known.iter().map(|(_, path)| path.to_string()).collect();
        let (at_tip, at_head) = (git.files_at(tip, &names)?, git.files_at(head, &names)?);
        let number = known.iter().position(|(original, _)| *original == plan.location.plan);
        let plan_in = |texts: &[Option<Vec<u8>>]| number.and_then(|number| texts[number].clone()).unwrap_or_default();
        let (before, after) = (stories_in(&plan, &plan_in(&at_head)), stories_in(&plan, &plan_in(&at_tip)));
        // Done on the run's branch, but not landed yet.
        let waiting: Vec<StoryId> = after.into_iter().filter(|story| !before.contains(story)).collect();
        let mut files = Vec::new();
        for (((original, path), tip), head) in known.into_iter().zip(at_tip).zip(at_head) {
            let disk = read_linked(&original, LARGEST_PLAN).ok();
            // The user's file may be behind the run's branch. If the user edited it, their file counts.
            let as_committed = tip.is_some() && (disk == tip || disk == head);
            files.push((original, path, tip.filter(|_| as_committed), disk));
        }
        let is_plan = |original: &Path| original == plan.location.plan;
        if !files.iter().any(|(original, _, tip, _)| is_plan(original) && tip.is_some()) {
            return Ok((plan, waiting));
        }
        let mut committed = Vec::new();
        for (original, path, tip, disk) in files {
            let copy = folder.join(path.as_path());
            place(&copy, &original, tip.as_deref(), disk.is_some())
                .map_err(|source| RunPlanError::Copy { path: copy.clone(), source })?;
            if tip.is_some() || disk.is_none() {
                let (seen, in_commit) = (disk.as_deref().map(digest), tip.as_deref().map(digest));
                committed.push(CommittedFile { path, copy, original, seen, in_commit });
            }
        }
        let file = PlanFile::open(copied(git, &plan.location, folder))?;
        Ok((Self { file, committed, ..plan }, waiting))
    }

    /// The plan's file as the user knows it.
    pub fn path(&self) -> &Path {
        &self.location.plan
    }

    /// The plan's files as git names them. An agent's edits of them are ignored.
    pub fn paths(&self) -> &PathSet {
        &self.paths
    }

    /// Whether the plan is marked in story commits.
    pub fn is_committed(&self) -> bool {
        !self.committed.is_empty()
    }

    /// The plan's files that are not committed in their current form; a workspace gets copies.
    pub fn uncommitted(&self) -> Vec<PathBuf> {
        let is_committed = |file: &PathBuf| self.committed.iter().any(|committed| committed.original == *file);
        self.location.files().into_iter().filter(|file| !is_committed(file) && file.is_file()).collect()
    }

    /// The plan's part of a story commit: each committed file with its current text.
    pub fn texts(&self) -> Vec<(RepoPath, Vec<u8>)> {
        let text = |file: &CommittedFile| Some((file.path.clone(), fs::read(&file.copy).ok()?));
        self.committed.iter().filter_map(text).collect()
    }

    /// The plan files given to a workspace, which the agent may not change.
    pub fn given(&self) -> Vec<(RepoPath, Vec<u8>)> {
        self.given.clone()
    }

    /// Records what a workspace is given.
    pub fn give(&mut self, git: &Git) {
        let loose = self.uncommitted();
        let loose = loose.iter().filter_map(|file| Some((git.repo_path(file)?, read_linked(file, LARGEST_PLAN).ok()?)));
        self.given = self.texts().into_iter().chain(loose).collect();
    }

    /// Adopts the user's edits. From then on the user's file is marked, including stories already done in the run's commits.
    pub fn refresh(&mut self) -> Result<Refreshed, PlanFileError> {
        if self.committed.is_empty() {
            return Ok(if self.file.refresh()? { Refreshed::Edited } else { Refreshed::Same });
        }
        if !self.committed.iter_mut().any(CommittedFile::was_edited) {
            return Ok(Refreshed::Same);
        }
        let done = done_stories(self.file.plan());
        self.file = PlanFile::open(self.location.clone())?;
        self.committed.clear();
        mark_all(&mut self.file, &done)?;
        Ok(Refreshed::Edited)
    }

    /// Makes the last mark permanent: it was committed, together with the plan's other files.
    pub fn forget_mark(&mut self) {
        for file in &mut self.committed {
            file.in_commit = fs::read(&file.copy).ok().as_deref().map(digest);
        }
        self.file.forget_mark();
    }

    /// Marks a story in the user's file, based on its current text. The mark is permanent, whatever happens to later stories.
    pub fn mark_users_file(&mut self, story: &StoryId, status: Status) -> Result<(), PlanFileError> {
        self.file.refresh()?;
        if self.file.plan().story(story).is_some_and(|found| found.status == status) {
            // We may have been killed between writing the two files.
            return self.file.mark_companion(story, status);
        }
        self.file.mark(story, status)?;
        self.file.forget_mark();
        Ok(())
    }
}

impl Deref for RunPlan {
    type Target = PlanFile;

    fn deref(&self) -> &PlanFile {
        &self.file
    }
}

impl DerefMut for RunPlan {
    fn deref_mut(&mut self) -> &mut PlanFile {
        &mut self.file
    }
}

impl CommittedFile {
    /// A file that equals our copy or the last commit was landed, not edited. The two can
    /// differ, because progress is written after the commit.
    fn was_edited(&mut self) -> bool {
        let now = read_linked(&self.original, LARGEST_PLAN).ok();
        let seen = now.as_deref().map(digest);
        if seen == self.seen {
            return false;
        }
        let landed = seen.is_some() && (seen == self.in_commit || now == fs::read(&self.copy).ok());
        self.seen = seen;
        !landed
    }
}

fn done_stories(plan: &Plan) -> Vec<StoryId> {
    plan.stories.iter().filter(|story| story.status == Status::Done).map(|story| story.id.clone()).collect()
}

/// The stories that are done in another version of the plan.
fn stories_in(plan: &RunPlan, text: &[u8]) -> Vec<StoryId> {
    Document::parse(plan.file.document().name(), text, &DIALECT)
        .map_or_else(|_| Vec::new(), |document| done_stories(document.plan()))
}

fn mark_all(file: &mut PlanFile, stories: &[StoryId]) -> Result<(), PlanFileError> {
    for story in stories {
        if file.plan().story(story).is_some_and(|found| found.status != Status::Done) {
            file.mark(story, Status::Done)?;
        }
    }
    file.forget_mark();
    Ok(())
}

/// A committed file is copied as of the tip; other files of the user are linked.
fn place(copy: &Path, original: &Path, tip: Option<&[u8]>, exists: bool) -> io::Result<()> {
    if let Some(parent) = copy.parent() {
        fs::create_dir_all(parent)?;
    }
    match tip {
        Some(bytes) => fs::write(copy, bytes),
        None if exists => symlink(original, copy),
        None => Ok(()),
    }
}

/// The corresponding location among the copies.
fn copied(git: &Git, location: &PlanLocation, folder: &Path) -> PlanLocation {
    let at = |path: &PathBuf| git.repo_path(path).map_or_else(|| path.clone(), |path| folder.join(path.as_path()));
    PlanLocation { plan: at(&location.plan), home: location.home, progress: location.progress.as_ref().map(at) }
}

/// If the plan has dependencies, stories that do not depend on one in review can continue without it.
pub(super) fn on_review(plan: &Plan) -> OnReview {
    let depend = plan.stories.iter().any(|story| !story.depends_on.is_empty());
    if depend { OnReview::Continue } else { OnReview::Stack }
}
