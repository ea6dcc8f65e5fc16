//! Why nothing could be verified.

use std::io;

use verdone_core::check::{Check, CheckOrigin, Stage};
use verdone_core::id::StoryId;
use verdone_core::plan::Plan;

use crate::approval::ApprovalError;
use crate::config_file::SettingsError;
use crate::git::GitError;
use crate::plan_file::{FindError, PlanFileError};
use crate::preflight::Finding;
use crate::project::ProjectError;

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
    /// Something has to be put in order first.
    #[error("{}", .0.message)]
    Refused(Finding),
    #[error("{plan} has no story {:?}", story.as_str())]
    NoStory { story: StoryId, plan: String, known: Vec<String> },
    #[error("no gate is of the stage {:?}", stage.name())]
    NoStage { stage: Stage, known: Vec<String> },
    #[error("the checks change the files that they check, so their results do not count")]
    Unsettled,
    #[error("there is nothing to verify: no gate, and no check of a story")]
    Nothing,
    #[error("{doing}: {source}")]
    Io { doing: String, source: io::Error },
}

impl VerifyError {
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
