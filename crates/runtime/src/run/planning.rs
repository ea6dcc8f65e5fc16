//! Planning: the agent turns a request into a plan. It works in a workspace that is discarded afterwards; only its answer counts.

mod scripts;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use verdone_core::agent::{TurnOutcome, Usage};
use verdone_core::base::finish::Finish;
use verdone_core::base::id::{Oid, RunId, StoryId};
use verdone_core::check::lessons::user_text;
use verdone_core::config::Config;
use verdone_core::engine::prompt::{self, PromptError, plan_in_answer};
use verdone_core::journal::event;
use verdone_core::journal::update::{Reporter, Speaker, Update};
use verdone_core::lifecycle::{EndedIteration, Script, ScriptEffect};
use verdone_core::plan::DIALECT;
use verdone_core::policy::ReadOnlyReason;
use verdone_plan::{Document, PlanError};

use crate::agent::read_only_session::{LookError, Question};
use crate::agent::{TurnRequest, TurnResult};
use crate::base::active_clock::Stopwatch;
use crate::base::atomic::write_atomically;
use crate::git::{Git, GitError};
use crate::process::signal::Signals;
use crate::process::watchdog::Watchdog;
use crate::process::{self, HeldUp, Moment};
use crate::project::Project;
use crate::project::approval::{ApprovalError, Approvals};
use crate::project::config_file::SettingsError;
use crate::project::lessons::guardrails_text;
use crate::project::template::{project_instructions, read_template};
use crate::run::{CheckoutLock, watch};
use crate::store::Store;
use crate::workspace::{Place, WorkspaceError, WorkspaceRequest, Workspaces};

use scripts::PlanningScripts;

#[derive(Debug)]
pub struct PlanningRequest<'a> {
    pub project: &'a Project,
    pub config: &'a Config,
    /// The request in the user's words.
    pub request: &'a str,
    /// Where to write the plan.
    pub output: &'a Path,
    /// The project's folder of specifications, for lifecycle scripts. Default: `specs`.
    pub spec_dir: Option<&'a Path>,
    /// Variables for lifecycle scripts, from a fresher project.
    pub exports: &'a [(String, String)],
}

#[derive(Debug)]
pub struct PlanWritten {
    pub stories: usize,
    pub fingerprint: String,
    pub usage: Usage,
}

#[derive(Debug, thiserror::Error)]
pub enum PlanningError {
    #[error("{path} already exists", path = .0.display())]
    Exists(PathBuf),
    #[error("the request is empty")]
    EmptyRequest,
    #[error("the repository has no commit yet")]
    NoCommit,
    #[error("the agent {}", .0.describe())]
    Turn(TurnOutcome),
    #[error("the agent's answer is not a plan; it is kept in {}", kept.display())]
    NotAPlan { kept: PathBuf, source: PlanError },
    #[error("the agent's plan names no story by an id; it is kept in {}", kept.display())]
    NoIds { kept: PathBuf },
    #[error("the script {} stopped the planning", .0.name())]
    Aborted(Script),
    #[error("the script next_iteration skipped the planning")]
    Skipped,
    #[error(transparent)]
    Prompt(#[from] PromptError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Approval(#[from] ApprovalError),
    #[error("{doing}: {source}")]
    Io { doing: String, source: io::Error },
}

/// Asks for a plan and writes it. Its commands remain unapproved.
pub fn write_plan(
    request: &PlanningRequest<'_>,
    _ours: &CheckoutLock,
    signals: &Signals,
    reporter: &mut dyn Reporter,
) -> Result<PlanWritten, PlanningError> {
    if request.request.trim().is_empty() {
        return Err(PlanningError::EmptyRequest);
    }
    if fs::symlink_metadata(request.output).is_ok() {
        return Err(PlanningError::Exists(request.output.to_owned()));
    }
    let root = &request.project.root;
    let git = Git::open(root)?;
    let head = git.status()?.head.ok_or(PlanningError::NoCommit)?;
    let created = Store::new(root).create(git.common_dir(), Timestamp::now());
    let (run, run_dir) = created.map_err(io_error("creating the run directory"))?;
    let watchdog = watch(Watchdog::start(request.config.limits.grace.duration()), &run, reporter);
    process::adopt_orphans();
    let guardrails = user_text(&guardrails_text(root).unwrap_or_default());
    let mut spaces = Workspaces::new(&WorkspaceRequest {
        project: request.project,
        config: request.config,
        run: run.as_str(),
        run_dir: &run_dir,
        objects: git.object_folders()?,
    });
    spaces.open(&git)?;
    let mut planning = Planning {
        request,
        git: &git,
        head: &head,
        run: &run,
        run_dir: &run_dir,
        guardrails: &guardrails,
        signals,
        scripts: PlanningScripts::new(request, &run, &run_dir, signals),
        spaces,
    };
    let written = planning.plan(reporter);
    let finish = written.as_ref().map_or_else(finish_of, |_| Finish::Complete);
    planning.scripts.end_background();
    let last = planning.run_script(Script::Finished, Some(finish), reporter);
    if let Some(watchdog) = watchdog {
        watchdog.dismiss();
    }
    let written = written?;
    last.map(|_| written)
}

/// How the planning ended, for the script `finished`.
fn finish_of(error: &PlanningError) -> Finish {
    match error {
        PlanningError::Turn(TurnOutcome::Interrupted) => Finish::Manual,
        PlanningError::Turn(TurnOutcome::UsageLimit { .. } | TurnOutcome::Budget { .. } | TurnOutcome::Billing { .. }) => {
            Finish::Budget
        }
        PlanningError::NotAPlan { .. } | PlanningError::NoIds { .. } => Finish::Blocked,
        PlanningError::Aborted(_) => Finish::HookAbort,
        PlanningError::Skipped => Finish::NoChanges,
        PlanningError::Exists(_)
        | PlanningError::EmptyRequest
        | PlanningError::NoCommit
        | PlanningError::Turn(_)
        | PlanningError::Prompt(_)
        | PlanningError::Git(_)
        | PlanningError::Workspace(_)
        | PlanningError::Settings(_)
        | PlanningError::Approval(_)
        | PlanningError::Io { .. } => Finish::Error,
    }
}

/// One planning: a run with a single iteration.
struct Planning<'a> {
    request: &'a PlanningRequest<'a>,
    git: &'a Git,
    head: &'a Oid,
    run: &'a RunId,
    run_dir: &'a Path,
    guardrails: &'a str,
    signals: &'a Signals,
    scripts: PlanningScripts<'a>,
    spaces: Workspaces,
}

impl Planning<'_> {
    fn plan(&mut self, reporter: &mut dyn Reporter) -> Result<PlanWritten, PlanningError> {
        self.run_before(Script::Started, reporter)?;
        self.scripts.iteration = 1;
        self.run_before(Script::NextIteration, reporter)?;
        let written = self.iterate(reporter);
        if self.signals.requested().is_some() {
            return written;
        }
        // The reason why there is no plan is more important than what the script says.
        let after = self.run_script(Script::PostIteration, None, reporter);
        let written = written?;
        match after? {
            ScriptEffect::Abort => Err(PlanningError::Aborted(Script::PostIteration)),
            ScriptEffect::GoOn | ScriptEffect::Warning | ScriptEffect::Error | ScriptEffect::Skip => Ok(written),
        }
    }

    /// A script before the agent's turn, which can prevent it.
    fn run_before(&mut self, script: Script, reporter: &mut dyn Reporter) -> Result<(), PlanningError> {
        let effect = self.run_script(script, None, reporter)?;
        if self.signals.requested().is_some() {
            return Err(PlanningError::Turn(TurnOutcome::Interrupted));
        }
        match effect {
            ScriptEffect::GoOn | ScriptEffect::Warning | ScriptEffect::Error => Ok(()),
            ScriptEffect::Skip => Err(PlanningError::Skipped),
            ScriptEffect::Abort => Err(PlanningError::Aborted(script)),
        }
    }

    fn iterate(&mut self, reporter: &mut dyn Reporter) -> Result<PlanWritten, PlanningError> {
        self.spaces.reset_agent(self.git, self.head, "verdone", &[])?;
        let place = self.spaces.agent()?;
        let Self { request, run, run_dir, signals, .. } = *self;
        let asked = PlanningTurn { request, run, run_dir, top: self.git.top(), place: &place, signals };
        let answer = asked.ask(self.guardrails, reporter)?;
        let (exit_code, duration_ms) =
            (answer.exit_code.unwrap_or_else(|| answer.outcome.exit_code()), answer.duration.as_millis() as u64);
        self.scripts.last = Some(EndedIteration { story: StoryId::from(""), result: None, exit_code, duration_ms });
        match &answer.outcome {
            TurnOutcome::Ended => accept(request, run_dir, &answer),
            outcome => Err(PlanningError::Turn(outcome.clone())),
        }
    }

    fn run_script(
        &mut self,
        script: Script,
        finish: Option<Finish>,
        reporter: &mut dyn Reporter,
    ) -> Result<ScriptEffect, PlanningError> {
        let plan = self.request.output;
        let is_ours = plan.is_file() && plan.starts_with(self.git.top());
        let copies = if is_ours { vec![plan.to_owned()] } else { Vec::new() };
        let (git, head, spaces) = (self.git, self.head, &mut self.spaces);
        self.scripts.run(script, finish, || spaces.script_place(git, head, &copies), reporter)
    }
}

/// Everything that the planning turn needs.
struct PlanningTurn<'a> {
    request: &'a PlanningRequest<'a>,
    run: &'a RunId,
    run_dir: &'a Path,
    /// The top of the work tree.
    top: &'a Path,
    place: &'a Place,
    signals: &'a Signals,
}

impl PlanningTurn<'_> {
    fn ask(&self, guardrails: &str, reporter: &mut dyn Reporter) -> Result<TurnResult, PlanningError> {
        let root = &self.request.project.root;
        let config = self.request.config;
        let (name, template) = read_template(root, "planning", prompt::PLANNING).map_err(io_error("reading the template"))?;
        let instructions = project_instructions(root, "planning").map_err(io_error("reading the instructions"))?;
        let request = [self.request.request, instructions.trim()].join("\n\n");
        let prompt = prompt::planning(&name, &template, request.trim_end(), guardrails)?;
        let redactor = process::redactor_from_environment(&[]);
        let story = event::Place { story: StoryId::from("plan"), attempt: 1, turn: 1 };
        let turn = TurnRequest {
            agent: &config.agent,
            prompt: &prompt,
            cwd: &self.place.cwd,
            inside: self.place.inside.as_ref(),
            env: &self.place.env,
            run_dir: self.run_dir,
            number: 1,
            run: self.run,
            place: &story,
            iteration: 1,
            plan: self.request.output,
            tools: None,
            limits: &config.limits,
            held_up: &HeldUp::default(),
            redactor: &redactor,
        };
        let clock = Stopwatch::start();
        let mut show = |moment: Moment<'_>| match moment {
            Moment::Line { stream, text } => {
                reporter.report(Update::Output { speaker: Speaker::Agent, stream, line: text });
            }
            Moment::Tick => reporter.report(clock.tick()),
        };
        self.answer(turn, &mut show)
    }

    fn answer(&self, turn: TurnRequest<'_>, show: &mut dyn FnMut(Moment<'_>)) -> Result<TurnResult, PlanningError> {
        let budget = turn.limits.cost_usd.limit();
        let question =
            Question { turn, top: self.top, home: self.run_dir, looking: ReadOnlyReason::Planning, schema: None, budget };
        question.ask_any(self.signals, show).map_err(|error| match error {
            LookError::Settings(error) => error.into(),
            LookError::Io(source) => io_error("saving the turn")(source),
        })
    }
}

/// Only an answer that parses into stories with ids becomes the plan. Any other answer is saved for the user.
fn accept(request: &PlanningRequest<'_>, run_dir: &Path, answer: &TurnResult) -> Result<PlanWritten, PlanningError> {
    let text = plan_in_answer(&answer.said);
    let kept = run_dir.join("plan-answer.md");
    fs::write(&kept, &answer.said).map_err(io_error("saving the agent's answer"))?;
    let name = request.output.file_name().unwrap_or_default().to_string_lossy();
    let document = Document::parse(&name, text.as_bytes(), &DIALECT)
        .map_err(|source| PlanningError::NotAPlan { kept: kept.clone(), source })?;
    if !document.plan().stories.iter().any(|story| story.explicit_id) {
        return Err(PlanningError::NoIds { kept });
    }
    if let Some(parent) = request.output.parent() {
        fs::create_dir_all(parent).map_err(io_error("creating the plan's folder"))?;
    }
    write_atomically(request.output, text.as_bytes()).map_err(io_error("writing the plan"))?;
    let root = &request.project.root;
    Approvals::read(root)?.written(&crate::project::shown(request.output, root), request.config.agent.name.name())?;
    Ok(PlanWritten { stories: document.plan().stories.len(), fingerprint: document.fingerprint(), usage: answer.usage })
}

fn io_error(doing: &str) -> impl FnOnce(io::Error) -> PlanningError + '_ {
    move |source| PlanningError::Io { doing: doing.to_owned(), source }
}
