//! Putting things in order at the end of a run.

use verdone_core::machine::{Input, State};

use super::StepError;
use crate::site::Site;

pub fn finish(site: &mut Site, state: &State) -> Result<Input, StepError> {
    crate::process::end_leftovers();
    site.plan.record_end(state)?;
    Ok(Input::Finished)
}
