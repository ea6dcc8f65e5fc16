//! Before a turn, writes a briefing for its hooks, which they read instead of the plan.

use std::fs;
use std::path::Path;

use verdone_core::engine::run::{Attempt, State};
use verdone_core::hook::Briefing;
use verdone_core::policy::Scope;
use verdone_plan::Story;

use super::{StepError, io_error};
use crate::guard::write_briefing;
use crate::run::context::RunContext;

pub(super) fn brief(context: &RunContext, state: &State, attempt: &Attempt) -> Result<(), StepError> {
    let story = context.plan.plan().story(&attempt.place.story).ok_or(StepError::NoAttempt("turn"))?;
    let plan = context.plan.path();
    let mut briefing = briefing(context, story);
    briefing.branch = Some(context.setup.branch.clone());
    (briefing.iteration, briefing.turn) = (state.iteration, attempt.place.turn);
    briefing.plan = fs::canonicalize(plan).unwrap_or_else(|_| plan.to_owned()).to_string_lossy().into_owned();
    write_briefing(&context.setup.run_dir, &briefing).map_err(io_error("writing the story for the hooks"))
}

/// The paths in the story's scope.
pub(super) fn scope_of(context: &RunContext, story: &Story) -> Option<Scope> {
    briefing(context, story).scope(false)
}

fn briefing(context: &RunContext, story: &Story) -> Briefing {
    let checks = context.own_checks(&story.id).iter().map(|check| check.command.display());
    let mut briefing = Briefing::for_story(story, checks, &folder(context.git.top(), &context.setup.root));
    briefing.exempt = context.plan.paths().iter().map(ToString::to_string).collect();
    briefing
}

/// The project's path below the work tree.
fn folder(top: &Path, root: &Path) -> String {
    root.strip_prefix(top).unwrap_or(Path::new("")).to_string_lossy().into_owned()
}
