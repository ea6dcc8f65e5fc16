//! Which check proves which criterion of a story.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counts::{CheckState, list};
use super::facts::JobFacts;
use super::job::{PlannedCheck, Tree};
use crate::base::proof::Proof;
use crate::check::CheckOrigin;

/// How many criteria of one story a report lists, and how many characters of each.
const MOST: usize = 200;
const LONGEST: usize = 500;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProvenCriterion {
    pub text: String,
    /// The check that is linked to it and passed. Absent if nothing proves it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prover: Option<String>,
}

/// A criterion is proven by a check if its text is the check's command or quotes it in backticks. If a story has only one criterion,
/// whatever proves the story proves it.
pub(super) fn criteria(seen: &JobFacts<'_>, proof: Option<Proof>) -> Vec<ProvenCriterion> {
    let Some(story) = &seen.job.story else { return Vec::new() };
    let green: Vec<&PlannedCheck> =
        seen.checks.iter().filter(|check| seen.state(Tree::Attempt, check) == CheckState::Green).collect();
    let whole = || match (green.iter().find(|check| check.is_own()), proof) {
        (Some(own), Some(_)) => Some(prover(own)),
        (None, Some(Proof::AgentTested)) => Some(format!("the attempt's tests: {}", list(&seen.job.brought_tests()))),
        (None, Some(Proof::Verified | Proof::Untested | Proof::Unchecked)) | (_, None) => None,
    };
    let one = |text: &str| {
        let named = green.iter().find(|check| names(text, &check.check.command.display())).map(|check| prover(check));
        named.or_else(|| if story.criteria.len() == 1 { whole() } else { None })
    };
    let listed = story.criteria.iter().take(MOST);
    listed.map(|text| ProvenCriterion { text: text.chars().take(LONGEST).collect(), prover: one(text) }).collect()
}

fn prover(check: &PlannedCheck) -> String {
    match &check.check.origin {
        CheckOrigin::Story => format!("own check: {}", check.check.name),
        CheckOrigin::Gate(_) => format!("gate: {}", check.check.name),
        CheckOrigin::AgentTest => format!("the attempt's tests: {}", check.check.name),
    }
}

/// Whether a text is a command, or quotes it in backticks.
fn names(text: &str, command: &str) -> bool {
    let command = command.trim();
    // Every second part is between two backticks.
    let mut quoted = text.split('`').skip(1).step_by(2);
    !command.is_empty() && (text.trim() == command || quoted.any(|quoted| quoted.trim() == command))
}
