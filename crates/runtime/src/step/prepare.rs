//! The baseline: every gate once on the tree that the run starts from.

use std::collections::HashSet;

use verdone_core::check::{Check, Where, due};
use verdone_core::done::stated_complexity;
use verdone_core::machine::Input;
use verdone_core::plan::Status;
use verdone_core::update::Reporter;

use super::{RUNNING, StepError, io_error};
use crate::site::Site;

pub fn prepare(site: &mut Site, reporter: &mut dyn Reporter) -> Result<Input, StepError> {
    let checks = baseline_checks(site);
    let clean = checks.iter().any(|check| check.terms.place == Where::Clean);
    // What is not committed is nothing that a story could build on.
    let tree = if clean { site.git.status()?.head } else { None };
    let baseline = site.run_checks_on(tree.as_ref(), &checks, reporter).map_err(io_error(RUNNING))?;
    Ok(Input::Prepared { baseline })
}

/// Where no story is open, the ticked ones are only claims: their checks run too, each command once.
fn baseline_checks(site: &Site) -> Vec<Check> {
    let stories = &site.plan.plan().stories;
    // Nothing is changed yet, so every path counts; gates for complex stories wait until there is such a story.
    let open = stories.iter().filter(|story| story.status != Status::Done);
    let stated = |planned| stated_complexity(&site.config.done, planned).value;
    let complexity = open.map(|story| stated(story.complexity)).max().unwrap_or_else(|| stated(None));
    let mut checks = due(&site.gates, None, complexity.into());
    if stories.iter().all(|story| story.status == Status::Done) {
        let mut seen = HashSet::new();
        let claimed = stories.iter().flat_map(|story| site.own_checks(&story.id));
        checks.extend(claimed.filter(|check| seen.insert(&check.command)).cloned());
    }
    checks
}
