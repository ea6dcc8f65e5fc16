//! Runs the story's own checks before any work: a later pass proves something only if they fail now.

use verdone_core::engine::run::{Input, State};
use verdone_core::journal::update::Reporter;

use super::{StepError, attempt_of};
use crate::run::context::RunContext;
use crate::verify::checks::red_of;

pub fn red_check(context: &mut RunContext, state: &State, reporter: &mut dyn Reporter) -> Result<Input, StepError> {
    let attempt = attempt_of(state, "red check")?;
    let checks = context.own_checks(&attempt.place.story).to_vec();
    let runs = context.run_checks(&context.tip_tree()?, &checks, reporter)?;
    Ok(Input::RedChecked { red: red_of(&runs), runs })
}
