//! Finishes a run: ends all processes, updates progress files, and commits them if git tracks them.

use verdone_core::base::finish::Finish;
use verdone_core::base::id::{Oid, RunId};
use verdone_core::config::LandMode;
use verdone_core::engine::run::{Input, Phase, State};
use verdone_core::journal::event::Event;
use verdone_core::journal::update::{Reporter, Update};
use verdone_core::lifecycle::Script;
use verdone_plan::progress::{LoopState, LoopStatus};
use verdone_plan::{Plan, ReviewState, Status};

use super::StepError;
use super::script::run_script;
use crate::git::{CommitError, GitError};
use crate::process;
use crate::run::context::RunContext;
use crate::run::land::{LandError, Landed, Target, land_tip};
use crate::store::live_output::remove_live_output;
use crate::store::{Store, proven};

const PROGRESS: &str = "chore: record progress";
pub(super) const REOPEN_ONE: &str = "chore: reopen a broken story";
pub(super) const REOPEN_SEVERAL: &str = "chore: reopen broken stories";

pub fn finish(context: &mut RunContext, state: &State, reporter: &mut dyn Reporter) -> Result<Input, StepError> {
    let grace = context.setup.config.limits.grace.duration();
    context.setup.scripts.end_background(grace, &context.setup.signals);
    context.agent.end(grace, &context.setup.signals);
    process::end_leftovers(&[], grace, &context.setup.signals);
    context.spaces.drop_agent();
    // Prune removes what is left if this fails.
    let _ = remove_live_output(&context.setup.run_dir);
    for text in context.spaces.take_notes() {
        reporter.report(Update::Notice { text: &text });
    }
    let order = put_in_order(context, state);
    if let Err(error) = &order {
        reporter.report(Update::Notice { text: &format!("the end of the run could not be recorded: {error}") });
    }
    // Whatever went wrong, run the script that notifies the user.
    let script = run_script(context, state, Script::Finished, reporter);
    let landed = order?.map(Box::new);
    Ok(Input::Finished { landed, script: script? })
}

fn put_in_order(context: &mut RunContext, state: &State) -> Result<Option<Event>, StepError> {
    if let Phase::Stopping { finish } = &state.phase {
        let status = LoopStatus { iteration: state.iteration, state: loop_state(context, *finish) };
        context.plan.record_status(&status)?;
    }
    commit_progress(context, state)?;
    Ok(match land_the_rest(context, state) {
        Ok(event) => event,
        // This was reported after the story, and the end of the run lists what has not landed.
        Err(LandError::Refused { .. }) => None,
        Err(error) => Some(Event::LandingRefused { reason: error.to_string() }),
    })
}

/// The state is complete only if every story was proven, by this run or an earlier one.
fn loop_state(context: &RunContext, finish: Finish) -> LoopState {
    let plan = context.plan.plan();
    match finish {
        Finish::Complete if all_proven(context, plan) => LoopState::Complete,
        Finish::MaxIterations | Finish::Budget | Finish::Timeout => {
            let open = plan.stories.iter().filter(|story| story.status != Status::Done);
            LoopState::ReachedLimit { remaining: open.map(|story| story.id.clone()).collect() }
        }
        Finish::Complete
        | Finish::Manual
        | Finish::NoChanges
        | Finish::Error
        | Finish::HookAbort
        | Finish::Stalled
        | Finish::Blocked => LoopState::InProgress,
    }
}

fn all_proven(context: &RunContext, plan: &Plan) -> bool {
    let Ok(known) = proven(&Store::new(&context.setup.root), &context.plan_name()) else { return false };
    plan.stories.iter().all(|story| known.get(&story.id).is_some_and(|result| result.is_checked()))
}

/// Progress written after the last story commit gets a separate commit, if git tracks the files.
fn commit_progress(context: &mut RunContext, state: &State) -> Result<(), StepError> {
    if state.attempt.is_some() || state.commits == 0 {
        return Ok(());
    }
    commit_plan(context, PROGRESS).map(drop)
}

/// Lands progress, and whatever an earlier landing left.
fn land_the_rest(context: &RunContext, state: &State) -> Result<Option<Event>, LandError> {
    if context.setup.config.run.land != LandMode::Auto || is_held(state) {
        return Ok(None);
    }
    let Some(target) = Target::find(&context.git, context.setup.target.as_deref())? else { return Ok(None) };
    if context.git.is_part_of(&context.tip, &target.tip)? {
        return Ok(None);
    }
    let Landed { branch, from, to, .. } = land_tip(&context.git, target.name.as_deref(), &context.tip)?;
    Ok(Some(Event::Landed { branch, from, to, left: 0 }))
}

/// Whether something on the run's branch needs review.
fn is_held(state: &State) -> bool {
    state.progress.review.values().any(|waiting| *waiting == ReviewState::Stacked)
}

/// The message of a commit that contains only progress.
pub fn progress_message(run: &RunId) -> String {
    message(PROGRESS, run)
}

/// Whether this is the message of a commit in which a run changed only the plan's files.
pub fn is_plan_message(text: &str, run: &RunId) -> bool {
    [PROGRESS, REOPEN_ONE, REOPEN_SEVERAL].iter().any(|subject| text == message(subject, run))
}

fn message(subject: &str, run: &RunId) -> String {
    format!("{subject}\n\nVerdone-Run: {run}\n")
}

/// Commits the plan's current files on top of the run's branch. `None` if they have not changed.
pub(super) fn commit_plan(context: &mut RunContext, subject: &str) -> Result<Option<Oid>, StepError> {
    let before = context.tip_tree()?;
    let tree = context.with_plan(&before)?;
    if tree == before {
        return Ok(None);
    }
    let message = message(subject, &context.setup.run);
    let commit = || context.git.commit_tree(&tree, Some(&context.tip), &message, context.setup.config.commit.timeout.duration());
    // No later commit picks up what the end of a run leaves behind, so retry once if git fails.
    let made = commit().or_else(|error| if matches!(error, CommitError::Git(_)) { commit() } else { Err(error) });
    let commit = match made {
        Ok(commit) => commit,
        // Nothing is lost: the next story's commit includes it.
        Err(CommitError::Refused { .. }) => return Ok(None),
        Err(CommitError::Git(error)) => return Err(error.into()),
    };
    match context.git.advance_branch(&context.setup.branch, &commit, &context.tip) {
        Ok(()) => {}
        Err(GitError::CheckedOut { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    context.tip = commit.clone();
    Ok(Some(commit))
}
