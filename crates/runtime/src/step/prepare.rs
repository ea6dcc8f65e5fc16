//! The baseline: every gate once on the tree that the run starts from.

use verdone_core::machine::Input;
use verdone_core::update::Reporter;

use super::StepError;
use crate::check_runner::run_checks;
use crate::site::Site;

pub fn prepare(site: &mut Site, reporter: &mut dyn Reporter) -> Result<Input, StepError> {
    let baseline = run_checks(&site.gates, &site.check_context(), &site.signals, reporter)?;
    Ok(Input::Prepared { baseline })
}
