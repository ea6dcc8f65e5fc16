//! The driver's effects, one file each. A step acts and returns what it observed; the core decides what comes next.

mod brief;
mod ci;
mod commit;
mod conditions;
mod finish;
mod hand_over;
mod keep_attempt;
mod land;
mod learn;
mod old_tests;
mod prepare;
mod red_check;
mod regression;
mod script;
mod select;
mod turn;
mod verify;
mod wait;

use std::io;
use std::time::SystemTime;

use verdone_core::base::id::StoryId;
use verdone_core::engine::prompt::PromptError;
use verdone_core::engine::run::{Attempt, Input, State};
use verdone_core::journal::update::{Reporter, Update};
use verdone_plan::progress::{LoopState, LoopStatus};

use crate::git::GitError;
use crate::project::plan_file::PlanFileError;
use crate::run::context::RunContext;
use crate::store::sessions::run_sessions;
use crate::verify::VerifyError;
use crate::workspace::WorkspaceError;

pub use commit::{commit, entry};
pub use finish::{finish, is_plan_message, progress_message};
pub use keep_attempt::keep;
pub use land::land;
pub use learn::{Noted, add_note, learn};
pub use prepare::prepare;
pub use red_check::red_check;
pub use regression::{regression, reopen};
pub use script::script;
pub use select::select;
pub use turn::{first_prompt, turn};
pub use verify::{MidTurnReport, verify, verify_during_turn};
pub use wait::wait;

/// A failure of Verdone itself: it never counts against a story.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    #[error(transparent)]
    Verify(#[from] VerifyError),
    #[error(transparent)]
    Plan(#[from] PlanFileError),
    #[error(transparent)]
    Prompt(#[from] PromptError),
    #[error("{why}; the commit of {story} is kept: on branch {branch}, `git merge {kept}` adds it")]
    CommitKept { why: Box<GitError>, story: StoryId, branch: String, kept: String },
    #[error("the branch {branch} has commits that are not Verdone's; rename or delete it first")]
    ReviewBranch { branch: String },
    #[error("{doing}: {source}")]
    Io { doing: String, source: io::Error },
    #[error("internal error: {0} without an attempt")]
    NoAttempt(&'static str),
}

/// Removes locks left by a killed git process of ours, which would block the next one.
pub fn clear_locks(context: &RunContext, reporter: &mut dyn Reporter) {
    let removed = context.git.remove_stale_locks(context.setup.since, &context.setup.run, Some(&context.setup.branch));
    for lock in removed.unwrap_or_default() {
        reporter.report(Update::Notice { text: &format!("removed {}, left by a killed git process", lock.display()) });
    }
}

/// Shows what the user should know about the workspaces, such as hosts that were refused.
pub fn show_notes(context: &mut RunContext, reporter: &mut dyn Reporter) {
    for text in context.spaces.take_notes() {
        reporter.report(Update::Notice { text: &text });
    }
}

/// Resets the agent's workspace to exactly the tip of the run's branch.
pub fn reset(context: &mut RunContext, state: &State, reporter: &mut dyn Reporter) -> Result<Input, StepError> {
    context.attempt.candidate = None;
    context.attempt.lessons.clear();
    follow_target(context, reporter)?;
    context.attempt.since = SystemTime::now();
    context.attempt.claims_from = crate::session::claims::length(&run_sessions(&context.setup.run_dir));
    record_iteration(context, state)?;
    let loose = context.plan.uncommitted();
    context.spaces.copy_again(&loose);
    if context.spaces.needs_new_agent_space(&context.tip) {
        // The client is running in the folder that will be removed.
        context.agent.end(context.setup.config.limits.grace.duration(), &context.setup.signals);
    }
    context.plan.give(&context.git);
    context.spaces.reset_agent(&context.git, &context.tip, &context.setup.branch, &loose)?;
    Ok(Input::Ready { base: Some(context.tip.clone()), tree: None })
}

/// If all of the run's commits have landed and the user's branch has moved on, the
/// attempt starts from there. Otherwise `verdone land` re-applies the commits later.
fn follow_target(context: &mut RunContext, reporter: &mut dyn Reporter) -> Result<(), StepError> {
    let Some(name) = context.setup.target.clone() else { return Ok(()) };
    let Some(tip) = context.git.branch_tip(&name)? else { return Ok(()) };
    if tip == context.tip || !context.git.is_part_of(&context.tip, &tip)? {
        return Ok(());
    }
    // A changed plan applies from the next story on, after it was read again.
    let changed = context.git.changed_paths(Some(&context.tip), &tip)?;
    if context.plan.is_committed() && changed.iter().any(|change| context.plan.paths().contains(&change.path)) {
        return Ok(());
    }
    match context.git.advance_branch(&context.setup.branch, &tip, &context.tip) {
        Ok(()) => {}
        // Committing the attempt will report it.
        Err(GitError::CheckedOut { .. } | GitError::BranchMoved { .. }) => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    context.setup.start = tip.clone();
    context.tip = tip;
    let text = format!("{name} has moved on: continuing from {}", context.tip.short());
    reporter.report(Update::Notice { text: &text });
    Ok(())
}

fn record_iteration(context: &mut RunContext, state: &State) -> Result<(), StepError> {
    context.plan.record_status(&LoopStatus { iteration: state.iteration, state: LoopState::InProgress })?;
    Ok(())
}

fn attempt_of<'a>(state: &'a State, step: &'static str) -> Result<&'a Attempt, StepError> {
    state.attempt.as_ref().ok_or(StepError::NoAttempt(step))
}

pub(crate) fn io_error(doing: impl Into<String>) -> impl FnOnce(io::Error) -> StepError {
    let doing = doing.into();
    move |source| StepError::Io { doing, source }
}
