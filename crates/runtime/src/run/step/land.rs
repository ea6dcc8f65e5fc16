//! Lands the run's commits on the user's branch after each story.

use verdone_core::engine::run::{Input, State};
use verdone_core::journal::event::Event;

use super::StepError;
use crate::run::context::RunContext;
use crate::run::land::{LandError, Landed, Target, land_tip};

pub fn land(context: &RunContext, _state: &State) -> Result<Input, StepError> {
    let Some(target) = Target::find(&context.git, context.setup.target.as_deref())? else {
        return Err(StepError::NoAttempt("landing"));
    };
    let event = match land_tip(&context.git, target.name.as_deref(), &context.tip) {
        Ok(Landed { branch, from, to, .. }) => Event::Landed { branch, from, to, left: 0 },
        Err(LandError::Git(error)) => return Err(error.into()),
        Err(refused) => Event::LandingRefused { reason: refused.to_string() },
    };
    Ok(Input::Landed(Box::new(event)))
}
