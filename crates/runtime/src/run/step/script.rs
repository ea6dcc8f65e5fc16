//! Runs a lifecycle script at its moment of the run.

use std::path::Path;

use jiff::Timestamp;
use verdone_core::engine::run::{Input, Phase, ScriptRun, State};
use verdone_core::journal::update::Reporter;
use verdone_core::lifecycle::{Facts, Script, ScriptExit};

use super::{StepError, io_error};
use crate::run::context::{RunContext, RunSetup};
use crate::run::lifecycle::ScriptRequest;
use crate::workspace::{ScriptPlace, WorkspaceError};

pub fn script(context: &mut RunContext, state: &State, script: Script, reporter: &mut dyn Reporter) -> Result<Input, StepError> {
    Ok(Input::ScriptRan(run_script(context, state, script, reporter)?))
}

/// Runs the script if it exists and is enabled.
pub(super) fn run_script(
    context: &mut RunContext,
    state: &State,
    script: Script,
    reporter: &mut dyn Reporter,
) -> Result<Option<ScriptRun>, StepError> {
    if !script.enabled(&context.setup.config.hooks) {
        return Ok(None);
    }
    let place = match place(context, script) {
        Ok(place) => place,
        Err(error) => {
            let exit = ScriptExit::NotRunnable { reason: error.to_string() };
            return Ok(Some(ScriptRun { script, exit, duration_ms: 0, output: None }));
        }
    };
    let plan_file = context.plan.path().to_owned();
    let setup = &mut context.setup;
    let request = ScriptRequest::new(script, &setup.config, &setup.run_dir, &setup.redactor, &setup.exports);
    let facts = facts(setup, state, &plan_file);
    let request = ScriptRequest { place, ..request.with_facts(&facts, &setup.run) };
    let ran = setup.scripts.run_shown(request, &setup.signals, setup.clock, reporter);
    ran.map_err(io_error("saving the output of a script"))
}

/// A read-only view of the run's tip, if there is a script to run.
fn place(context: &mut RunContext, script: Script) -> Result<Option<ScriptPlace>, WorkspaceError> {
    if !context.setup.scripts.would_run(script) {
        return Ok(None);
    }
    context.spaces.script_place(&context.git, &context.tip, &context.plan.uncommitted())
}

fn facts<'a>(setup: &'a RunSetup, state: &'a State, plan_file: &'a Path) -> Facts<'a> {
    Facts {
        mode: "building",
        iteration: state.iteration,
        max_iterations: setup.config.limits.max_iterations,
        project_dir: setup.root.as_os_str(),
        log_dir: setup.run_dir.as_os_str(),
        plan_file: plan_file.as_os_str(),
        spec_dir: setup.spec_dir.as_os_str(),
        started_at: state.started_at.unwrap_or_else(Timestamp::now),
        active: setup.clock.elapsed(),
        story: state.attempt.as_ref().map(|attempt| attempt.place.story.as_str()),
        last: state.last_iteration.as_ref(),
        commits: state.commits,
        finish: match state.phase {
            Phase::Stopping { finish } | Phase::Stopped { finish, .. } => Some(finish),
            _ => None,
        },
    }
}
