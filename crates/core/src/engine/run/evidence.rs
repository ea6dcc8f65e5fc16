//! The evidence of an attempt, made from the state of the run.

use super::{Attempt, State};
use crate::base::id::RunId;
use crate::base::verdict::Red;
use crate::check::{CheckOrigin, CheckRun};
use crate::evidence::{Evidence, NotedCheck, one_line, to_the_millionth};
use crate::journal::event::SCHEMA_VERSION;
use crate::verify::{Outcome, Proof, Tree, VerifyReport};

impl Evidence {
    /// The evidence for the attempt that is about to be committed, according to `report`.
    pub fn for_attempt(state: &State, attempt: &Attempt, result: (Proof, Outcome), report: &VerifyReport) -> Self {
        let noted = |runs: &[CheckRun]| runs.iter().map(NotedCheck::from).collect::<Vec<_>>();
        let is_own = |run: &&CheckRun| run.origin == CheckOrigin::Story;
        Self {
            v: SCHEMA_VERSION,
            run: state.run.clone().unwrap_or_else(|| RunId::from("")),
            story: attempt.place.story.clone(),
            title: attempt.title.clone(),
            proof: result.0,
            outcome: result.1,
            tree: report.trees.attempt.clone(),
            base: attempt.base.clone(),
            attempt: attempt.place.attempt,
            turns: attempt.place.turn,
            red: attempt.red.unwrap_or(Red::Absent),
            before: report.runs_on(Tree::Base).iter().filter(is_own).map(NotedCheck::from).collect(),
            after: noted(report.runs_on(Tree::Attempt)),
            claim: attempt.claim.clone(),
            cost_usd: attempt.cost_usd.map(to_the_millionth),
            sessions: attempt.sessions.clone(),
            trees: Some(report.trees.clone()),
            pristine: noted(report.runs_on(Tree::Pristine)),
            without_work: noted(report.runs_on(Tree::Proof)),
            counts: report.counts.clone(),
            protected: report.protected.clone(),
            reasons: report.reasons.iter().map(ToString::to_string).collect(),
            accepted: None,
            judge: attempt.judge.clone().map(|mut judge| {
                judge.usage.cost_usd = judge.usage.cost_usd.filter(|cost| cost.is_finite()).map(to_the_millionth);
                judge
            }),
            criteria: report.criteria.clone(),
            gates: attempt.gates.clone(),
            previous: attempt.previous.clone(),
            seal: state.seal.clone(),
            session: state.session.as_deref().map(one_line),
            amends: None,
        }
    }
}
