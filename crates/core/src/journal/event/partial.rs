//! Reads only those parts of a journal line that totals need: most of a long journal is detail about attempts that ended long ago.
//!
//! Only lines in exactly the format of our writer are read this way. Event kinds that are not listed here are read in full, so that a
//! new event is never missed by accident.

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{Event, Place, Recorded, SCHEMA_VERSION, TurnTests, Verified};
use crate::agent::{SessionUse, TurnOutcome, Usage};
use crate::base::id::Oid;
use crate::done::JudgeRecord;
use crate::verify::{Outcome, Proof, ProtectedChange, Reason, Surface, TreeIds, VerifyReport};

/// The name of a line's event, without parsing the line. `None` if the line is not in our format, has another version, or lacks its
/// active time, which could only be derived from neighbouring lines.
pub fn kind(line: &[u8]) -> Option<&[u8]> {
    let (version, rest) = digits(line.strip_prefix(b"{\"v\":")?)?;
    let (_, rest) = digits(rest.strip_prefix(b",\"seq\":")?)?;
    let rest = rest.strip_prefix(b",\"at\":\"")?;
    let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
    let (_, rest) = digits(rest[end..].strip_prefix(b"\",\"active_ms\":")?)?;
    let rest = rest.strip_prefix(b",\"event\":\"")?;
    let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
    (version == SCHEMA_VERSION && rest[end] == b'"').then_some(&rest[..end])
}

/// A partially read line.
#[derive(Debug, Clone, PartialEq)]
pub enum PartialEvent {
    /// It does not affect any total.
    Nothing,
    /// The fields that affect totals are right. Details may be missing; timestamp and sequence number always are.
    Counted(Box<Recorded>),
}

/// Reads a line of an attempt that has ended. `None` if the line alone is not enough.
pub fn parse_partial(line: &[u8]) -> Option<PartialEvent> {
    let event = match kind(line)? {
        b"attempt_started" | b"checkpointed" | b"red_checked" | b"commit_started" | b"iteration_skipped" | b"script_ran"
        | b"wait_started" | b"wait_ended" => {
            return Some(PartialEvent::Nothing);
        }
        b"story_selected" => read(line, |Selected { iteration, place, number, of, open }| Event::StorySelected {
            iteration,
            place,
            title: String::new(),
            number,
            of,
            open,
        })?,
        b"turn_ended" => read(line, |Turn { place, outcome, usage, leftovers, session, claim }| {
            let (duration_ms, prompt, output) = (0, None, None);
            Event::TurnEnded {
                place,
                outcome,
                duration_ms,
                usage,
                exit_code: None,
                prompt,
                output,
                leftovers,
                tests: TurnTests::default(),
                session,
                allowance: None,
                claim,
            }
        })?,
        b"verified" => match read(line, verified) {
            Some(event) => event,
            None => return whole(line),
        },
        b"committed" => read(line, |Committed { place, commit, proof, outcome }| Event::Committed {
            place,
            commit,
            tree: Oid(String::new()),
            proof,
            outcome,
            base: None,
            files: 0,
            evidence: None,
            criteria: Vec::new(),
            noted: false,
        })?,
        // To undo something, all of its details have to be known.
        b"undone" => return None,
        _ => return whole(line),
    };
    Some(PartialEvent::Counted(Box::new(Recorded {
        v: SCHEMA_VERSION,
        seq: 0,
        at: Timestamp::UNIX_EPOCH,
        active_ms: Some(0),
        event,
    })))
}

// Separate structs with only the needed fields. Parsing a whole event is slower, because its tag is stored among its fields, so
// serde reads it twice.

#[derive(Deserialize)]
struct Selected {
    iteration: u32,
    place: Place,
    number: usize,
    of: usize,
    open: usize,
}

#[derive(Deserialize)]
struct Turn {
    place: Place,
    outcome: TurnOutcome,
    usage: Usage,
    leftovers: u32,
    /// It may explain a claim.
    #[serde(default)]
    session: Option<SessionUse>,
    #[serde(default)]
    claim: Option<String>,
}

#[derive(Deserialize)]
struct Verification {
    place: Place,
    #[serde(default)]
    restored: Vec<String>,
    report: Report,
    /// It may have a cost.
    #[serde(default)]
    judge: Option<JudgeRecord>,
}

#[derive(Deserialize)]
struct Report {
    outcome: Outcome,
    reasons: Vec<Reason>,
    #[serde(default)]
    protected: Vec<ProtectedChange>,
}

fn verified(seen: Verification) -> Event {
    let Verification { place, restored, report: Report { outcome, reasons, protected }, judge } = seen;
    let empty = VerifyReport::empty(Surface::Run, Some(place.story.clone()), TreeIds::of_attempt(Oid(String::new())));
    let report = VerifyReport { outcome, reasons, protected, ..empty };
    Event::Verified(Box::new(Verified { place, changed: 0, restored, report, judge }))
}

#[derive(Deserialize)]
struct Committed {
    place: Place,
    /// Needed if the commit has yet to land.
    commit: Oid,
    #[serde(alias = "verdict")]
    proof: Proof,
    #[serde(default = "super::done")]
    outcome: Outcome,
}

fn whole(line: &[u8]) -> Option<PartialEvent> {
    serde_json::from_slice(line).ok().map(|recorded| PartialEvent::Counted(Box::new(recorded)))
}

fn read<T: DeserializeOwned>(line: &[u8], event: impl FnOnce(T) -> Event) -> Option<Event> {
    serde_json::from_slice(line).ok().map(event)
}

fn digits(text: &[u8]) -> Option<(u32, &[u8])> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit())?;
    let number = text[..end].iter().try_fold(0_u32, |number, byte| number.checked_mul(10)?.checked_add(u32::from(byte - b'0')));
    (end > 0).then_some((number.unwrap_or(u32::MAX), &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_known_only_in_our_own_spelling() {
        let table: [(&str, Option<&str>); 10] = [
            (r#"{"v":1,"seq":12,"at":"2026-01-01T00:00:00Z","event":"committed","place":{}}"#, None),
            (r#"{"v":1,"seq":12,"at":"2026-01-01T00:00:00Z","active_ms":7,"event":"committed","place":{}}"#, Some("committed")),
            (r#"{"v":1,"seq":99999999999,"at":"","active_ms":7,"event":"committed"}"#, Some("committed")),
            (r#"{"v":2,"seq":12,"at":"2026-01-01T00:00:00Z","active_ms":7,"event":"committed"}"#, None),
            (r#"{"v":1, "seq":12,"at":"2026-01-01T00:00:00Z","active_ms":7,"event":"committed"}"#, None),
            (r#"{"seq":12,"v":1,"at":"2026-01-01T00:00:00Z","active_ms":7,"event":"committed"}"#, None),
            (r#"{"v":1,"seq":12,"at":"x\",\"event\":\"committed","active_ms":7,"event":"undone"}"#, None),
            (r#"{"v":1,"seq":12,"at":"","active_ms":7,"event":"a\"committed"}"#, None),
            (r#"{"v":1,"seq":,"at":"","active_ms":7,"event":"committed"}"#, None),
            ("", None),
        ];
        for (line, expected) in table {
            assert_eq!(kind(line.as_bytes()), expected.map(str::as_bytes), "{line}");
        }
    }
}
