//! Evidence of a story that the loop of a session saw.

use super::{Evidence, NotedAlarm, NotedAsBefore, Proof, one_line};
use crate::check::{CheckOrigin, CheckRun};
use crate::event::SCHEMA_VERSION;
use crate::id::{Oid, RunId, StoryId};
use crate::proof::ProvenCriterion;
use crate::verdict::{Red, StoryVerdict};

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
    pub before: Vec<Proof>,
    pub criteria: Vec<ProvenCriterion>,
    pub alarms: Vec<NotedAlarm>,
    /// Its own checks as they were, where the work changed what they run.
    pub as_before: Option<NotedAsBefore>,
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
        let (verdict, red) = match (own, was_red) {
            (true, true) if told.as_before.as_ref().is_some_and(|seen| !seen.holds()) => (StoryVerdict::Unproven, Red::Red),
            (true, true) => (StoryVerdict::Verified, Red::Red),
            (true, false) => (StoryVerdict::Unproven, Red::Unknown),
            (false, _) => (StoryVerdict::Unproven, Red::Absent),
        };
        let session = one_line(&told.session);
        Self {
            v: SCHEMA_VERSION,
            run: told.run,
            story: told.story,
            title: told.title,
            verdict,
            tree: tree.clone(),
            base: told.base,
            attempt: 1,
            turns: told.turns,
            red,
            before: told.before,
            after: runs.iter().map(Proof::from).collect(),
            claim: None,
            cost_usd: None,
            sessions: vec![session.clone()],
            alarms: told.alarms,
            as_before: told.as_before,
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
