//! Why nothing could be verified.

use std::io;

use verdone_core::base::id::StoryId;
use verdone_core::check::{Check, CheckOrigin, Stage};
use verdone_plan::Plan;

use crate::base::finding::{FIRST_COMMIT, Finding};
use crate::git::GitError;
use crate::project::ProjectError;
use crate::project::approval::ApprovalError;
use crate::project::config_file::SettingsError;
use crate::project::plan_file::{FindError, PlanFileError};
use crate::verify;
use crate::workspace::WorkspaceError;

#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    #[error(transparent)]
    Project(#[from] ProjectError),
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(transparent)]
    Find(#[from] FindError),
    #[error(transparent)]
    Plan(#[from] PlanFileError),
    #[error(transparent)]
    Approval(#[from] ApprovalError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The user must fix something first.
    #[error("{}", .0.message)]
    Refused(Finding),
    #[error("{plan} has no story {:?}", story.as_str())]
    NoStory { story: StoryId, plan: String, known: Vec<String> },
    #[error("no gate has the stage {:?}", stage.name())]
    NoStage { stage: Stage, known: Vec<String> },
    #[error("there is no commit yet, so there is nothing to compare with")]
    NoCommit,
    #[error("{name:?} is not a commit in this clone")]
    NoRef {
        name: String,
        /// The same name on the remote, if it exists there.
        remote: Option<String>,
        shallow: bool,
    },
    #[error("{name} and the work have no commit in common")]
    Unrelated { name: String },
    #[error("there is nothing to verify: no gate and no story check")]
    Nothing {
        /// The source of the settings, if not the checkout.
        settings: Option<String>,
    },
    #[error("{doing}: {source}")]
    Io { doing: String, source: io::Error },
}

impl From<verify::VerifyError> for VerifyError {
    fn from(error: verify::VerifyError) -> Self {
        match error {
            verify::VerifyError::Git(error) => Self::Git(error),
            verify::VerifyError::Workspace(error) => Self::Workspace(error),
            verify::VerifyError::Output(source) => Self::Io { doing: "saving the output of a check".to_owned(), source },
        }
    }
}

impl VerifyError {
    /// What to type next.
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::NoStory { known, .. } => vec![format!("its stories: {}", known.join(", "))],
            Self::NoStage { known, .. } if known.is_empty() => {
                vec!["no gate is configured: add a [[gate]] to .verdone/config.toml".to_owned()]
            }
            Self::NoStage { known, .. } => vec![format!("stages with gates: {}", known.join(", "))],
            Self::NoCommit => vec![FIRST_COMMIT.to_owned()],
            Self::NoRef { remote: Some(remote), .. } => vec![format!("verdone verify --base {remote}")],
            Self::NoRef { shallow: true, .. } => {
                vec!["this clone is shallow: git fetch --unshallow, or check out with fetch-depth: 0 in a workflow".to_owned()]
            }
            Self::NoRef { name, .. } if is_plain_name(name) => {
                vec![format!("git fetch origin {}", name.trim_start_matches("origin/"))]
            }
            Self::NoRef { .. } => vec!["git log --oneline --all lists the commits that exist".to_owned()],
            Self::Unrelated { .. } => vec!["name the branch that the work started from: verdone verify --base BRANCH".to_owned()],
            Self::Nothing { settings: Some(name) } => {
                vec![format!("settings and gates come from {name}: add .verdone/config.toml with a [[gate]] there first")]
            }
            Self::Nothing { settings: None } => {
                vec![
                    "add a [[gate]] to .verdone/config.toml (verdone init proposes some), or name a story with checks".to_owned(),
                ]
            }
            Self::Refused(finding) => finding.hints.clone(),
            Self::Workspace(error) => error.hints(),
            Self::Project(_)
            | Self::Settings(_)
            | Self::Find(_)
            | Self::Plan(_)
            | Self::Approval(_)
            | Self::Git(_)
            | Self::Io { .. } => Vec::new(),
        }
    }

    pub(super) fn no_story(story: &StoryId, plan: &str, stories: &Plan) -> Self {
        let known = stories.stories.iter().map(|story| story.id.as_str().to_owned()).take(20).collect();
        Self::NoStory { story: story.clone(), plan: plan.to_owned(), known }
    }

    pub(super) fn no_stage(stage: &Stage, gates: &[Check]) -> Self {
        let mut known: Vec<String> = Vec::new();
        for gate in gates {
            if let CheckOrigin::Gate(other) = &gate.origin
                && !known.iter().any(|name| name == other.name())
            {
                known.push(other.name().to_owned());
            }
        }
        Self::NoStage { stage: stage.clone(), known }
    }
}

/// Whether a remote may know the name: a branch, a tag or a commit id. `main~5` and `HEAD@{1}` are expressions.
fn is_plain_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | '+');
    !name.starts_with(['-', '/', '.']) && !name.contains("..") && name.chars().all(is_plain)
}
