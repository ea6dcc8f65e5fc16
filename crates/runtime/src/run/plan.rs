//! The plan of a run. A plan that is committed as it stands is read from the tip of the run's branch and marked in story commits;
//! any other one is the user's file, which gets a mark when its story is committed.

use std::fs;
use std::io;
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use verdone_core::base::id::{Oid, StoryId, digest};
use verdone_core::plan::{Document, Plan, Status};

use crate::base::plain_file::read_linked;
use crate::git::{Git, GitError, PathSet, RepoPath};
use crate::project::plan_file::{LARGEST_PLAN, PlanFile, PlanFileError, PlanLocation};

#[derive(Debug)]
pub struct RunPlan {
    /// Opened on our copies where the plan is committed, else on the user's files.
    file: PlanFile,
    /// Where the user's files are.
    location: PlanLocation,
    /// All files of the plan that lie in the repository, as git names them.
    paths: PathSet,
    committed: Vec<CommittedFile>,
    /// What the agent's workspace was given.
    given: Vec<(RepoPath, Vec<u8>)>,
}

/// A file of the plan that story commits mark.
#[derive(Debug)]
struct CommittedFile {
    path: RepoPath,
    copy: PathBuf,
    original: PathBuf,
    /// The user's file when it was last looked at; nothing where there was none.
    seen: Option<String>,
    /// The text in the last commit: landing writes it to the user's file.
    in_commit: Option<String>,
}

/// What [`RunPlan::refresh`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refreshed {
    Same,
    /// The user edited the plan; the new text counts.
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
    /// The user's file, for looking only: no run marks it.
    pub fn of_user(git: &Git, file: PlanFile) -> Self {
        let location = file.location().clone();
        let paths = location.files().iter().filter_map(|file| git.repo_path(file)).collect();
        Self { file, location, paths, committed: Vec::new(), given: Vec::new() }
    }

    /// Decides where the plan is read from and marked. `tip` is the run's branch, `head` the user's; copies go to `folder`.
    pub fn open(git: &Git, user: PlanFile, tip: &Oid, head: &Oid, folder: &Path) -> Result<Self, RunPlanError> {
        let (mut plan, waiting) = Self::look(git, user, tip, head, folder)?;
        if !plan.is_committed() {
            mark_all(&mut plan.file, &waiting)?;
        }
        Ok(plan)
    }

    /// The same without a mark in the user's file, and the stories that are done on the run's branch and not landed.
    pub fn look(git: &Git, user: PlanFile, tip: &Oid, head: &Oid, folder: &Path) -> Result<(Self, Vec<StoryId>), RunPlanError> {
        let plan = Self::of_user(git, user);
        let all: Vec<PathBuf> = plan.location.files();
        let known: Vec<(PathBuf, RepoPath)> = all.iter().filter_map(|file| Some((file.clone(), git.repo_path(file)?))).collect();
        let names: Vec<String> = known.iter().map(|(_, path)| path.to_string()).collect();
        let (at_tip, at_head) = (git.files_at(tip, &names)?, git.files_at(head, &names)?);
        let number = known.iter().position(|(original, _)| *original == plan.location.plan);
        let plan_in = |texts: &[Option<Vec<u8>>]| number.and_then(|number| texts[number].clone()).unwrap_or_default();
        let (before, after) = (stories_in(&plan, &plan_in(&at_head)), stories_in(&plan, &plan_in(&at_tip)));
        // Done on the run's branch, and not landed yet.
        let waiting: Vec<StoryId> = after.into_iter().filter(|story| !before.contains(story)).collect();
        let mut files = Vec::new();
        for (((original, path), tip), head) in known.into_iter().zip(at_tip).zip(at_head) {
            let disk = read_linked(&original, LARGEST_PLAN).ok();
            // The user's file may lag behind the run's branch; an edit of the user's makes the plan theirs.
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

    /// Files of the plan, as git names them: an agent's edits of them do not count.
    pub fn paths(&self) -> &PathSet {
        &self.paths
    }

    /// Whether story commits mark the plan.
    pub fn is_committed(&self) -> bool {
        !self.committed.is_empty()
    }

    /// The user's files of the plan that are in no commit as they stand: a workspace gets copies.
    pub fn uncommitted(&self) -> Vec<PathBuf> {
        let is_committed = |file: &PathBuf| self.committed.iter().any(|committed| committed.original == *file);
        self.location.files().into_iter().filter(|file| !is_committed(file) && file.is_file()).collect()
    }

    /// What a story's commit holds of the plan: each committed file with its present text.
    pub fn texts(&self) -> Vec<(RepoPath, Vec<u8>)> {
        let text = |file: &CommittedFile| Some((file.path.clone(), fs::read(&file.copy).ok()?));
        self.committed.iter().filter_map(text).collect()
    }

    /// What a workspace was given of the plan: its files are not the agent's to change.
    pub fn given(&self) -> Vec<(RepoPath, Vec<u8>)> {
        self.given.clone()
    }

    /// Remembers what a workspace is given.
    pub fn give(&mut self, git: &Git) {
        let loose = self.uncommitted();
        let loose = loose.iter().filter_map(|file| Some((git.repo_path(file)?, read_linked(file, LARGEST_PLAN).ok()?)));
        self.given = self.texts().into_iter().chain(loose).collect();
    }

    /// Takes over what the user changed. From then on the user's file is marked: with what the run's commits say, too.
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

    /// The last mark stays: it was committed, with the other files of the plan as they are now.
    pub fn forget_mark(&mut self) {
        for file in &mut self.committed {
            file.in_commit = fs::read(&file.copy).ok().as_deref().map(digest);
        }
        self.file.forget_mark();
    }

    /// Marks a story in the user's own file, whose present text counts. The mark stays, whatever becomes of the next story.
    pub fn mark_users_file(&mut self, story: &StoryId, status: Status) -> Result<(), PlanFileError> {
        self.file.refresh()?;
        if self.file.plan().story(story).is_some_and(|found| found.status == status) {
            // We may have been killed between the two files.
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
    /// A file that says what our copy or the last commit says was landed, not edited. Progress is told after the commit, so that
    /// they may differ.
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

/// The stories that are done in another text of the plan.
fn stories_in(plan: &RunPlan, text: &[u8]) -> Vec<StoryId> {
    Document::parse(plan.file.document().name(), text).map_or_else(|_| Vec::new(), |document| done_stories(document.plan()))
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

/// A committed file is copied as it is at the tip; another file of the user's is reached through a link.
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

/// The same location among the copies.
fn copied(git: &Git, location: &PlanLocation, folder: &Path) -> PlanLocation {
    let at = |path: &PathBuf| git.repo_path(path).map_or_else(|| path.clone(), |path| folder.join(path.as_path()));
    PlanLocation { plan: at(&location.plan), home: location.home, progress: location.progress.as_ref().map(at) }
}
