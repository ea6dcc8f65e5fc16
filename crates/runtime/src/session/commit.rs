//! Completes a story that is done: marks it in the plan and, if the settings ask for it, commits exactly what was verified, without the
//! user's changes from before the loop.
//!
//! If those changes cannot be separated, or the repository is in the middle of an
//! operation, there is no commit. The story is still marked, and the reason is reported.

use verdone_core::base::id::Oid;
use verdone_core::engine::run::{Attempt as Begun, Input, Phase};
use verdone_core::evidence::Evidence;
use verdone_core::journal::event::Checkpoint;
use verdone_core::verify::{FeedbackTurn, Outcome, Proof, VerifyReport};

use crate::git::{Candidate, CandidateRules, Commit, CommitError, History, Obstacle, PathSet, RepoPath};
use crate::project::HOME;

use super::StopError;
use super::drive::Driver;
use super::tree::client_settings_paths;
use super::verify::Attempt;

/// How many files a sentence names.
const NAMED: usize = 3;

/// Why there is no commit.
enum NoCommit {
    /// The agent cannot change this, so the story is marked anyway.
    Marked(String),
    /// The work stays unchanged: not committed and not marked.
    Refused(String),
}

impl Driver {
    pub(super) fn commit(&mut self) -> Result<Input, StopError> {
        let Some(begun) = self.state().attempt.clone() else { return Err(StopError::NoVerdict) };
        let files = match (&begun.tree, &begun.report) {
            (Some(base), Some(report)) => self.changed(base, &report.trees.attempt)?.len() as u32,
            _ => 0,
        };
        let story = begun.place.story.clone();
        self.plan.mark(&story)?;
        let Some(checkpoint) = self.held.checkpoint.clone() else { return Ok(Input::Marked { files, reason: None }) };
        match self.try_commit(&begun, &checkpoint)? {
            Ok(input) => Ok(input),
            Err(NoCommit::Marked(why)) => {
                self.notes.push(format!("story {story} was not committed: {why}."));
                Ok(Input::Marked { files, reason: Some(why) })
            }
            Err(NoCommit::Refused(why)) => {
                let marks = self.frozen(&story).marks;
                self.plan.take_back(&story, &marks)?;
                Ok(Input::CommitRefused { message: self.redactor.redact(&why).into_owned() })
            }
        }
    }

    fn try_commit(&mut self, begun: &Begun, checkpoint: &Checkpoint) -> Result<Result<Input, NoCommit>, StopError> {
        let (Phase::Committing { proof, outcome, .. }, Some(report)) = (self.state().phase.clone(), begun.report.as_deref())
        else {
            return Err(StopError::NoVerdict);
        };
        if let Some(why) = self.stands_in_the_way(checkpoint) {
            return Ok(Err(NoCommit::Marked(why)));
        }
        let earlier = self.git.earlier_changes(checkpoint, &self.ours())?;
        if !earlier.staged.is_empty() {
            let why = format!("you had staged changes when the loop started: {}", named(&earlier.staged));
            return Ok(Err(NoCommit::Marked(why)));
        }
        if !earlier.mixed.is_empty() {
            let why = format!(
                "{} already had uncommitted changes when the loop started, and changed again since",
                named(&earlier.mixed)
            );
            return Ok(Err(NoCommit::Marked(why)));
        }
        let candidate = self.candidate(checkpoint, &earlier.same)?;
        if let Some(why) = is_refused(&candidate) {
            return Ok(Err(why));
        }
        let report = if candidate.tree == report.trees.attempt {
            report.clone()
        } else {
            let apart = self.verify_again(begun, &candidate.tree)?;
            if let Some(why) = apart.falls_short_of(proof, outcome) {
                let why = format!("without the files you had changed before the loop started, it does not pass: {why}");
                return Ok(Err(NoCommit::Marked(why)));
            }
            apart
        };
        let state = self.state();
        let evidence = Evidence::for_attempt(state, begun, (proof, outcome), &report);
        if let Some(made) = self.made_before(begun, &candidate, &evidence)? {
            return Ok(Ok(made));
        }
        let kind = self.plan.view.story(&evidence.story).and_then(|story| story.kind);
        let message = evidence.commit_message(&self.config.commit.subject, kind);
        let called_off = || self.signals.requested().is_some();
        let timeout = self.config.commit.timeout.duration();
        let made = match self.git.commit_unless(&candidate, &message, timeout, &called_off) {
            Ok(made) => made,
            Err(CommitError::Refused { message, .. }) => return Ok(Err(NoCommit::Refused(message))),
            Err(CommitError::Git(error)) => return Err(error.into()),
        };
        let evidence = if made.tree == candidate.tree {
            evidence
        } else {
            match self.after_hooks(begun, &made, &candidate, (proof, outcome))? {
                // The commit message names the first evidence, so the note contains both.
                Ok(rewritten) => rewritten.in_place_of(&evidence),
                Err(why) => return Ok(Err(NoCommit::Refused(why))),
            }
        };
        // A hook may have changed files.
        self.tree = None;
        Ok(Ok(self.committed(made.id, &evidence)?))
    }

    /// Verifies a tree that the user's git hooks rewrote, like the first one.
    fn after_hooks(
        &mut self,
        begun: &Begun,
        made: &Commit,
        candidate: &Candidate,
        (proof, outcome): (Proof, Outcome),
    ) -> Result<Result<Evidence, String>, StopError> {
        let report = self.verify_again(begun, &made.tree)?;
        match report.falls_short_of(proof, outcome) {
            None => Ok(Ok(Evidence::for_attempt(self.state(), begun, (proof, outcome), &report))),
            Some(why) => {
                self.git.take_back(made, candidate.head.as_ref())?;
                Ok(Err(format!("a git hook changed files, and the result does not pass: {why}")))
            }
        }
    }

    /// Compares a tree without the user's changes with the last commit, which does not contain them either.
    fn verify_again(&mut self, begun: &Begun, tree: &Oid) -> Result<VerifyReport, StopError> {
        let base = match &begun.base {
            Some(base) => self.git.tree_of(base)?,
            None => begun.tree.clone().ok_or(StopError::NoVerdict)?,
        };
        let story = Some(&begun.place.story);
        let (feedback, allow_unchanged) = (FeedbackTurn::NoneLeft, true);
        self.judge(&Attempt { story, base: &base, tree, feedback, allow_unchanged, whole: false })
    }

    /// Finds the commit of a worker that was killed before it could record it. Anyone can write such a message, so only a commit with
    /// exactly the verified tree counts.
    fn made_before(&self, begun: &Begun, candidate: &Candidate, evidence: &Evidence) -> Result<Option<Input>, StopError> {
        let head = self.git.head_commit()?;
        let made = head.filter(|(head, tree)| Some(head) != begun.base.as_ref() && *tree == candidate.tree);
        let Some((commit, tree)) = made else { return Ok(None) };
        if self.git.head_that_names(&evidence.digest())?.as_ref() == Some(&commit) {
            return self.committed(commit, evidence).map(Some);
        }
        // A separate verification without the user's changes leaves no evidence behind, only the commit.
        let message = self.git.message(&commit)?;
        let is_ours = |line: &str| line == format!("Verdone-Story: {}", begun.place.story);
        let of_loop = |line: &str| line == format!("Verdone-Run: {}", self.held.run);
        if !message.lines().any(is_ours) || !message.lines().any(of_loop) {
            return Ok(None);
        }
        let files = self.git.changed_paths(begun.base.as_ref(), &commit)?.len() as u32;
        Ok(Some(Input::Committed { commit, tree, files, evidence: None, noted: false }))
    }

    fn committed(&self, commit: Oid, evidence: &Evidence) -> Result<Input, StopError> {
        let noted = self.git.note(&commit, &evidence.to_note()).is_ok();
        let files = self.git.changed_paths(evidence.base.as_ref(), &commit)?.len() as u32;
        Ok(Input::Committed { commit, tree: evidence.tree.clone(), files, evidence: Some(evidence.digest()), noted })
    }

    fn stands_in_the_way(&self, checkpoint: &Checkpoint) -> Option<String> {
        let waiting = self.state().progress.review.keys().next();
        if let Some(story) = waiting {
            return Some(format!("story {story} needs your review first, and its changes are in the same work tree"));
        }
        if checkpoint.branch.is_none() {
            return Some("the loop was started on a detached HEAD".to_owned());
        }
        self.git.operation_in_progress().map(|what| format!("a {what} is in progress"))
    }

    fn candidate(&self, checkpoint: &Checkpoint, apart: &[RepoPath]) -> Result<Candidate, StopError> {
        let (root, top) = (&self.project.root, &self.project.git_top);
        let not_judged = client_settings_paths(root, top).chain([root.join(HOME)]);
        let excluded: PathSet = not_judged.filter_map(|path| self.git.repo_path(&path)).chain(apart.iter().cloned()).collect();
        let rules = CandidateRules { excluded, largest_file: self.config.limits.largest_file() };
        Ok(self.git.candidate(checkpoint, &rules)?)
    }
}

fn is_refused(candidate: &Candidate) -> Option<NoCommit> {
    if let History::Moved { reason } = &candidate.history {
        return Some(NoCommit::Refused(reason.clone()));
    }
    candidate.obstacles.first().map(|obstacle| match obstacle {
        Obstacle::Operation(_) | Obstacle::Unmerged(_) => NoCommit::Marked(obstacle.to_string()),
        Obstacle::Submodule(_)
        | Obstacle::Nested(_)
        | Obstacle::NestedChanged(_)
        | Obstacle::TooLarge { .. }
        | Obstacle::Protected(_)
        | Obstacle::Hidden(_) => NoCommit::Refused(obstacle.to_string()),
    })
}

fn named(paths: &[RepoPath]) -> String {
    let names: Vec<String> = paths.iter().take(NAMED).map(ToString::to_string).collect();
    let more = paths.len().saturating_sub(NAMED);
    if more > 0 { format!("{} and {more} more", names.join(", ")) } else { names.join(", ") }
}
