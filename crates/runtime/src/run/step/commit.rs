//! The story's commit: exactly the verified tree, on the run's branch. The user's commit hooks run first, in a workspace. If they rewrite
//! files, the result is verified again before it is committed.

use std::path::Path;

use verdone_core::base::id::Oid;
use verdone_core::engine::run::{Input, Phase, State};
use verdone_core::evidence::{Evidence, with_own_trailers};
use verdone_core::journal::update::{Reporter, Update};
use verdone_core::verify::Outcome;
use verdone_plan::Status;
use verdone_plan::progress::StoryEntry;

use super::verify::verify_again;
use super::{StepError, attempt_of};
use crate::git::{CommitError, GitError};
use crate::run::context::RunContext;
use crate::run::merge_request;
use crate::workspace::HookOutcome;

pub fn commit(context: &mut RunContext, state: &State, reporter: &mut dyn Reporter) -> Result<Input, StepError> {
    let attempt = attempt_of(state, "commit")?;
    let (Phase::Committing { tree, proof, outcome }, Some(candidate), Some(report)) =
        (&state.phase, context.attempt.candidate.take(), attempt.report.as_deref())
    else {
        return Err(StepError::NoAttempt("commit"));
    };
    let mut evidence = Evidence::for_attempt(state, attempt, (*proof, *outcome), report);
    let kind = context.plan.plan().story(&evidence.story).and_then(|story| story.kind);
    let mut message = evidence.commit_message(&context.setup.config.commit.subject, kind);
    let mut tree = tree.clone();
    let mut rewrote = false;
    match run_hooks(context, &tree, &message)? {
        None => {}
        Some(HookOutcome::Refused { said }) => return refused(context, &said),
        Some(HookOutcome::Passed { tree: rewritten, message: edited }) => {
            message = with_own_trailers(&edited, &message);
            // A hook may run code from the attempt, which could tick boxes.
            let rewritten = context.with_plan(&rewritten)?;
            if rewritten != tree {
                let again = verify_again(context, state, attempt, &rewritten, reporter)?;
                if let Some(why) = again.falls_short_of(*proof, *outcome) {
                    return refused(context, &format!("a git hook changed files, and the result does not pass: {why}"));
                }
                // The commit message names the first evidence, so the note contains both.
                evidence = Evidence::for_attempt(state, attempt, (*proof, *outcome), &again).in_place_of(&evidence);
                tree = rewritten;
                // The agent's files now differ from the commit.
                rewrote = true;
            }
        }
    }
    let commit =
        match context.git.commit_tree(&tree, Some(&context.tip), &message, context.setup.config.commit.timeout.duration()) {
            Ok(commit) => commit,
            Err(CommitError::Refused { message, .. }) => return refused(context, &message),
            Err(CommitError::Git(error)) => return Err(error.into()),
        };
    // Before the branch moves, so that every visible commit has its evidence.
    let noted = match context.git.note(&commit, &evidence.to_note()) {
        // The journal has no evidence of what a hook rewrote, so this note could not be written later.
        Err(error) if rewrote => return Err(error.into()),
        noted => noted,
    };
    if let Err(error) = &noted {
        let text = format!("the evidence note could not be written (the journal has the evidence): {error}");
        reporter.report(Update::Notice { text: &text });
    }
    match context.git.advance_branch(&context.setup.branch, &commit, &context.tip) {
        Ok(()) => {}
        // The user moved the branch, or has it checked out with conflicting changes.
        Err(why @ (GitError::CheckedOut { .. } | GitError::BranchMoved { .. })) => {
            let kept = context.git.keep_story_commit(&context.setup.run, &commit)?;
            let (story, branch) = (evidence.story, context.setup.branch.clone());
            return Err(StepError::CommitKept { why: Box::new(why), story, branch, kept });
        }
        Err(error) => return Err(error.into()),
    }
    context.tip = commit.clone();
    context.plan.forget_mark();
    if rewrote {
        context.spaces.replace_agent_next();
    }
    // A commit hook may have edited the message.
    let subject = message.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    record(context, &evidence, (&commit, subject), &tree, reporter);
    if *outcome == Outcome::Done {
        merge_request::prepare_requested(context, state, &evidence.story, &commit, reporter);
    }
    let files = candidate.changes.len() as u32;
    Ok(Input::Committed { commit, tree, files, evidence: Some(evidence.digest()), noted: noted.is_ok() })
}

fn refused(context: &mut RunContext, said: &str) -> Result<Input, StepError> {
    context.plan.unmark()?;
    // Hook output may contain secrets.
    Ok(Input::CommitRefused { message: context.setup.redactor.redact(said).into_owned() })
}

/// `None` if the user has no commit hooks.
fn run_hooks(context: &mut RunContext, tree: &Oid, message: &str) -> Result<Option<HookOutcome>, StepError> {
    if !context.git.has_commit_hooks()? {
        return Ok(None);
    }
    let signals = context.setup.signals.clone();
    let called_off = || signals.stop().is_some();
    let timeout = context.setup.config.commit.timeout.duration();
    Ok(Some(context.spaces.run_commit_hooks(&context.git, tree, &context.tip, message, timeout, &called_off)?))
}

/// Follow-up work after a commit. Failures here cannot undo the commit.
fn record(
    context: &mut RunContext,
    evidence: &Evidence,
    (commit, subject): (&Oid, &str),
    tree: &Oid,
    reporter: &mut dyn Reporter,
) {
    let base = evidence.base.clone().unwrap_or_else(|| commit.clone());
    let mut notice = |text: String| reporter.report(Update::Notice { text: &text });
    let green = evidence.after.iter().filter(|proof| proof.outcome.passed()).map(|proof| proof.command.clone());
    context.green = (!context.spaces.has_cache()).then(|| (tree.clone(), green.collect()));
    context.results.keep_only(tree);
    if let Some((_, built)) = context.built.take().filter(|(of, _)| of == tree) {
        context.spaces.adopt_cache(built, commit);
    }
    if !context.plan.is_committed()
        && evidence.outcome == Outcome::Done
        && let Err(error) = context.plan.mark_users_file(&evidence.story, Status::Done)
    {
        notice(format!("{} could not be ticked: {error}", evidence.story));
    }
    let entry = entry(&context.setup.run_dir, &context.setup.root, evidence, commit, subject);
    if let Err(error) = context.plan.record_story(&entry) {
        notice(format!("the progress file could not be written: {error}"));
    }
    if !context.spaces.needs_new_agent_space(&base)
        && let Err(error) = context.spaces.follow(&context.git, commit, &context.plan.texts())
    {
        notice(format!("replacing the agent's workspace: {error}"));
    }
}

/// The story's entry in a progress file.
pub fn entry(run_dir: &Path, root: &Path, evidence: &Evidence, commit: &Oid, subject: &str) -> StoryEntry {
    StoryEntry {
        at: jiff::Zoned::now().strftime("%Y-%m-%d %H:%M").to_string(),
        story: evidence.story.clone(),
        title: evidence.title.clone(),
        thread: None,
        run: evidence.run.to_string(),
        run_log: Some(crate::project::shown(&run_dir.join("journal.jsonl"), root)),
        commit: Some(format!("{} {subject}", commit.short())),
        verification: evidence.after.iter().map(|proof| (proof.command.display(), proof.outcome.passed())).collect(),
    }
}
