//! Plans: one model for every format, and edits that change only the marker they are meant to change.
//!
//! A plan is used in place, in its own format. Parsing finds the stories and, for each, the bytes that record whether it is
//! done; marking rewrites only those bytes. Ambiguity is an error with a position, never a guess: an unreadable plan is
//! *unknown*, not *complete*.

mod added_story;
mod checklist;
pub mod complexity;
mod details;
mod dialect;
mod document;
mod feature_list;
mod fingerprint;
mod implementation_plan;
mod json_story;
pub mod kind;
mod label;
mod markdown;
mod marker;
mod natural;
mod not_a_plan;
mod plan_md;
mod prd_json;
pub mod progress;
pub mod scope;
mod select;
mod story_id;
mod thin_vec;

use std::fmt;

use serde::Serialize;

pub use dialect::Dialect;
pub use document::{Document, MarkError, Undo};
pub use select::{Progress, ReviewState, Selection, select};
pub use story_id::StoryId;
pub use thin_vec::ThinVec;
pub use verdone_text::position::Problem;

/// The supported formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// `### US-001: Title` headings with task boxes, or `- [ ] US-001: Title` lines.
    PlanMd,
    /// `### [ ] US-001: Title` headings.
    PrdMd,
    /// `## Priority N` sections of task boxes with `Dependencies:` and `Complexity:`.
    ImplementationPlan,
    /// A Markdown checklist without ids.
    Checklist,
    /// `userStories` with `passes`.
    PrdJson,
    /// `features` with `passes`: an object or a bare list.
    FeatureList,
}

impl Format {
    /// The name in JSON and for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::PlanMd => "plan_md",
            Self::PrdMd => "prd_md",
            Self::ImplementationPlan => "implementation_plan",
            Self::Checklist => "checklist",
            Self::PrdJson => "prd_json",
            Self::FeatureList => "feature_list",
        }
    }
}

/// The status of a story according to its plan. A ticked box is a claim, not a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Open,
    InProgress,
    Done,
}

/// One acceptance criterion, task or step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Criterion {
    pub text: String,
    /// Whether its own box is ticked, if it has one.
    pub ticked: Option<bool>,
}

/// One item of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Story {
    pub id: StoryId,
    pub title: String,
    /// The story's own text from the plan. Goes into the prompt.
    pub body: String,
    pub status: Status,
    pub criteria: ThinVec<Criterion>,
    /// Ids of stories that have to be done first.
    pub depends_on: ThinVec<StoryId>,
    /// 1 comes first. Stories without a priority come last.
    pub priority: Option<u32>,
    /// The story's own checks, in order: lines for a shell.
    pub checks: ThinVec<String>,
    /// Plain lines under Verification that look like a simple command. They are checks only if their program exists, which only
    /// the caller can know.
    pub maybe_checks: ThinVec<String>,
    /// Paths that belong to the story, relative to the project. Empty if the story names none.
    pub scope: ThinVec<String>,
    /// From 1 to 10, if stated in the plan. Words are converted to numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complexity: Option<u8>,
    /// How well it has to be proven (`Proof:`), as a word of the [`Dialect`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<&'static str>,
    /// What kind of change it is (`Kind:`), as in conventional commits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// The line on which it begins, from 1.
    pub line: u32,
    /// Whether the plan gives the id; otherwise it was derived from the position.
    pub explicit_id: bool,
}

/// A parsed plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Plan {
    pub format: Format,
    pub title: Option<String>,
    /// The branch that the plan asks for (`branchName`).
    pub branch: Option<String>,
    /// Text that belongs to no story (summary, context). Goes into the prompt.
    pub context: String,
    pub stories: Vec<Story>,
    /// Oddities that do not prevent anything.
    pub warnings: Vec<Problem>,
    /// Indexes of the stories, ordered by id. Filled by the parser; may be empty in a plan built otherwise.
    #[serde(skip)]
    pub by_id: Vec<u32>,
}

impl Plan {
    /// The index of a story.
    pub fn place(&self, id: &StoryId) -> Option<usize> {
        if self.by_id.len() != self.stories.len() {
            return self.stories.iter().position(|story| story.id == *id);
        }
        let found = self.by_id.binary_search_by_key(&id, |index| &self.stories[*index as usize].id);
        found.ok().map(|at| self.by_id[at] as usize)
    }

    pub fn story(&self, id: &StoryId) -> Option<&Story> {
        self.place(id).map(|index| &self.stories[index])
    }

    /// The story that a person means by this id.
    pub fn story_meant(&self, id: &StoryId) -> Option<&Story> {
        self.story(id).or_else(|| self.story(id.meant_among(self.stories.iter().map(|story| &story.id))?))
    }

    /// Stories that are not done, in file order.
    pub fn open(&self) -> impl Iterator<Item = &Story> {
        self.stories.iter().filter(|story| story.status != Status::Done)
    }
}

/// A plan that cannot be used, with all reasons and their positions.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct PlanError {
    /// The file's name, as given.
    pub name: String,
    pub problems: Vec<Problem>,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, problem) in self.problems.iter().enumerate() {
            if n > 0 {
                writeln!(f)?;
            }
            write!(f, "{}:{}:{}: {}", self.name, problem.line, problem.column, problem.message)?;
        }
        Ok(())
    }
}
