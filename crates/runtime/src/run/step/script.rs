//! Runs a lifecycle script at its moment of the run.

use std::time::Duration;

use jiff::Timestamp;
use verdone_core::base::finish::StopSignal;
use verdone_core::config::Hooks;
use verdone_core::engine::run::{Input, Phase, ScriptRun, State};
use verdone_core::journal::update::{Reporter, Speaker, Update};
use verdone_core::lifecycle::{Facts, Script, ScriptExit, variables};

use super::{StepError, io_error};
use crate::process::RUN_VARIABLE;
use crate::process::signal::Signals;
use crate::process::{EnvPlan, Moment};
use crate::run::context::RunContext;
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
    let env = environment(context, state, script);
    let hooks = &context.setup.config.hooks;
    let request = ScriptRequest {
        script,
        run_dir: &context.setup.run_dir,
        place,
        env,
        timeout: timeout(hooks, script),
        grace: context.setup.config.limits.grace.duration(),
        cap: context.setup.config.limits.output_bytes,
        // The run ends with this script, so wait for it.
        background: script != Script::Finished && script.settings(hooks).background,
        redactor: &context.setup.redactor,
        exports: &context.setup.exports,
    };
    // A stopped run still runs `finished`; only another signal ends it.
    let further = Signals::none();
    let (signals, _subscription) = if script == Script::Finished {
        let to = further.clone();
        (&further, Some(context.setup.signals.subscribe(move || to.raise(StopSignal::Sigint))))
    } else {
        (&context.setup.signals, None)
    };
    let clock = context.setup.clock;
    let mut on = |moment: Moment<'_>| match moment {
        Moment::Line { stream, text } => {
            reporter.report(Update::Output { speaker: Speaker::Script(script.name()), stream, line: text });
        }
        Moment::Tick => reporter.report(clock.tick()),
    };
    context.setup.scripts.run(request, signals, &mut on).map_err(io_error("saving the output of a script"))
}

/// A read-only view of the run's tip, if there is a script to run.
fn place(context: &mut RunContext, script: Script) -> Result<Option<ScriptPlace>, WorkspaceError> {
    if !context.setup.scripts.would_run(script) {
        return Ok(None);
    }
    context.spaces.script_place(&context.git, &context.tip, &context.plan.uncommitted())
}

/// `finished` may also run after a signal, when the user wants to leave, so it always has a limit.
fn timeout(hooks: &Hooks, script: Script) -> Option<Duration> {
    let last = || (script == Script::Finished).then(|| Hooks::default().timeout.duration());
    hooks.timeout.limit().or_else(last)
}

fn environment(context: &RunContext, state: &State, script: Script) -> EnvPlan {
    let facts = Facts {
        mode: "building",
        iteration: state.iteration,
        max_iterations: context.setup.config.limits.max_iterations,
        project_dir: context.setup.root.as_os_str(),
        log_dir: context.setup.run_dir.as_os_str(),
        plan_file: context.plan.path().as_os_str(),
        spec_dir: context.setup.spec_dir.as_os_str(),
        started_at: state.started_at.unwrap_or_else(Timestamp::now),
        active: context.setup.clock.elapsed(),
        story: state.attempt.as_ref().map(|attempt| attempt.place.story.as_str()),
        last: state.last_iteration.as_ref(),
        commits: state.commits,
        finish: match state.phase {
            Phase::Stopping { finish } | Phase::Stopped { finish, .. } => Some(finish),
            _ => None,
        },
    };
    // Ours come last, so that exported variables cannot override facts.
    let exported = context.setup.exports.iter().fold(EnvPlan::default(), |env, (name, value)| env.with(name, value));
    let told = variables(script, &facts).into_iter().fold(exported, |env, (name, value)| env.with(name, value));
    told.with(RUN_VARIABLE, context.setup.run.as_str())
}
