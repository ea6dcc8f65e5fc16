//! The baseline: runs every gate once on the tree that the run starts from.

use std::collections::HashSet;

use verdone_core::check::{Check, due_checks};
use verdone_core::done::stated_complexity;
use verdone_core::engine::run::Input;
use verdone_core::journal::update::Reporter;
use verdone_plan::Status;

use super::StepError;
use crate::run::context::RunContext;

pub fn prepare(context: &mut RunContext, reporter: &mut dyn Reporter) -> Result<Input, StepError> {
    let checks = baseline_checks(context);
    let baseline = context.run_checks(&context.tip_tree()?, &checks, reporter)?;
    Ok(Input::Prepared { baseline })
}

/// If no story is open, the ticked ones are only claims, so their checks run too, each command once.
fn baseline_checks(context: &RunContext) -> Vec<Check> {
    let stories = &context.plan.plan().stories;
    // Nothing has changed yet, so every path counts. Gates for complex stories run only if there is such a story.
    let open = stories.iter().filter(|story| story.status != Status::Done);
    let stated = |planned| stated_complexity(&context.setup.config.done, planned).value;
    let complexity = open.map(|story| stated(story.complexity)).max().unwrap_or_else(|| stated(None));
    let mut checks = due_checks(&context.setup.gates, None, complexity.into());
    if stories.iter().all(|story| story.status == Status::Done) {
        let mut seen = HashSet::new();
        let claimed = stories.iter().flat_map(|story| context.own_checks(&story.id));
        checks.extend(claimed.filter(|check| seen.insert(&check.command)).cloned());
    }
    checks
}
