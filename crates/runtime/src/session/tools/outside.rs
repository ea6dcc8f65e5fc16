//! Answers for a session that is not a run's: it may look and verify, nothing else.

use std::path::{Path, PathBuf};

use serde_json::Value;
use verdone_core::base::id::StoryId;
use verdone_core::check::{Check, Stage};
use verdone_core::journal::agent_tools::{
    Answer, Call, Need, NextStoryAnswer, Query, Recalled, Resource, StageAnswer, StatusAnswer, StoryAnswer, VerificationAnswer,
};
use verdone_core::journal::update::{Reporter, Update};
use verdone_core::journal::view::RunView;
use verdone_core::verify::Outcome;
use verdone_plan::{Plan, Progress, Selection, Status, Story, select};

use super::knowledge;
use crate::git::{Git, GitError};
use crate::process::{self, signal::Signals};
use crate::project::config_file::{self, Environment, Flags, SettingsError};
use crate::project::plan_file::{self, FindError, PlanFile, PlanFileError, PlanRequest};
use crate::project::{Project, ProjectError, find_git_top, shown};
use crate::store::{JournalError, Store};
use crate::verify::checks::own_checks;
use crate::verify::on_demand::{self, CheckoutRequest, VerifyError};

#[derive(Debug, thiserror::Error)]
enum OutsideError {
    #[error(transparent)]
    Project(#[from] ProjectError),
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Find(#[from] FindError),
    #[error(transparent)]
    Plan(#[from] PlanFileError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Verify(#[from] VerifyError),
}

pub(super) fn answer(start: &Path, query: &Query, signals: &Signals) -> Answer {
    let answered = match query {
        Query::Call(call) if call.need() == Need::Run => return read_only(call.tool()),
        Query::Call(call) => call_answer(start, call, signals),
        Query::Read(resource) => read(start, *resource).map(|text| Answer { is_error: false, body: Value::String(text) }),
    };
    answered.unwrap_or_else(|error| {
        let todo = match &error {
            OutsideError::Verify(error) => error.hints().join("; "),
            _ => "`verdone doctor` shows what is missing".to_owned(),
        };
        Answer::error(&error.to_string(), &todo)
    })
}

fn read_only(tool: &str) -> Answer {
    Answer::error(
        &format!("{tool} is for the agent of a run, and this session is not one"),
        "ask the user to start `verdone run`, or work in this session and let the user decide about the result",
    )
}

fn call_answer(start: &Path, call: &Call, signals: &Signals) -> Result<Answer, OutsideError> {
    match call {
        Call::NextStory(_) => next_story(start),
        Call::GetStory(call) => get_story(start, &call.story),
        Call::Verify(call) => verify(start, call.stage.as_deref(), signals),
        Call::Recall(call) => recall(start, &call.query),
        Call::Status(_) => status(start),
        Call::CompleteStory(_) | Call::ReportBlocked(_) | Call::RequestMerge(_) | Call::AddGuardrail(_) | Call::AddStory(_) => {
            Ok(read_only(call.tool()))
        }
    }
}

/// The project with its plan.
struct Opened {
    project: Project,
    config: verdone_core::config::Config,
    plan: PlanFile,
}

impl Opened {
    fn new(start: &Path) -> Result<Self, OutsideError> {
        let project = project(start)?;
        let lossy = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        let environment: Environment = std::env::vars_os().map(|(name, value)| (lossy(name), lossy(value))).collect();
        let settings = config_file::load(&project, &environment, &Flags::default())?;
        let request = PlanRequest {
            root: project.root.clone(),
            cwd: project.start.clone(),
            named: None,
            prd: settings.prd,
            configured: settings.resolved.config.plan.as_ref().map(PathBuf::from),
            loop_dir: environment.get("RALPH_LOOP_DIR").filter(|path| !path.is_empty()).map(PathBuf::from),
            progress_path: settings.progress.clone(),
        };
        let plan = PlanFile::open(plan_file::find(&request)?)?;
        Ok(Self { project, config: settings.resolved.config, plan })
    }

    fn plan(&self) -> &Plan {
        self.plan.plan()
    }

    fn story(&self, story: &Story) -> StoryAnswer {
        let path = std::env::var_os("PATH");
        let exists = |program: &str| process::program_exists(program, path.as_deref(), &self.project.root);
        let checks = own_checks(plan_file::resolve_checks(story, exists), &self.config);
        StoryAnswer::new(story, checks.iter().map(Check::shown_to_agent).collect())
    }
}

fn project(start: &Path) -> Result<Project, OutsideError> {
    Ok(Project::find(start, &find_git_top(start)?)?)
}

fn next_story(start: &Path) -> Result<Answer, OutsideError> {
    let opened = Opened::new(start)?;
    let next = match select(opened.plan(), &Progress::default(), None) {
        Selection::Story { index } => NextStoryAnswer::Story { story: Box::new(opened.story(&opened.plan().stories[index])) },
        Selection::AllDone => NextStoryAnswer::AllDone,
        Selection::NothingRunnable { reason } => NextStoryAnswer::Nothing { reason },
    };
    Ok(Answer::new(&next))
}

fn get_story(start: &Path, id: &str) -> Result<Answer, OutsideError> {
    let opened = Opened::new(start)?;
    Ok(match opened.plan().story_meant(&StoryId::from(id)) {
        Some(story) => Answer::new(&opened.story(story)),
        None => knowledge::no_story(opened.plan(), id),
    })
}

fn verify(start: &Path, stage: Option<&str>, signals: &Signals) -> Result<Answer, OutsideError> {
    let stage = stage.map(|stage| Stage::from(stage.to_owned()));
    let request = CheckoutRequest { root: project(start)?.root, story: None, stage, use_cache: true };
    let found = on_demand::verify(&request, signals, &mut Silent)?;
    Ok(match &request.stage {
        Some(stage) => Answer::new(&StageAnswer::of_report(stage.name(), &found.report)),
        None => Answer::new(&VerificationAnswer::new(&found.report)),
    })
}

struct Silent;

impl Reporter for Silent {
    fn report(&mut self, _: Update<'_>) {}
}

fn recall(start: &Path, query: &str) -> Result<Answer, OutsideError> {
    let root = project(start)?.root;
    let found = knowledge::recall(&root, &Git::open(&root)?, query)?;
    Ok(Answer::new(&Recalled { found }))
}

fn status(start: &Path) -> Result<Answer, OutsideError> {
    let opened = Opened::new(start)?;
    let run = latest(&opened.project)?;
    let plan = opened.plan();
    let with = |wanted: Outcome| {
        let stories = run.iter().flat_map(|run| &run.touched);
        stories
            .filter(|story| story.result.is_some_and(|result| result.outcome == wanted))
            .map(|story| story.id.clone())
            .collect()
    };
    Ok(Answer::new(&StatusAnswer {
        run: run.as_ref().and_then(|run| run.run.as_ref()).map(|run| run.as_str().to_owned()),
        in_run: false,
        plan: shown(opened.plan.path(), &opened.project.root),
        stories: plan.stories.len(),
        open: plan.open().count(),
        story: run.as_ref().and_then(|run| run.current.as_ref()).map(|current| current.story.clone()),
        attempt: run.as_ref().and_then(|run| run.current.as_ref()).map(|current| current.attempt),
        turn: run.as_ref().and_then(|run| run.current.as_ref()).map(|current| current.turn),
        done: plan.stories.iter().filter(|story| story.status == Status::Done).map(|story| story.id.clone()).collect(),
        needs_review: with(Outcome::NeedsReview),
        failed: with(Outcome::Failed),
        questions: run.iter().flat_map(|run| run.questions.clone()).collect(),
    }))
}

fn latest(project: &Project) -> Result<Option<RunView>, OutsideError> {
    let Some(stored) = Store::new(&project.root).latest_run()? else { return Ok(None) };
    let (mut view, _) = stored.brief_view()?;
    stored.add_pending_requests(&mut view);
    Ok(Some(view))
}

fn read(start: &Path, resource: Resource) -> Result<String, OutsideError> {
    match resource {
        Resource::Plan => Ok(Opened::new(start)?.plan.document().text().to_owned()),
        Resource::Guardrails => Ok(knowledge::guardrails(&project(start)?.root)),
        Resource::LastFailure => last_failure(&project(start)?),
        Resource::Evidence => {
            let root = project(start)?.root;
            Ok(knowledge::evidence_text(&Git::open(&root)?)?)
        }
    }
}

/// The last verification of the latest run that did not pass.
fn last_failure(project: &Project) -> Result<String, OutsideError> {
    let Some(stored) = Store::new(&project.root).latest_run()? else { return Ok(String::new()) };
    let (view, _) = stored.view()?;
    let seen = view.touched.iter().flat_map(|story| &story.attempts).flat_map(|attempt| &attempt.verifications);
    let failed = seen.filter(|seen| seen.report.outcome == Outcome::Failed).max_by_key(|seen| seen.at);
    Ok(failed.map(|seen| VerificationAnswer::new(&seen.report).to_markdown()).unwrap_or_default())
}
