//! The feedback for an agent whose work is not done.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counts::CheckState;
use super::facts::JobFacts;
use super::job::{PlannedCheck, Tree};
use super::reason::Reason;

/// Feedback for the next turn. For a hidden check, it only gives the name and that it did not pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Feedback {
    /// What is wrong, one sentence each.
    pub problems: Vec<String>,
    /// What to do about it.
    pub advice: Vec<String>,
    /// The checks that did not pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<FeedbackCheck>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FeedbackCheck {
    pub name: String,
    pub tree: Tree,
    /// The redacted end of its output.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tail: String,
}

pub(super) fn feedback(seen: &JobFacts<'_>, reasons: &[Reason]) -> Feedback {
    let is_hidden = |name: &str| seen.checks.iter().any(|check| check.hidden && check.check.name == name);
    let (mut problems, mut advice): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for reason in reasons.iter().filter(|reason| !matches!(reason, Reason::Note(_))) {
        let problem = reason.for_agent(is_hidden);
        let todo = match reason.failing_check().filter(|name| is_hidden(name)) {
            Some(_) => Some("Make the check pass.".to_owned()),
            None => reason.advice(),
        };
        if !problems.contains(&problem) {
            problems.push(problem);
        }
        advice.extend(todo.filter(|todo| !advice.contains(todo)));
    }
    Feedback { problems, advice, checks: checks(seen) }
}

fn checks(seen: &JobFacts<'_>) -> Vec<FeedbackCheck> {
    let on = |tree: Tree, check: &PlannedCheck| {
        let tail = seen.result(tree, check).filter(|_| !check.hidden).map(|result| result.run.tail.clone());
        FeedbackCheck { name: check.check.name.clone(), tree, tail: tail.unwrap_or_default() }
    };
    let ran = |tree: Tree, check: &PlannedCheck| seen.state(tree, check) != CheckState::NotRun;
    let red = seen.required().filter(|check| ran(Tree::Attempt, check) && seen.state(Tree::Attempt, check) != CheckState::Green);
    let pristine = seen.pristine_checks();
    let doubted = pristine.iter().filter(|check| ran(Tree::Pristine, check) && seen.fails_on_pristine(check));
    red.map(|check| on(Tree::Attempt, check)).chain(doubted.map(|check| on(Tree::Pristine, check))).collect()
}
