//! `verdone scripted-agent`.

use super::{Context, Outcome, not_wired};
use crate::args::ScriptedAgentArgs;

pub(super) fn run(args: &ScriptedAgentArgs, context: &Context) -> Outcome {
    let _ = (args, context);
    Err(not_wired("scripted-agent"))
}
