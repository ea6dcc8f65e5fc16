//! The baseline: every gate once on the tree that the run starts from.

use std::collections::HashSet;

use verdone_core::check::Check;
use verdone_core::machine::Input;
use verdone_core::plan::Status;
use verdone_core::update::Reporter;

use super::{RUNNING, StepError, io_error};
use crate::site::Site;

pub fn prepare(site: &mut Site, reporter: &mut dyn Reporter) -> Result<Input, StepError> {
    let checks = baseline_checks(site);
    let baseline = site.run_checks(&checks, reporter).map_err(io_error(RUNNING))?;
    Ok(Input::Prepared { baseline })
}

/// Where no story is open, the ticked ones are only claims: their checks run too, each command once.
fn baseline_checks(site: &Site) -> Vec<Check> {
    let mut checks = site.gates.clone();
    let stories = &site.plan.plan().stories;
    if stories.iter().all(|story| story.status == Status::Done) {
        let mut seen = HashSet::new();
        let claimed = stories.iter().flat_map(|story| site.own_checks(&story.id));
        checks.extend(claimed.filter(|check| seen.insert(&check.command)).cloned());
    }
    checks
}
