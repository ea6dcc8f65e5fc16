//! The engine's report: the same for JSON output, journals and evidence.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counts::CountChange;
use super::criteria::ProvenCriterion;
use super::feedback::Feedback;
use super::job::{AutorunChange, ProtectedChange, Surface, Tree};
use super::observed::SeenCondition;
use super::outcome::Outcome;
use super::reason::{Failure, Reason};
use crate::base::id::{Oid, StoryId};
use crate::base::proof::Proof;
use crate::check::CheckRun;
use crate::done::JudgeFact;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VerifyReport {
    pub surface: Surface,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub story: Option<StoryId>,
    pub outcome: Outcome,
    /// Absent if something fails: then nothing is proven.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
    /// The most severe first.
    pub reasons: Vec<Reason>,
    /// The message for the agent's next turn. Present if the story failed and there is an agent to continue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<Feedback>,
    pub trees: TreeIds,
    /// Every check that ran, by the tree on which it ran.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub runs: BTreeMap<Tree, Vec<CheckRun>>,
    /// Names of hidden checks. An agent may only see whether they passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<CountChange>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub protected: Vec<ProtectedChange>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub autorun: Vec<AutorunChange>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<ProvenCriterion>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<SeenCondition>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<JudgeFact>,
}

/// The judged trees. Trees that were not needed are absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TreeIds {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Oid>,
    pub attempt: Oid,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pristine: Option<Oid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Oid>,
}

impl TreeIds {
    pub fn of_attempt(attempt: Oid) -> Self {
        Self { base: None, attempt, pristine: None, proof: None }
    }
}

impl VerifyReport {
    /// An empty report: failed, without a reason.
    pub fn empty(surface: Surface, story: Option<StoryId>, trees: TreeIds) -> Self {
        Self {
            surface,
            story,
            outcome: Outcome::Failed,
            proof: None,
            reasons: Vec::new(),
            feedback: None,
            trees,
            runs: BTreeMap::new(),
            hidden: Vec::new(),
            counts: Vec::new(),
            protected: Vec::new(),
            autorun: Vec::new(),
            criteria: Vec::new(),
            conditions: Vec::new(),
            judge: None,
        }
    }

    /// The checks that ran on a tree.
    pub fn runs_on(&self, tree: Tree) -> &[CheckRun] {
        self.runs.get(&tree).map_or(&[], Vec::as_slice)
    }

    /// All checks that ran, each with its tree.
    pub fn all_runs(&self) -> impl Iterator<Item = (Tree, &CheckRun)> {
        self.runs.iter().flat_map(|(tree, runs)| runs.iter().map(move |run| (*tree, run)))
    }

    /// Why the work is not done, one sentence each.
    pub fn problems(&self) -> Vec<String> {
        self.reasons.iter().filter(|reason| !matches!(reason, Reason::Note(_))).map(Reason::to_string).collect()
    }

    /// The same, as an agent may see it.
    pub fn problems_for_agent(&self) -> Vec<String> {
        let problems = self.reasons.iter().filter(|reason| !matches!(reason, Reason::Note(_)));
        problems.map(|reason| reason.for_agent(|name| self.is_hidden(name))).collect()
    }

    pub fn is_hidden(&self, check: &str) -> bool {
        self.hidden.iter().any(|hidden| hidden == check)
    }

    /// All problems in one sentence.
    pub fn sentence(&self) -> String {
        in_one_sentence(&self.problems())
    }

    /// Why this report is worse than the given proof and outcome of another tree, as an agent may see it.
    pub fn falls_short_of(&self, proof: Proof, outcome: Outcome) -> Option<String> {
        if self.outcome < outcome {
            return Some(in_one_sentence(&self.problems_for_agent()));
        }
        let weaker = self.proof.filter(|now| *now < proof);
        weaker.map(|now| format!("it is {now}, and was {proof} before"))
    }

    /// The first reason why the work is not done.
    pub fn problem(&self) -> Option<&Reason> {
        self.reasons.iter().find(|reason| !matches!(reason, Reason::Note(_)))
    }

    /// Whether all checks pass, so that only a review is needed once the agent has had its turn of feedback.
    pub fn is_doubted(&self) -> bool {
        matches!(self.problem(), Some(Reason::Doubt(_)))
    }

    /// Whether it says nothing about the work because the checks were interrupted.
    pub fn was_interrupted(&self) -> bool {
        self.reasons.contains(&Reason::Failure(Failure::Interrupted))
    }

    /// Whether ending the attempt now counts against the story. A review never does.
    pub fn spends_attempt(&self) -> bool {
        self.outcome == Outcome::Failed && !self.is_doubted() && !self.was_interrupted()
    }
}

fn in_one_sentence(problems: &[String]) -> String {
    match problems {
        [] => "nothing is missing".to_owned(),
        [only] => only.clone(),
        [first, rest @ ..] => format!("{first} (and {} more)", rest.len()),
    }
}
