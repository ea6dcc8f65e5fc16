//! Lifecycle scripts while a plan is written.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use verdone_core::base::finish::Finish;
use verdone_core::base::id::RunId;
use verdone_core::base::redact::Redactor;
use verdone_core::base::sanitise::sanitise_line;
use verdone_core::engine::run::ScriptRun;
use verdone_core::journal::update::{Reporter, Update};
use verdone_core::lifecycle::{EndedIteration, Facts, Script, ScriptEffect, ScriptExit, meaning};

use super::{PlanningError, PlanningRequest, io_error};
use crate::base::active_clock::Stopwatch;
use crate::process::redactor_from_environment;
use crate::process::signal::Signals;
use crate::run::lifecycle::{ScriptRequest, Scripts};
use crate::workspace::{ScriptPlace, WorkspaceError};

/// The scripts of the project and what they are told.
pub(super) struct PlanningScripts<'a> {
    request: &'a PlanningRequest<'a>,
    run: &'a RunId,
    run_dir: &'a Path,
    signals: &'a Signals,
    spec_dir: PathBuf,
    redactor: Redactor,
    scripts: Scripts,
    clock: Stopwatch,
    started_at: Timestamp,
    /// 0 before the first.
    pub(super) iteration: u32,
    /// The agent's turn, once it is over.
    pub(super) last: Option<EndedIteration>,
}

impl<'a> PlanningScripts<'a> {
    pub(super) fn new(request: &'a PlanningRequest<'a>, run: &'a RunId, run_dir: &'a Path, signals: &'a Signals) -> Self {
        let root = &request.project.root;
        Self {
            request,
            run,
            run_dir,
            signals,
            spec_dir: request.spec_dir.map_or_else(|| root.join("specs"), Path::to_owned),
            redactor: redactor_from_environment(request.exports),
            scripts: Scripts::freeze(root),
            clock: Stopwatch::start(),
            started_at: Timestamp::now(),
            iteration: 0,
            last: None,
        }
    }

    /// Runs a script, if it exists and is enabled, in the place that `place` makes. There is no journal, so failures are shown.
    pub(super) fn run(
        &mut self,
        script: Script,
        finish: Option<Finish>,
        place: impl FnOnce() -> Result<Option<ScriptPlace>, WorkspaceError>,
        reporter: &mut dyn Reporter,
    ) -> Result<ScriptEffect, PlanningError> {
        let hooks = &self.request.config.hooks;
        if !script.enabled(hooks) {
            return Ok(ScriptEffect::GoOn);
        }
        let place = if self.scripts.would_run(script) { place() } else { Ok(None) };
        let ran = match place {
            Ok(place) => self.run_in(place, script, finish, reporter)?,
            Err(error) => {
                let exit = ScriptExit::NotRunnable { reason: error.to_string() };
                Some(ScriptRun { script, exit, duration_ms: 0, output: None })
            }
        };
        let Some(ScriptRun { exit, .. }) = ran else { return Ok(ScriptEffect::GoOn) };
        if !matches!(exit, ScriptExit::Code(0) | ScriptExit::Background) {
            let text = format!("script {}: {}", script.name(), sanitise_line(&exit.describe()));
            reporter.report(Update::Notice { text: &text });
        }
        Ok(meaning(script, &exit, hooks.fail_behavior))
    }

    fn run_in(
        &mut self,
        place: Option<ScriptPlace>,
        script: Script,
        finish: Option<Finish>,
        reporter: &mut dyn Reporter,
    ) -> Result<Option<ScriptRun>, PlanningError> {
        let PlanningRequest { config, exports, output, project, .. } = self.request;
        let facts = Facts {
            mode: "planning",
            iteration: self.iteration,
            max_iterations: config.limits.max_iterations,
            project_dir: project.root.as_os_str(),
            log_dir: self.run_dir.as_os_str(),
            plan_file: output.as_os_str(),
            spec_dir: self.spec_dir.as_os_str(),
            started_at: self.started_at,
            active: self.clock.elapsed(),
            story: None,
            last: self.last.as_ref(),
            commits: 0,
            finish,
        };
        let request = ScriptRequest::new(script, config, self.run_dir, &self.redactor, exports);
        let request = ScriptRequest { place, ..request.with_facts(&facts, self.run) };
        let ran = self.scripts.run_shown(request, self.signals, self.clock, reporter);
        ran.map_err(io_error("saving the output of a script"))
    }

    /// Ends background scripts that are still running.
    pub(super) fn end_background(&mut self) {
        self.scripts.end_background(self.request.config.limits.grace.duration(), self.signals);
    }
}
