//! Where HEAD is, and taking back a commit that was not to stay.

use std::path::{Path, PathBuf};

use verdone_core::event::Checkpoint;
use verdone_core::id::{Oid, RunId};

use super::error::GitError;
use super::{Git, RepoPath};
use crate::fault::{self, Point};
use crate::process::RUN_VARIABLE;

/// How the reflog tells moves of HEAD by a run, and by the agents that it starts, from the user's own and from those of other runs.
pub fn reflog_mark(run: &str) -> String {
    format!("verdone {run}")
}

impl Git {
    /// A path below the top level as git names it; none for one outside.
    pub fn repo_path(&self, path: &Path) -> Option<RepoPath> {
        path.strip_prefix(self.top()).ok().map(|path| RepoPath::new(path.as_os_str().as_encoded_bytes()))
    }

    /// Takes back a commit that we made a moment ago: the branch points to its parent again, files and index stay.
    pub fn uncommit(&self, commit: &Oid, parent: Option<&Oid>) -> Result<(), GitError> {
        fault::point(Point::Uncommit).map_err(GitError::io(Path::new("HEAD")))?;
        let call = self.plumbing("update-ref").args(["-m", &format!("{}: take the commit back", self.own_reflog_mark())]);
        match parent {
            Some(parent) => call.args(["HEAD", parent.as_str(), commit.as_str()]).line().map(|_| ()),
            None => call.args(["-d", "HEAD", commit.as_str()]).line().map(|_| ()),
        }
    }

    /// Where HEAD stood before a moment, as the dates of commits tell; none where everything is younger.
    pub fn commit_before(&self, at: jiff::Timestamp) -> Result<Option<Oid>, GitError> {
        if self.head_commit()?.is_none() {
            return Ok(None);
        }
        let before = format!("--min-age={}", at.as_second());
        let line = self.plumbing("rev-list").args(["--max-count=1", &before, "HEAD", "--"]).line()?;
        Ok((!line.is_empty()).then_some(Oid(line)))
    }

    /// Whether one commit is part of another's history, or the same.
    pub fn is_part_of(&self, commit: &Oid, tip: &Oid) -> Result<bool, GitError> {
        let answer = self.plumbing("merge-base").args(["--is-ancestor", commit.as_str(), tip.as_str()]).answer()?;
        match answer.status.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(answer.failure("merge-base")),
        }
    }

    /// The commit at HEAD, if it is new since the checkpoint and has exactly this tree.
    pub fn commit_made_since(&self, checkpoint: &Checkpoint, tree: &Oid) -> Result<Option<Oid>, GitError> {
        Ok(self.head_commit()?.filter(|(id, of)| Some(id) != checkpoint.head.as_ref() && of == tree).map(|(id, _)| id))
    }

    /// The mark of the run that this is part of; a plain one outside of runs.
    pub(super) fn own_reflog_mark(&self) -> String {
        let run = self.environment.iter().rfind(|(name, _)| name == RUN_VARIABLE).map(|(_, run)| run.to_string_lossy());
        run.map_or_else(|| "verdone".to_owned(), |run| reflog_mark(&run))
    }

    /// Whether HEAD got from `since` to where it is by moves of this run and of its agent's alone, as the reflog tells: another run,
    /// in another folder of the repository, may have committed since. Without a reflog nothing is certain, so the answer is no.
    pub fn moved_by(&self, run: &RunId, since: Option<&Oid>, head: Option<&Oid>) -> Result<bool, GitError> {
        let answer = self.plumbing("reflog").args(["show", "--format=%H %gs", "HEAD", "--"]).answer()?;
        let text = String::from_utf8_lossy(&answer.stdout);
        let entries: Vec<(&str, &str)> = text.lines().filter_map(|line| line.split_once(' ')).collect();
        if !answer.status.success() || entries.first().map(|(id, _)| *id) != head.map(Oid::as_str) {
            return Ok(false);
        }
        let mark = reflog_mark(run.as_str());
        let ours = entries.iter().take_while(|(_, what)| what.starts_with(&mark)).count();
        Ok(match since {
            // A switch to another branch moves HEAD and not its commit, so the newest entry itself is never where it began.
            Some(since) => entries.iter().take(ours + 1).skip(1).any(|(id, _)| *id == since.as_str()),
            None => ours > 0 && ours == entries.len(),
        })
    }

    /// The first line of a commit's message.
    pub fn subject(&self, commit: &Oid) -> Result<String, GitError> {
        self.plumbing("log").args(["-1", "--format=%s", "--end-of-options", commit.as_str()]).line()
    }

    /// Whether a commit is the one that a run made after its last story, to record progress.
    pub fn only_records_progress(&self, commit: &Oid, parent: &Oid, run: &RunId) -> Result<bool, GitError> {
        let format = "--format=%P%n%(trailers:key=Verdone-Run,valueonly,separator=%x20)%n%(trailers:key=Verdone-Story,valueonly)";
        let said = self.plumbing("log").args(["-1", format, "--end-of-options", commit.as_str()]).run()?;
        let said = String::from_utf8_lossy(&said);
        let mut lines = said.lines();
        let (parents, runs, stories) = (lines.next(), lines.next(), lines.next());
        Ok(parents == Some(parent.as_str()) && runs == Some(run.as_str()) && stories.is_none_or(str::is_empty))
    }

    /// The files that a checkpoint keeps beyond the work tree's own: the plan and what belongs to it.
    pub fn extra_paths(&self, checkpoint: &Checkpoint) -> Result<Vec<PathBuf>, GitError> {
        let snapshot = self.snapshot(&checkpoint.id)?;
        Ok(snapshot.manifest.extra.iter().map(|kept| self.top().join(kept.path.as_path())).collect())
    }
}
