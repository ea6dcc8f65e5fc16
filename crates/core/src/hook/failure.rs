//! Verdone itself failed and cannot judge: a guard in a run denies, everything else stays silent. The failure is recorded either way.

use super::record::{Failed, cut};
use super::{Answer, Permission, Record, Response};
use crate::policy::{Mode, OnFailure};

/// Our role in an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The client waits for our decision.
    Guard,
    /// The client only notifies us.
    Observer,
}

impl Role {
    pub fn from_event(event: &str) -> Self {
        match event {
            "PreToolUse" | "PermissionRequest" | "ConfigChange" => Self::Guard,
            _ => Self::Observer,
        }
    }
}

/// Why the call could not be judged, and the file that records it.
#[derive(Debug, Clone, Copy)]
pub struct Cause<'a> {
    pub text: &'a str,
    pub kept: &'a str,
}

/// The answer to a call that could not be judged. If the event is unknown, it is treated as a `PreToolUse`: the client ignores an
/// answer to the wrong event, and a tool must never run unchecked.
pub fn fail(event: Option<&str>, mode: Mode, on_failure: OnFailure, cause: &Cause<'_>) -> Response {
    let event = event.unwrap_or("PreToolUse");
    let denies = match (Role::from_event(event), mode, on_failure) {
        (Role::Guard, Mode::Run, OnFailure::Record | OnFailure::Deny) | (Role::Guard, Mode::Interactive, OnFailure::Deny) => true,
        (Role::Guard, Mode::Interactive, OnFailure::Record) | (Role::Observer, Mode::Run | Mode::Interactive, _) => false,
    };
    let reason = format!(
        "Verdone could not judge this, so it is denied: {}. This is a fault in Verdone, not in your call: do not work around it. \
         Try once more; if it fails again, stop and tell the user. For a report: the file {} and the output of \
         `verdone --version`.",
        cut(cause.text),
        cut(cause.kept)
    );
    let answer = match event {
        "PreToolUse" if denies => Answer::ToolUse(Permission::Deny { reason }),
        "PermissionRequest" if denies => Answer::PermissionRequest(Permission::Deny { reason }),
        _ if denies => Answer::Block { reason },
        _ => Answer::Silent,
    };
    let failed = Failed { cause: cut(cause.text), denied: denies };
    Response { answer, records: vec![Record::Failed(failed)], ..Response::default() }
}

/// Extracts the event's name from an input that cannot be parsed, so that the answer has the right form.
///
/// The client writes the name before any text from the agent, and quotes inside texts are escaped, so the first match is the client's.
pub fn event_in(bytes: &[u8]) -> Option<String> {
    const KEY: &[u8] = b"\"hook_event_name\"";
    let after = bytes.windows(KEY.len()).position(|window| window == KEY)? + KEY.len();
    let rest = bytes[after..].trim_ascii_start().strip_prefix(b":")?.trim_ascii_start().strip_prefix(b"\"")?;
    let end = rest.iter().take(64).position(|byte| *byte == b'"')?;
    let name = std::str::from_utf8(&rest[..end]).ok()?;
    name.bytes().all(|byte| byte.is_ascii_alphanumeric()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAUSE: Cause<'_> = Cause { text: "x", kept: "faults.jsonl" };

    #[test]
    fn only_guards_deny_and_in_the_form_of_their_event() {
        let json = |event, mode, on| fail(Some(event), mode, on, &CAUSE).answer.to_json();
        let denied = json("PreToolUse", Mode::Run, OnFailure::Record).unwrap();
        assert_eq!(denied["hookSpecificOutput"]["permissionDecision"], "deny");
        let denied = json("PermissionRequest", Mode::Run, OnFailure::Record).unwrap();
        assert_eq!(denied["hookSpecificOutput"]["decision"]["behavior"], "deny");
        assert_eq!(json("ConfigChange", Mode::Run, OnFailure::Record).unwrap()["decision"], "block");
        for event in ["PreToolUse", "PermissionRequest", "ConfigChange"] {
            assert_eq!(json(event, Mode::Interactive, OnFailure::Record), None);
            assert!(json(event, Mode::Interactive, OnFailure::Deny).is_some());
        }
        for event in ["PostToolUse", "Stop", "SessionStart", "UserPromptSubmit", "PostToolBatch", "New"] {
            assert_eq!(json(event, Mode::Run, OnFailure::Deny), None, "{event}");
        }
        assert!(matches!(fail(None, Mode::Run, OnFailure::Record, &CAUSE).answer, Answer::ToolUse(Permission::Deny { .. })));
    }

    #[test]
    fn the_event_is_found_in_what_cannot_be_parsed() {
        for (bytes, event) in [
            (&b"{\"hook_event_name\": \"Stop\", \xff"[..], Some("Stop")),
            (b"{ \"hook_event_name\" :\n\"PreToolUse\"", Some("PreToolUse")),
            (b"{\"x\": \"\\\"hook_event_name\\\": \\\"Stop\\\"\", \"hook_event_name\": \"PostToolUse\"", Some("PostToolUse")),
            (b"{\"hook_event_name\": \"Sto", None),
            (b"{\"hook_event_name\": 7", None),
            (b"{\"hook_event_name\": \"a\0b\"", None),
            (b"", None),
        ] {
            assert_eq!(event_in(bytes).as_deref(), event);
        }
    }
}
