//! What the Stop gate's decisions teach.

use std::path::Path;

use jiff::Timestamp;
use verdone_core::engine::session::{StopDecision, StopFacts, StopTeaching};

use super::Gate;
use crate::project::find_git_top;
use crate::project::lessons::{LessonStore, LessonsError};

/// Counts what blocked the session, and forgets what the user overrides. Returns why that failed: it never changes the decision.
pub(super) fn learn(gate: &Gate<'_>, facts: &StopFacts, decision: &StopDecision) -> Result<(), LessonsError> {
    let settings = &gate.config.learn;
    if !settings.enabled {
        return Ok(());
    }
    let store = LessonStore::new(gate.root, gate.top);
    match StopTeaching::from_decision(facts, decision) {
        StopTeaching::Nothing => Ok(()),
        StopTeaching::Blocked(causes) => {
            store.update(|memory| memory.note_block(gate.session, causes, settings, Timestamp::now()))
        }
        StopTeaching::Overridden => override_last_block(&store, gate.session),
    }
}

/// The user ended the session's loop: what blocked it last does not matter to them.
pub(super) fn forget_overridden(root: &Path, session: &str) -> Result<(), LessonsError> {
    let top = find_git_top(root).unwrap_or_else(|_| root.to_owned());
    override_last_block(&LessonStore::new(root, &top), session)
}

fn override_last_block(store: &LessonStore, session: &str) -> Result<(), LessonsError> {
    if store.read().was_blocked(session) { store.update(|memory| memory.note_override(session)) } else { Ok(()) }
}
