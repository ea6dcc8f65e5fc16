//! `verdone run "do X"`: the request becomes a plan with one story, which the user confirms.

use std::path::PathBuf;

use verdone_runtime::project::one_story_plan::{OneStoryPlan, is_request};
use verdone_runtime::run::CheckoutLock;
use verdone_runtime::verify::checks;

use super::super::Context;
use crate::args::RunArgs;
use crate::error::CliError;
use crate::question::confirm;
use crate::terminal::{printable, printable_line, say};

/// The plan of the request that the argument makes. `None` if the argument names a plan.
pub(super) fn requested(args: &RunArgs, context: &Context) -> Result<Option<OneStoryPlan>, CliError> {
    let Some(text) = args.plan.as_deref() else { return Ok(None) };
    if text.trim().is_empty() {
        return Err(CliError::usage("the plan or request is empty").hint("leave it out to run the project's plan"));
    }
    let project = context.project()?;
    if !is_request(text, &[&context.start, &project.root]) {
        return Ok(None);
    }
    let plan = OneStoryPlan::for_request(text, &project.root);
    let plan =
        plan.map_err(|error| CliError::error(format!("cannot read the earlier requests in .verdone/requests/: {error}")))?;
    Ok(Some(plan))
}

/// Writes the plan of the request. `_lock` keeps other runs from choosing the same number for theirs.
pub(super) fn write_plan(args: &RunArgs, _lock: &CheckoutLock, context: &Context) -> Result<Option<PathBuf>, CliError> {
    let Some(plan) = requested(args, context)? else { return Ok(None) };
    plan.write().map_err(|error| CliError::error(format!("cannot write {}: {error}", plan.path.display())))?;
    Ok(Some(plan.path))
}

/// Shows the story and what will check it (the gates: a request brings no checks), and asks. Without a terminal, only `--yes` is an answer.
pub(super) fn confirmed(plan: &OneStoryPlan, args: &RunArgs, context: &Context) -> Result<bool, CliError> {
    if !args.quiet && !args.json {
        say(&printable(&describe(plan, args, context)?));
    }
    if args.yes {
        return Ok(true);
    }
    if !context.terminal.can_ask {
        let text = "there is no plan of that name, and no terminal to ask whether this is a request";
        return Err(CliError::usage(text).hint("add --yes to run it as a request"));
    }
    Ok(confirm("Run this?")?)
}

fn describe(plan: &OneStoryPlan, args: &RunArgs, context: &Context) -> Result<String, CliError> {
    let project = context.project()?;
    let config = context.settings(&project, &args.flags())?.resolved.config;
    let mut text = format!("{}\n", printable_line(&plan.heading()));
    for line in plan.details.lines() {
        text.push_str(&format!("  {}\n", printable_line(line)));
    }
    let gates: Vec<String> = checks::gates(&config).iter().map(|gate| gate.command.display()).collect();
    let gates = if gates.is_empty() { "none".to_owned() } else { gates.join(", ") };
    let path = plan.path.strip_prefix(&project.root).unwrap_or(&plan.path);
    let kept = if plan.is_new() { "" } else { " (an open request of the same text; the run continues it)" };
    text.push_str(&format!("Plan    {}{kept}\n", path.display()));
    text.push_str(&format!("Agent   {}\n", config.agent.name.name()));
    text.push_str(&format!("Checks  {}\n", printable_line(&gates)));
    Ok(text)
}
