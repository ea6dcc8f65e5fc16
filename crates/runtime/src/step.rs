//! What the driver can do, one file an effect. A step does, and answers with what it saw; it never decides what comes next.

mod agent_test;
mod as_before;
mod aside;
mod brief;
mod changers;
mod commit;
mod done;
mod doubts;
mod finish;
mod hand_over;
mod prepare;
mod red_check;
mod regression;
mod roll_back;
mod script;
mod select;
mod tests_again;
mod turn;
mod verify;
mod wait;

use std::io;
use std::time::SystemTime;

use verdone_core::machine::{Attempt, Input, State};
use verdone_core::plan::progress::{LoopState, LoopStatus};
use verdone_core::prompt::PromptError;

use crate::git::{GitError, PathSet};
use crate::plan_file::PlanFileError;
use crate::sessions::run_sessions;
use crate::site::Site;

pub use aside::{bring_back, keep_changes, set_aside};
pub use commit::{commit, entry};
pub use finish::finish;
pub use prepare::prepare;
pub use red_check::red_check;
pub(crate) use red_check::red_of;
pub use regression::{regression, reopen};
pub use roll_back::roll_back;
pub use script::script;
pub use select::select;
pub use turn::{build_prompt, turn};
pub use verify::verify;
pub use wait::wait;

/// What is being done when a check's files cannot be written.
const RUNNING: &str = "keeping the output of a check";

/// Verdone's own trouble: it never counts against a story.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Plan(#[from] PlanFileError),
    #[error(transparent)]
    Prompt(#[from] PromptError),
    #[error("{doing}: {source}")]
    Io { doing: String, source: io::Error },
    #[error("internal error: {0} without an attempt")]
    NoAttempt(&'static str),
}

/// Snapshots the work tree before anything of the attempt happens.
pub fn checkpoint(site: &mut Site, state: &State) -> Result<Input, StepError> {
    let attempt = attempt_of(state, "checkpoint")?;
    (site.candidate, site.before_turn) = (None, None);
    site.attempt_since = SystemTime::now();
    site.untracked_before = PathSet::default();
    site.debris.clear();
    site.claims_from = crate::claims::length(&run_sessions(&site.run_dir));
    tell_iteration(site, state)?;
    let label = format!("{} attempt {}", attempt.place.story, attempt.place.attempt);
    site.refs = site.git.refs()?;
    Ok(Input::Checkpointed(site.checkpoint(&label)?))
}

/// Before the checkpoint, so that a rollback does not take it back.
fn tell_iteration(site: &mut Site, state: &State) -> Result<(), StepError> {
    let max_iterations = Some(site.config.limits.max_iterations).filter(|max| *max > 0);
    site.plan.record_status(&LoopStatus { iteration: state.iteration, max_iterations, state: LoopState::InProgress })?;
    Ok(())
}

fn attempt_of<'a>(state: &'a State, step: &'static str) -> Result<&'a Attempt, StepError> {
    state.attempt.as_ref().ok_or(StepError::NoAttempt(step))
}

fn io_error(doing: impl Into<String>) -> impl FnOnce(io::Error) -> StepError {
    let doing = doing.into();
    move |source| StepError::Io { doing, source }
}
