//! Keeps rejected work as a commit that people can inspect, and discards its workspace.

use verdone_core::engine::run::{Input, State};

use super::{StepError, attempt_of};
use crate::run::context::RunContext;

pub fn keep(site: &mut RunContext, state: &State) -> Result<Input, StepError> {
    let attempt = attempt_of(state, "keeping")?;
    site.candidate = None;
    site.plan.unmark()?;
    let candidate = site.read_attempt()?;
    let place = &attempt.place;
    let message = format!("{} attempt {}, rejected\n\nVerdone-Run: {}\n", place.story, place.attempt, site.run);
    let kept =
        site.git.keep_attempt_commit(&site.run, &place.story, place.attempt, &candidate.tree, Some(&site.tip), &message)?;
    site.claude.rejected();
    site.claude.end(site.config.limits.grace.duration(), &site.signals);
    site.spaces.drop_agent();
    Ok(Input::Kept { kept, files: site.changed_by_agent(&candidate).len() as u32 })
}
