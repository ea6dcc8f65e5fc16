//! The story's commit: exactly the verified tree, the user's git hooks included.

use std::path::Path;

use verdone_core::check::CheckRun;
use verdone_core::evidence::Evidence;
use verdone_core::id::Oid;
use verdone_core::machine::{Attempt, Input, Phase, State};
use verdone_core::plan::progress::StoryEntry;
use verdone_core::proof::{AgentTest, AsBefore};
use verdone_core::update::{Reporter, Update};

use super::agent_test::agent_test;
use super::as_before::as_before;
use super::verify::put_back;
use super::{RUNNING, StepError, attempt_of, io_error};
use crate::git::{Commit, CommitError};
use crate::site::Site;

pub fn commit(site: &mut Site, state: &State, reporter: &mut dyn Reporter) -> Result<Input, StepError> {
    let attempt = attempt_of(state, "commit")?;
    let (Phase::Committing { tree, verdict }, Some(candidate)) = (&state.phase, site.candidate.take()) else {
        return Err(StepError::NoAttempt("commit"));
    };
    let evidence = Evidence::of(state, attempt, *verdict, tree, &attempt.proof);
    let message = evidence.commit_message(&site.config.commit.subject);
    let called_off = || site.signals.stop().is_some();
    let commit = match site.git.commit_unless(&candidate, &message, site.config.commit.timeout.duration(), &called_off) {
        Ok(commit) => commit,
        Err(CommitError::Refused { message, .. }) => {
            site.plan.unmark()?;
            // The user's hooks print what they like.
            return Ok(Input::CommitRefused { message: site.redactor.redact(&message).into_owned() });
        }
        Err(CommitError::Git(error)) => return Err(error.into()),
    };
    let files = candidate.changes.len() as u32;
    if commit.tree == *tree {
        // An edit of the user's may stay. A box that something ticked meanwhile may not.
        if !site.plan.marks_are_ours()? {
            for path in put_back(site, attempt, "commit")? {
                reporter.report(Update::Notice { text: &format!("{path} was changed during the commit; it was put back") });
            }
        }
        put_deleted_back(site, attempt, reporter);
        return Ok(record(site, &evidence, commit.id, commit.tree, files, reporter));
    }
    verify_again(site, state, &evidence, commit, candidate.head.as_ref(), files, reporter)
}

/// A git hook rewrote files, so the commit is not what was verified: only checks on the new tree count.
fn verify_again(
    site: &mut Site,
    state: &State,
    first: &Evidence,
    Commit { id: commit, tree, .. }: Commit,
    parent: Option<&Oid>,
    files: u32,
    reporter: &mut dyn Reporter,
) -> Result<Input, StepError> {
    let attempt = attempt_of(state, "commit")?;
    let checkpoint = attempt.checkpoint.as_ref().ok_or(StepError::NoAttempt("commit"))?;
    let changed = site.git.changed_paths(checkpoint.head.as_ref(), &tree)?;
    let checks = site.checks_of(&attempt.place.story, &changed);
    let runs = site.run_checks_on(Some(&tree), &checks, reporter).map_err(io_error(RUNNING))?;
    put_back(site, attempt, "commit")?;
    let candidate = site.git.candidate(checkpoint, &site.candidate_rules())?;
    let clean = candidate.tree == tree;
    let tested = agent_test(site, attempt, &tree, &candidate.changes, reporter)?;
    let still = !attempt.agent_test.as_ref().is_some_and(AgentTest::proves) || tested.is_some_and(|tested| tested.tests.proves());
    let held = attempt.as_before.as_ref().is_some_and(AsBefore::holds);
    let same = if held { as_before(site, state, attempt, &tree, &changed, reporter)? } else { None };
    let still = still && same.is_none_or(|same| same.holds());
    let honest = site.plan.marks_are_ours()?;
    if clean && honest && still && runs.len() == checks.len() && !runs.iter().any(CheckRun::blocks) {
        // The commit names the first evidence: the note keeps both.
        let evidence = Evidence::of(state, attempt, first.verdict, &tree, &runs).in_place_of(first);
        put_deleted_back(site, attempt, reporter);
        return Ok(record(site, &evidence, commit, tree, files, reporter));
    }
    site.git.uncommit(&commit, parent)?;
    site.plan.unmark()?;
    let failed = verdone_core::machine::Feedback::from_runs(&runs).reason;
    Ok(Input::CommitRefused { message: format!("a git hook changed files, and the result does not pass: {failed}") })
}

/// The user's own files that the attempt deleted. What the story's checks do to such files is not the agent's doing.
fn put_deleted_back(site: &Site, attempt: &Attempt, reporter: &mut dyn Reporter) {
    let Some(checkpoint) = &attempt.checkpoint else { return };
    match site.git.put_back_deleted(checkpoint, &site.untracked_before) {
        Ok(paths) => {
            for path in paths {
                reporter.report(Update::Notice { text: &format!("{path} is not in git and was deleted; it was put back") });
            }
        }
        Err(error) => {
            let text = format!("deleted files that are not in git could not be put back (the checkpoint has them): {error}");
            reporter.report(Update::Notice { text: &text });
        }
    }
}

fn record(site: &mut Site, evidence: &Evidence, commit: Oid, tree: Oid, files: u32, reporter: &mut dyn Reporter) -> Input {
    let noted = site.git.note(&commit, &evidence.to_note());
    if let Err(error) = &noted {
        let text = format!("the evidence note could not be written (the journal has it): {error}");
        reporter.report(Update::Notice { text: &text });
    }
    let green = evidence.after.iter().filter(|proof| proof.outcome.passed()).map(|proof| proof.command.clone());
    site.green = Some((tree.clone(), green.collect()));
    let (run_dir, root) = (&site.run_dir, &site.root);
    let entry = entry(run_dir, root, evidence, &commit, &evidence.subject(&site.config.commit.subject));
    if let Err(error) = site.plan.record_story(&entry) {
        reporter.report(Update::Notice { text: &format!("the progress file could not be written: {error}") });
    }
    Input::Committed { commit, tree, files, evidence: Some(evidence.digest()), noted: noted.is_ok() }
}

/// The story's entry in a progress file.
pub fn entry(run_dir: &Path, root: &Path, evidence: &Evidence, commit: &Oid, subject: &str) -> StoryEntry {
    StoryEntry {
        at: jiff::Zoned::now().strftime("%Y-%m-%d %H:%M").to_string(),
        story: evidence.story.clone(),
        title: evidence.title.clone(),
        thread: None,
        run: evidence.run.to_string(),
        run_log: Some(crate::site::shown(&run_dir.join("journal.jsonl"), root)),
        commit: Some(format!("{} {subject}", commit.short())),
        verification: evidence.after.iter().map(|proof| (proof.command.display(), proof.outcome.passed())).collect(),
    }
}
