//! What the agent is told when its work is not done.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counts::CheckState;
use super::job::Tree;
use super::reason::Reason;
use super::seen::Seen;

/// Feedback for the next turn. Of a hidden check it says the name and that it did not pass, nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Feedback {
    /// What is wrong, a sentence each.
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

pub(super) fn feedback(seen: &Seen<'_>, reasons: &[Reason]) -> Feedback {
    let is_hidden = |name: &str| seen.checks.iter().any(|check| check.hidden && check.check.name == name);
    let (mut problems, mut advice): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for reason in reasons.iter().filter(|reason| !matches!(reason, Reason::Note(_))) {
        let (problem, todo) = match reason.failing_check().filter(|name| is_hidden(name)) {
            Some(name) => (format!("the hidden check `{name}` did not pass"), Some("Make the check pass.".to_owned())),
            None => (reason.to_string(), reason.advice()),
        };
        if !problems.contains(&problem) {
            problems.push(problem);
        }
        advice.extend(todo.filter(|todo| !advice.contains(todo)));
    }
    Feedback { problems, advice, checks: checks(seen) }
}

fn checks(seen: &Seen<'_>) -> Vec<FeedbackCheck> {
    let mut found = Vec::new();
    for tree in [Tree::Attempt, Tree::Pristine] {
        for check in seen.required().filter(|check| !(tree == Tree::Pristine && seen.exists_only_in_attempt(check))) {
            let Some(result) = seen.result(tree, check) else { continue };
            if CheckState::of(&result.run) != CheckState::Green {
                let tail = if check.hidden { String::new() } else { result.run.tail.clone() };
                found.push(FeedbackCheck { name: check.check.name.clone(), tree, tail });
            }
        }
    }
    found
}
