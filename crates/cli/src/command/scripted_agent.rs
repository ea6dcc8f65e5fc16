//! `verdone scripted-agent`: the built-in agent, as the child process that a turn starts.

use verdone_runtime::agent::scripted;

use super::{Context, Outcome};
use crate::args::ScriptedAgentArgs;

pub(super) fn run(args: &ScriptedAgentArgs, context: &Context) -> Outcome {
    Ok(scripted::play(&args.script, &context.start))
}
