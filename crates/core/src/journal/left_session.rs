//! Finds the session of an earlier run that can be continued: its last turn was committed, and nothing was undone since.

use super::event::{Event, Recorded};
use crate::agent::SessionUse;
use crate::agent::claude::{ContextUse, Uuid};

/// The last session of an earlier run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resumable {
    pub id: Uuid,
    /// Measured after its last turn.
    pub context: Option<ContextUse>,
}

impl Resumable {
    /// From its journal entry; `None` if that has no valid session id.
    pub fn from_use(session: &SessionUse) -> Option<Self> {
        let context = session.tokens.map(|tokens| ContextUse { tokens, window: session.window });
        Some(Self { id: Uuid::parse(&session.id)?, context })
    }
}

/// The session that the end of a journal leaves, if any. The outer `None` means that more of the journal must be read.
///
/// An unfinished turn or undone work makes its session unusable, because the session relies on edits that are gone. An attempt
/// without a turn does not.
pub fn left_session(events: &[Recorded]) -> Option<Option<Resumable>> {
    events.iter().rev().find_map(|recorded| match &recorded.event {
        Event::TurnEnded { session, .. } => Some(session.as_ref().and_then(Resumable::from_use)),
        Event::AttemptKept { place, .. } | Event::AttemptDropped { place, .. } if place.turn > 0 => Some(None),
        Event::TurnStarted { .. } | Event::Undone { .. } | Event::RunStarted { .. } => Some(None),
        Event::AttemptKept { .. }
        | Event::AttemptDropped { .. }
        | Event::LandingStarted { .. }
        | Event::Landed { .. }
        | Event::LandingRefused { .. }
        | Event::Reapplied { .. }
        | Event::Retired
        | Event::BaselineChecked { .. }
        | Event::StorySelected { .. }
        | Event::AttemptStarted { .. }
        | Event::RedChecked { .. }
        | Event::WaitStarted { .. }
        | Event::WaitEnded { .. }
        | Event::Verified { .. }
        | Event::CommitStarted { .. }
        | Event::Committed { .. }
        | Event::Marked { .. }
        | Event::CommitRefused { .. }
        | Event::AttemptRejected { .. }
        | Event::StoryFailed { .. }
        | Event::ReviewNeeded { .. }
        | Event::Accepted { .. }
        | Event::Refused { .. }
        | Event::RegressionStarted { .. }
        | Event::RegressionChecked { .. }
        | Event::Regressed { .. }
        | Event::Reopened { .. }
        | Event::IterationSkipped { .. }
        | Event::ScriptRan { .. }
        | Event::GuardFailed { .. }
        | Event::Asked { .. }
        | Event::StopRequested { .. }
        | Event::RunStopping { .. }
        | Event::RunStopped { .. } => None,
    })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::{Value, json};

    use super::*;

    const ID: &str = "0b6a5b1e-6f0a-4a53-9a51-0d9d8a7f1c11";

    #[expect(clippy::option_option, reason = "what the function itself says")]
    fn left(events: &[Value]) -> Option<Option<Resumable>> {
        let read = |(n, event): (usize, &Value)| Recorded {
            v: 1,
            seq: n as u64,
            at: Timestamp::UNIX_EPOCH,
            active_ms: None,
            event: serde_json::from_value(event.clone()).unwrap(),
        };
        left_session(&events.iter().enumerate().map(read).collect::<Vec<_>>())
    }

    fn place(turn: u32) -> Value {
        json!({ "story": "A", "attempt": 1, "turn": turn })
    }

    fn ended(id: &str) -> Value {
        let session = json!({ "id": id, "tokens": 5_000, "window": 200_000 });
        json!({ "event": "turn_ended", "place": place(1), "outcome": "ended", "duration_ms": 1, "usage": {}, "prompt": null,
            "output": null, "leftovers": 0, "session": session })
    }

    fn kept(turn: u32) -> Value {
        json!({ "event": "attempt_kept", "place": place(turn), "kept": "k", "files": 0 })
    }

    #[test]
    fn a_session_whose_work_is_committed_can_go_on() {
        let committed = json!({ "event": "committed", "place": place(1), "commit": "c", "tree": "t", "verdict": "verified",
            "base": null, "files": 1, "noted": true });
        let started = json!({ "event": "turn_started", "place": place(1) });
        let stopping = json!({ "event": "run_stopping", "finish": "error", "reason": "died" });
        let known = Some(Some(Resumable {
            id: Uuid::parse(ID).unwrap(),
            context: Some(ContextUse { tokens: 5_000, window: Some(200_000) }),
        }));
        let done = [started.clone(), ended(ID), committed.clone()];
        assert_eq!(left(&done), known);
        let after = |events: &[Value]| left(&[&done[..], events].concat());
        assert_eq!(after(&[kept(0), stopping.clone()]), known, "the next attempt had no turn yet");
        assert_eq!(after(&[kept(1), stopping.clone()]), Some(None), "its work is gone from the workspace");
        for (landing, attempt) in [("landed", "attempt_kept"), ("landing_refused", "attempt_dropped")] {
            let landing = json!({ "event": landing, "branch": "main", "from": "b", "to": "c", "reason": "why" });
            let attempt = json!({ "event": attempt, "place": place(1), "kept": "k", "files": 0, "reason": "died" });
            assert_eq!(after(std::slice::from_ref(&landing)), known, "landing changes nothing in the workspace");
            assert_eq!(after(&[landing, attempt]), Some(None));
        }
        assert_eq!(after(&[started]), Some(None), "a turn was in progress");
        assert_eq!(left(&[committed]), None, "the end alone does not say");
        assert_eq!(left(&[]), None);
    }

    #[test]
    fn what_is_no_id_of_a_session_is_never_resumed() {
        for id in ["", "--bare", "../x", "0b6a5b1e-6f0a-4a53-9a51-0d9d8a7f1c1g"] {
            assert_eq!(left(&[ended(id)]), Some(None), "{id}");
        }
    }
}
