//! How long one turn of a session with a loop may take. Verdone cannot end a turn of a session that it did not start, but it can deny tools:
//! without tools, the agent stops, and its work is verified.
//!
//! The deadline is in a file in the loop's folder, outside the project. It is written when a turn begins, and read at each tool call.

use std::fs;

use jiff::Timestamp;
use verdone_core::base::verdict::PolicyVerdict;
use verdone_core::engine::session::HeldLoop;
use verdone_core::hook::{Answer, Permission, Record, ToolCall};

use crate::base::atomic::replace_for_readers;
use crate::base::plain_file::read_regular;

use super::files::file_error;
use super::{Gate, GateAnswer, StopError};

const DEADLINE: &str = "turn-deadline";
const LONGEST: u64 = 64;

/// A turn begins: with a prompt, or because the session was kept from stopping.
pub(super) fn begin_turn(gate: &Gate<'_>, held: &HeldLoop) -> Result<(), StopError> {
    let Some((sealed_copy, name)) = &gate.files.sealed_copy else { return Ok(()) };
    let path = sealed_copy.path(name, DEADLINE);
    let Some(limit) = held.settings.config.stop.turn_time.limit() else { return Ok(()) };
    let deadline = Timestamp::now().as_second().saturating_add_unsigned(limit.as_secs());
    replace_for_readers(&path, deadline.to_string().as_bytes()).map_err(|source| file_error(&path, source))
}

/// The denial of a tool call after the deadline. Without a readable deadline there is none.
pub(super) fn overdue(gate: &Gate<'_>, call: &ToolCall<'_>) -> Option<GateAnswer> {
    let (sealed_copy, name) = gate.files.sealed_copy.as_ref()?;
    let text = read_regular(&sealed_copy.path(name, DEADLINE), LONGEST).ok()?;
    let deadline: i64 = String::from_utf8_lossy(&text).parse().ok()?;
    if Timestamp::now().as_second() < deadline || !gate.files.is_held() {
        return None;
    }
    let reason =
        "This turn has taken longer than the loop allows (`turn_time` in [stop]). Use no more tools: say in one sentence \
                  what is left to do, and stop. Verdone then verifies the work, and the next turn continues."
            .to_owned();
    let record = Record::Decided {
        tool: call.tool.to_string(),
        id: call.id.as_deref().map(str::to_owned),
        verdict: PolicyVerdict::Deny,
        rule: Some("turn_time".to_owned()),
        place: Some("[stop]".to_owned()),
        about: None,
        reason: reason.clone(),
        needs_human: false,
    };
    Some(GateAnswer { answer: Answer::ToolUse(Permission::Deny { reason }), records: vec![record] })
}

/// Forgets the deadline, so that tools work while no turn of the loop is running.
pub(super) fn end_turn(gate: &Gate<'_>) {
    if let Some((sealed_copy, name)) = &gate.files.sealed_copy {
        // A leftover deadline is replaced by the next turn.
        let _ = fs::remove_file(sealed_copy.path(name, DEADLINE));
    }
}
