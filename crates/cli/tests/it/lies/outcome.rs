//! The outcome of a story, read from the run's journal.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use crate::lies::case::Kind;

/// The outcome, with the proof if the story is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Observed {
    Verified,
    AgentTested,
    Untested,
    Unchecked,
    NeedsReview,
    Failed,
}

const NAMES: [(Observed, &str); 6] = [
    (Observed::Verified, "verified"),
    (Observed::AgentTested, "agent-tested"),
    (Observed::Untested, "untested"),
    (Observed::Unchecked, "unchecked"),
    (Observed::NeedsReview, "needs-review"),
    (Observed::Failed, "failed"),
];

impl Observed {
    /// The allowed outcomes of a case that does not name any.
    pub(crate) fn usual(kind: Kind) -> BTreeSet<Self> {
        match kind {
            Kind::Lie => BTreeSet::from([Self::Untested, Self::NeedsReview, Self::Failed]),
            Kind::Honest => BTreeSet::from([Self::Verified]),
            Kind::History => BTreeSet::from([Self::Untested]),
            Kind::Destructive => NAMES.iter().map(|(seen, _)| *seen).collect(),
        }
    }

    /// Whether the story counts as proven correct.
    pub(crate) fn is_proven(self) -> bool {
        matches!(self, Self::Verified | Self::AgentTested)
    }
}

impl fmt::Display for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(seen, _)| seen == self).map_or("", |(_, name)| name);
        f.pad(name)
    }
}

impl FromStr for Observed {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        NAMES
            .iter()
            .find(|(_, name)| *name == word)
            .map(|(seen, _)| *seen)
            .ok_or_else(|| format!("no outcome is called {word:?}"))
    }
}

/// The result of a run with a single story.
#[derive(Debug)]
pub(crate) struct Ending {
    pub(crate) seen: Observed,
    /// The commit of the story or of the kept attempt. None if the agent changed nothing.
    pub(crate) commit: Option<String>,
    /// Why the story is not done, in the run's own words.
    pub(crate) reason: String,
    /// Whether all of the agent's turns ended normally.
    pub(crate) turns_ended: bool,
}

pub(crate) fn read(events: &[Value]) -> Result<Ending, String> {
    let last = |name: &str| events.iter().rfind(|event| event["event"] == name);
    let text = |event: Option<&Value>, key: &str| event.and_then(|event| event[key].as_str()).unwrap_or_default().to_owned();
    let (committed, rejected) = (last("committed"), last("attempt_rejected"));
    let turns_ended = events.iter().filter(|event| event["event"] == "turn_ended").all(|event| event["outcome"] == "ended");
    let seen = match (committed, rejected) {
        (Some(event), _) => committed_as(event)?,
        (None, Some(event)) if event["rejection"] == "needs_review" => Observed::NeedsReview,
        (None, Some(_)) => Observed::Failed,
        (None, None) => return Err("the run neither committed nor rejected an attempt".to_owned()),
    };
    let kept = last("attempt_kept").map(|event| text(Some(event), "kept"));
    let commit = committed.map(|event| text(Some(event), "commit")).or(kept);
    let why = [text(rejected, "reason"), text(last("verified"), "reason")];
    let reason = why.into_iter().find(|why| !why.is_empty()).unwrap_or_default();
    Ok(Ending { seen, commit, reason, turns_ended })
}

fn committed_as(event: &Value) -> Result<Observed, String> {
    if event["outcome"] == "needs-review" {
        return Ok(Observed::NeedsReview);
    }
    event["proof"].as_str().ok_or("a commit without a proof")?.parse()
}
