//! Plans: one model for every format, and edits that change nothing but the marker they mean to change.
//!
//! A plan is run in place in the format that it is in. Parsing finds the stories and, for each, the bytes that say whether it is
//! done; marking rewrites those bytes alone. Ambiguity is an error with a position, never a guess: an unreadable plan is
//! *unknown*, not *complete*.

mod checklist;
mod details;
mod document;
mod feature_list;
mod few;
mod fingerprint;
mod implementation_plan;
mod json_story;
mod label;
mod markdown;
mod marker;
mod plan_md;
mod prd_json;
pub mod progress;
mod select;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::base::id::StoryId;
use crate::base::proof::Proof;
use crate::base::{json, position};
use crate::check::CommandSpec;

pub use crate::base::position::Problem;
pub use document::{Document, MarkError, Undo};
pub use few::Few;
pub use select::{Progress, Selection, Waiting, select};

/// The formats that are understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// `### US-001: Title` headings with task boxes, or `- [ ] US-001: Title` lines.
    PlanMd,
    /// `### [ ] US-001: Title` headings.
    PrdMd,
    /// `## Priority N` sections of task boxes with `Dependencies:` and `Complexity:`.
    ImplementationPlan,
    /// A markdown checklist without ids.
    Checklist,
    /// `userStories` with `passes`.
    PrdJson,
    /// `features` with `passes`: an object or a bare list.
    FeatureList,
}

impl Format {
    /// The name in JSON and for people.
    pub fn words(self) -> &'static str {
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

/// Where a story stands according to its plan. A ticked box is a claim, not a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Open,
    InProgress,
    Done,
}

/// One acceptance criterion, task or step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Criterion {
    pub text: String,
    /// Its own box, where it has one.
    pub ticked: Option<bool>,
}

/// One item of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Story {
    pub id: StoryId,
    pub title: String,
    /// The story's own text, as the plan has it: goes into the prompt.
    pub body: String,
    pub status: Status,
    pub criteria: Few<Criterion>,
    /// Ids that have to be done first.
    pub depends_on: Few<StoryId>,
    /// 1 is first; stories without one come after those with.
    pub priority: Option<u32>,
    /// The story's own checks, in order.
    pub checks: Few<CommandSpec>,
    /// Plain lines under Verification that read like a simple command: checks only if their program exists, which the core cannot
    /// know.
    #[serde(default)]
    pub maybe_checks: Few<String>,
    /// Paths that the story names as its own, relative to the project; empty means that it names none.
    #[serde(default)]
    pub scope: Few<String>,
    /// From 1 to 10, where the plan says it; a word counts as a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complexity: Option<u8>,
    /// The weakest proof that makes it done (`Proof:`), in place of the project's `[done] minimum`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    /// Where it begins, from 1.
    pub line: u32,
    /// Whether the plan names the id; else it was made from the position.
    pub explicit_id: bool,
}

/// A parsed plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub format: Format,
    pub title: Option<String>,
    /// The branch that the plan asks for (`branchName`).
    pub branch: Option<String>,
    /// Text of the plan that belongs to no story (summary, context): goes into the prompt.
    pub context: String,
    pub stories: Vec<Story>,
    /// What is odd but does not stop anything.
    pub warnings: Vec<Problem>,
    /// The stories' indexes in the order of their ids, filled by the parser; a plan built otherwise may leave it empty.
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

    /// The story that a person means by an id.
    pub fn story_meant(&self, id: &StoryId) -> Option<&Story> {
        self.story(id).or_else(|| self.story(id.meant_among(self.stories.iter().map(|story| &story.id))?))
    }

    /// Stories that are not done, in file order.
    pub fn open(&self) -> impl Iterator<Item = &Story> {
        self.stories.iter().filter(|story| story.status != Status::Done)
    }
}

/// A plan that cannot be used: every reason, with its place.
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
