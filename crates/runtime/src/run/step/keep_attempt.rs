//! Keeps rejected work as a commit that people can inspect, and discards its workspace.

use verdone_core::engine::run::{Input, State};

use super::{StepError, attempt_of};
use crate::run::context::RunContext;

pub fn keep(context: &mut RunContext, state: &State) -> Result<Input, StepError> {
    let attempt = attempt_of(state, "keeping")?;
    context.attempt.candidate = None;
    context.plan.unmark()?;
    let candidate = context.read_attempt()?;
    let place = &attempt.place;
    let message = format!("{} attempt {}, rejected\n\nVerdone-Run: {}\n", place.story, place.attempt, context.setup.run);
    let kept = context.git.keep_attempt_commit(
        &context.setup.run,
        &place.story,
        place.attempt,
        &candidate.tree,
        Some(&context.tip),
        &message,
    )?;
    context.agent.rejected();
    context.agent.end(context.setup.config.limits.grace.duration(), &context.setup.signals);
    context.spaces.drop_agent();
    Ok(Input::Kept { kept, files: context.changed_by_agent(&candidate).len() as u32 })
}
