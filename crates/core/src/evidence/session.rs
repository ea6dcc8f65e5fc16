//! Evidence of a story that the loop of a session saw.

use super::{Evidence, NotedCheck, one_line};
use crate::check::{CheckOrigin, CheckRun};
use crate::event::SCHEMA_VERSION;
use crate::id::{Oid, RunId, StoryId};
use crate::verdict::Red;
use crate::verify::{Outcome, Proof, ProvenCriterion};

/// A story as the loop of a session knows it, beside what the checks say.
#[derive(Debug, Clone)]
pub struct SessionStory {
    /// The id of the loop.
    pub run: RunId,
    pub session: String,
    pub story: StoryId,
    pub title: String,
    /// Where the branch stood when it became the story at work.
    pub base: Option<Oid>,
    /// Turns of the loop so far.
    pub turns: u32,
    /// Its own checks that were seen to fail before.
    pub before: Vec<NotedCheck>,
    pub criteria: Vec<ProvenCriterion>,
    /// Its own checks pass only because the work changed what they run.
    pub doubted: bool,
    /// Digest of the gates as they were defined.
    pub gates: String,
    /// Digest of the evidence before this one.
    pub previous: Option<String>,
}

impl Evidence {
    /// The evidence for a story that the loop of a session is about to commit as `tree`, proven by `runs`.
    pub fn of_session(told: SessionStory, tree: &Oid, runs: &[CheckRun]) -> Self {
        let own = runs.iter().any(|run| run.origin == CheckOrigin::Story && !run.advisory);
        let was_red = told.before.iter().any(|proof| !proof.outcome.passed());
        let (proof, red) = match (own, was_red) {
            (true, true) if told.doubted => (Proof::Untested, Red::Red),
            (true, true) => (Proof::Verified, Red::Red),
            (true, false) => (Proof::Untested, Red::Unknown),
            (false, _) => (Proof::Untested, Red::Absent),
        };
        let session = one_line(&told.session);
        Self {
            v: SCHEMA_VERSION,
            run: told.run,
            story: told.story,
            title: told.title,
            proof,
            outcome: Outcome::Done,
            tree: tree.clone(),
            base: told.base,
            attempt: 1,
            turns: told.turns,
            red,
            before: told.before,
            after: runs.iter().map(NotedCheck::from).collect(),
            claim: None,
            cost_usd: None,
            sessions: vec![session.clone()],
            trees: None,
            pristine: Vec::new(),
            without_work: Vec::new(),
            counts: Vec::new(),
            protected: Vec::new(),
            reasons: Vec::new(),
            accepted: None,
            judge: None,
            criteria: told.criteria,
            gates: Some(told.gates),
            previous: told.previous,
            seal: None,
            session: Some(session),
            amends: None,
        }
    }
}
