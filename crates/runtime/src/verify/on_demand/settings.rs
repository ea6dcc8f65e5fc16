//! The inputs of a verification: settings, gates and a story, read from the checkout or from the files of a commit.

use std::path::{Path, PathBuf};

use verdone_core::base::id::StoryId;
use verdone_core::check::{Check, CheckOrigin, Stage};
use verdone_core::config::Config;
use verdone_core::done::stated_complexity;
use verdone_core::plan::minimum_proof;
use verdone_core::verify::{JobStory, Proof};
use verdone_plan::{Status, Story};

use super::VerifyError;
use crate::process;
use crate::project::Project;
use crate::project::approval::Approvals;
use crate::project::approval::not_approved;
use crate::project::config_file::{self, Environment, Flags};
use crate::project::plan_file::{self, PlanFile, PlanLocation, PlanRequest};
use crate::project::shown;
use crate::verify::checks;

#[derive(Debug, Clone)]
pub(super) struct Settings {
    loaded: config_file::Settings,
    plan: PlanRequest,
    /// Where a story's commands will run.
    checkout: PathBuf,
}

/// Everything that was asked for, ready to run.
#[derive(Debug)]
pub(super) struct Inputs {
    pub(super) config: Config,
    pub(super) gates: Vec<Check>,
    pub(super) story: Option<JobStory>,
    /// The other stories of the plan. Empty if no story was asked for.
    pub(super) others: Vec<OtherStory>,
    /// The plan and its related files, if there is one.
    pub(super) plan_files: Vec<PathBuf>,
    pub(super) at_most: Option<Proof>,
    pub(super) exports: Vec<(String, String)>,
    pub(super) warnings: Vec<String>,
}

/// Another story. The requested story may not change what judges it.
#[derive(Debug)]
pub(super) struct OtherStory {
    pub(super) id: StoryId,
    pub(super) is_open: bool,
    pub(super) checks: Vec<Check>,
}

/// A missing story may exist in another plan.
pub(super) enum Read {
    Found(Box<Inputs>),
    NoStory(VerifyError),
}

impl Settings {
    /// `project` is the folder to read from, `checkout` the project in the user's checkout.
    pub(super) fn load(project: &Project, checkout: &Path) -> Result<Self, VerifyError> {
        let lossy = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        let environment: Environment = std::env::vars_os().map(|(name, value)| (lossy(name), lossy(value))).collect();
        let loaded = config_file::load(project, &environment, &Flags::default())?;
        let get = |name: &str| environment.get(name).filter(|value| !value.is_empty()).cloned();
        let plan = PlanRequest {
            root: project.root.clone(),
            cwd: project.start.clone(),
            named: None,
            prd: loaded.prd,
            configured: loaded.resolved.config.plan.as_ref().map(PathBuf::from),
            loop_dir: get("RALPH_LOOP_DIR").map(PathBuf::from),
            progress_path: loaded.progress.clone(),
        };
        Ok(Self { loaded, plan, checkout: checkout.to_owned() })
    }

    /// The same settings with the plans of another folder.
    pub(super) fn at(&self, project: &Project) -> Self {
        let plan = PlanRequest { root: project.root.clone(), cwd: project.start.clone(), ..self.plan.clone() };
        Self { plan, ..self.clone() }
    }

    /// The plan named by the settings, relative to the project.
    pub(super) fn named_plan(&self) -> Option<&Path> {
        self.plan.configured.as_deref()
    }

    pub(super) fn ask(&self, story: Option<&StoryId>, stage: Option<&Stage>) -> Result<Read, VerifyError> {
        let config = self.loaded.resolved.config.clone();
        let mut gates = checks::gates(&config);
        if let Some(stage) = stage {
            let is_it = |check: &Check| check.origin == CheckOrigin::Gate(stage.clone());
            if !gates.iter().any(is_it) {
                return Err(VerifyError::no_stage(stage, &gates));
            }
            gates.retain(is_it);
        }
        let location = plan_file::find(&self.plan);
        let plan_files = location.as_ref().map(PlanLocation::files).unwrap_or_default();
        let (story, others) = match story {
            Some(id) => match location.map_err(VerifyError::from).and_then(|location| self.story(id, location, &config)) {
                Ok((story, others)) => (Some(story), others),
                Err(error @ (VerifyError::Find(_) | VerifyError::NoStory { .. })) => return Ok(Read::NoStory(error)),
                Err(error) => return Err(error),
            },
            None => (None, Vec::new()),
        };
        let (exports, warnings) = (self.loaded.exports.clone(), self.loaded.warnings.clone());
        Ok(Read::Found(Box::new(Inputs { config, gates, story, others, plan_files, at_most: None, exports, warnings })))
    }

    /// The story from the plan, and the others. Commands in an agent's plan count only if they are approved.
    fn story(&self, id: &StoryId, location: PlanLocation, config: &Config) -> Result<(JobStory, Vec<OtherStory>), VerifyError> {
        let plan = PlanFile::open(location)?;
        let name = shown(plan.path(), &self.plan.root);
        let Some(found) = plan.plan().story_meant(id) else { return Err(VerifyError::no_story(id, &name, plan.plan())) };
        let approvals = Approvals::read(&self.plan.root)?;
        if let Some(finding) = not_approved(&approvals, &name, || plan.document().fingerprint()) {
            return Err(VerifyError::Refused(finding));
        }
        let path = std::env::var_os("PATH");
        let exists = |program: &str| process::program_exists(program, path.as_deref(), &self.checkout);
        let checks = |story: &Story| checks::own_checks(plan_file::resolve_checks(story, exists), config);
        let others = plan.plan().stories.iter().filter(|story| story.id != found.id);
        let other = |story: &Story| {
            let (id, is_open) = (story.id.clone(), story.status != Status::Done);
            OtherStory { id, is_open, checks: checks(story) }
        };
        Ok((job_story(found, checks(found), config), others.map(other).collect()))
    }
}

impl Inputs {
    /// Whether there are no checks at all.
    pub(super) fn is_empty(&self) -> bool {
        self.gates.is_empty() && self.story.as_ref().is_none_or(|story| story.checks.is_empty())
    }
}

fn job_story(story: &Story, checks: Vec<Check>, config: &Config) -> JobStory {
    JobStory {
        id: story.id.clone(),
        checks,
        criteria: story.criteria.iter().map(|criterion| criterion.text.clone()).collect(),
        scope: story.scope.to_vec(),
        minimum: minimum_proof(story),
        complexity: stated_complexity(&config.done, story.complexity).value.into(),
    }
}
