//! Commands reserved for the user: an agent's own approval would prove nothing.

use verdone_core::agent::client_variables::{INSIDE_VARIABLE, SESSION_VARIABLE};
use verdone_runtime::process::{RUN_VARIABLE, VERIFY_VARIABLE};

use super::Context;
use crate::error::CliError;

/// Variables that clients and runs set for the commands they start.
const INSIDE: [&str; 4] = [INSIDE_VARIABLE, SESSION_VARIABLE, RUN_VARIABLE, VERIFY_VARIABLE];

/// A safeguard, not a security boundary: a script can unset the variables.
pub(super) fn refuse_agents(doing: &str, command: &str, context: &Context) -> Result<(), CliError> {
    let found = INSIDE.into_iter().find(|name| context.environment.get(*name).is_some_and(|value| !value.is_empty()));
    let Some(name) = found else { return Ok(()) };
    let refused = CliError::usage(format!("an agent may not {doing}, and {name} shows that this is an agent's session"));
    Err(refused.hint(format!("the user must run it in a separate terminal: {command}")))
}
