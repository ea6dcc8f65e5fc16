//! The answers of the tools. None of them contains the output of a hidden check.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use verdone_plan::{Status, Story};

use crate::base::id::StoryId;
use crate::base::proof::Proof;
use crate::check::CheckRun;
use crate::verify::{Outcome, Tree, VerifyReport};

/// A story as the agent sees it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StoryAnswer {
    pub id: StoryId,
    pub title: String,
    pub status: Status,
    pub body: String,
    pub criteria: Vec<String>,
    pub depends_on: Vec<StoryId>,
    pub scope: Vec<String>,
    /// The commands that decide; of a hidden check, only the name.
    pub checks: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<OpenQuestion>,
}

impl StoryAnswer {
    pub fn new(story: &Story, checks: Vec<String>) -> Self {
        Self {
            id: story.id.clone(),
            title: story.title.clone(),
            status: story.status,
            body: story.body.clone(),
            criteria: story.criteria.iter().map(|criterion| criterion.text.clone()).collect(),
            depends_on: story.depends_on.to_vec(),
            scope: story.scope.to_vec(),
            checks,
            question: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "next", rename_all = "snake_case")]
pub enum NextStoryAnswer {
    /// The story to work on. In a run, it is the story of this session: the run itself selects the one after it.
    Story {
        story: Box<StoryAnswer>,
    },
    AllDone,
    /// Stories are open, but none can be worked on.
    Nothing {
        reason: String,
    },
}

/// A story with its name only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FoundStory {
    pub id: StoryId,
    pub title: String,
}

/// A question for the user, and the answer once there is one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OpenQuestion {
    pub story: StoryId,
    /// What prevents the work.
    pub reason: String,
    pub question: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

/// A check that did not pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailingCheck {
    pub name: String,
    /// Without it for a hidden check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    pub result: String,
    /// The end of its output; nothing of a hidden check.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub output: String,
}

/// The result of a verification.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VerificationAnswer {
    pub outcome: Outcome,
    pub proof: Option<Proof>,
    /// Why it is not done, one sentence each.
    pub problems: Vec<String>,
    pub failing: Vec<FailingCheck>,
    /// What to do about it.
    pub advice: Vec<String>,
}

impl VerificationAnswer {
    pub fn new(report: &VerifyReport) -> Self {
        let (problems, advice) = match &report.feedback {
            Some(told) => (told.problems.clone(), told.advice.clone()),
            None => (report.problems_for_agent(), Vec::new()),
        };
        let mut failing: Vec<FailingCheck> = Vec::new();
        for (tree, run) in report.all_runs() {
            // Checks must fail on the base and the proof tree.
            let judges = matches!(tree, Tree::Attempt | Tree::Pristine);
            if judges && run.blocks() && !failing.iter().any(|known| known.name == run.name) {
                failing.push(failing_check(run, report.is_hidden(&run.name)));
            }
        }
        Self { outcome: report.outcome, proof: report.proof, problems, failing, advice }
    }

    /// The result of single checks, as an agent may see them.
    pub fn of_runs(outcome: Outcome, problems: Vec<String>, failed: &[CheckRun]) -> Self {
        let failing = failed.iter().map(|run| failing_check(run, run.hidden)).collect();
        Self { outcome, proof: None, problems, failing, advice: Vec::new() }
    }

    /// The same as a text.
    pub fn to_markdown(&self) -> String {
        let mut text = format!("Outcome: {}\n", self.outcome);
        for line in self.problems.iter().chain(&self.advice) {
            text.push_str(&format!("- {line}\n"));
        }
        for check in &self.failing {
            let command = check.command.as_deref().unwrap_or(&check.name);
            text.push_str(&format!("\n`{command}` {}\n", check.result));
            if !check.output.is_empty() {
                text.push_str(&format!("\n```text\n{}\n```\n", check.output.trim_end()));
            }
        }
        text
    }
}

/// The result of the gates of one stage. It has no outcome: they do not decide about a story.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StageAnswer {
    pub stage: String,
    pub passed: bool,
    pub problems: Vec<String>,
    pub failing: Vec<FailingCheck>,
}

impl StageAnswer {
    pub fn of_runs(stage: &str, reason: String, failed: &[CheckRun]) -> Self {
        let failing: Vec<FailingCheck> = failed.iter().map(|run| failing_check(run, run.hidden)).collect();
        let passed = failing.is_empty();
        let problems = if passed { Vec::new() } else { vec![reason] };
        Self { stage: stage.to_owned(), passed, problems, failing }
    }

    pub fn of_report(stage: &str, report: &VerifyReport) -> Self {
        let VerificationAnswer { outcome, problems, failing, .. } = VerificationAnswer::new(report);
        Self { stage: stage.to_owned(), passed: outcome != Outcome::Failed && failing.is_empty(), problems, failing }
    }
}

fn failing_check(run: &CheckRun, hidden: bool) -> FailingCheck {
    let hidden = hidden || run.hidden;
    let run = CheckRun { hidden, ..run.clone() }.for_agent();
    let command = (!hidden).then(|| run.command.display());
    FailingCheck { name: run.name, command, result: run.outcome.describe(), output: run.tail }
}

/// The answer to a claim.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Claimed {
    pub story: StoryId,
    /// Absent if nothing was verified: `partial` and `blocked` make no claim that could be checked.
    #[serde(skip_serializing_if = "Option::is_none", flatten)]
    pub verification: Option<VerificationAnswer>,
    /// Whether there is more to do in this turn.
    pub should_continue: bool,
    pub what_to_do: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StatusAnswer {
    /// The run that asks, or the latest one. Absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Whether the caller is the agent of this run.
    pub in_run: bool,
    pub plan: String,
    pub stories: usize,
    pub open: usize,
    /// The story that the run works on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub story: Option<StoryId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    pub done: Vec<StoryId>,
    pub needs_review: Vec<StoryId>,
    pub failed: Vec<StoryId>,
    pub questions: Vec<OpenQuestion>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recalled {
    pub found: Vec<super::Passage>,
}

/// Something was written down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Added {
    pub what_was_done: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MergeAnswer {
    pub story: StoryId,
    /// The branch for the review. It is local: nothing was pushed.
    pub branch: String,
    /// The Markdown report.
    pub report: String,
    pub what_was_done: String,
}
