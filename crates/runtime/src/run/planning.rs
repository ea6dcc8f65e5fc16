//! Planning: the agent turns a request into a plan. It works in a workspace that is discarded afterwards; only its answer counts.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use verdone_core::agent::{TurnOutcome, Usage};
use verdone_core::base::id::{RunId, StoryId};
use verdone_core::config::Config;
use verdone_core::engine::prompt::{self, PromptError, plan_in_answer};
use verdone_core::journal::event;
use verdone_core::journal::update::{Reporter, Speaker, Update};
use verdone_core::plan::DIALECT;
use verdone_core::policy::ReadOnlyReason;
use verdone_plan::{Document, PlanError};

use crate::agent::read_only_session::{LookError, Question};
use crate::agent::{TurnRequest, TurnResult};
use crate::base::atomic::write_atomically;
use crate::base::clock::Stopwatch;
use crate::git::{Git, GitError};
use crate::process::signal::Signals;
use crate::process::watchdog::Watchdog;
use crate::process::{self, Moment};
use crate::project::Project;
use crate::project::approval::{ApprovalError, Approvals};
use crate::project::config_file::SettingsError;
use crate::project::template::{project_instructions, read_template};
use crate::run::{CheckoutLock, watch};
use crate::store::Store;
use crate::workspace::{Place, WorkspaceError, WorkspaceRequest, Workspaces};

#[derive(Debug)]
pub struct PlanningRequest<'a> {
    pub project: &'a Project,
    pub config: &'a Config,
    /// The request in the user's words.
    pub request: &'a str,
    /// Where to write the plan.
    pub output: &'a Path,
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
    let guardrails = fs::read_to_string(root.join(".verdone/guardrails.md")).unwrap_or_default();
    let mut spaces = Workspaces::new(&WorkspaceRequest {
        project: request.project,
        config: request.config,
        run: run.as_str(),
        run_dir: &run_dir,
        objects: git.object_folders()?,
    });
    spaces.open(&git)?;
    spaces.reset_agent(&git, &head, "verdone", &[])?;
    let place = spaces.agent()?;
    let asked = PlanningTurn { request, run: &run, run_dir: &run_dir, top: git.top(), place: &place, signals };
    let answer = asked.ask(&guardrails, reporter);
    if let Some(watchdog) = watchdog {
        watchdog.dismiss();
    }
    drop(spaces);
    accept(request, &run_dir, &answer?)
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
            redactor: &redactor,
        };
        let clock = Stopwatch::start();
        let mut show = |moment: Moment<'_>| match moment {
            Moment::Line { stream, text } => {
                reporter.report(Update::Output { speaker: Speaker::Agent, stream, line: text });
            }
            Moment::Tick => reporter.report(clock.tick()),
        };
        let result = self.answer(turn, &mut show)?;
        match result.outcome {
            TurnOutcome::Ended => Ok(result),
            outcome => Err(PlanningError::Turn(outcome)),
        }
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
