//! When Verdone itself cannot judge: a guard of a run denies, everything else says nothing. The fault is recorded either way.

use super::record::{Failed, cut};
use super::{Answer, Permission, Record, Response};
use crate::policy::{Mode, OnFailure};

/// What an event is to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Something waits for our word.
    Guard,
    /// Something is only told to us.
    Observer,
}

impl Role {
    pub fn of(event: &str) -> Self {
        match event {
            "PreToolUse" | "PermissionRequest" | "ConfigChange" => Self::Guard,
            _ => Self::Observer,
        }
    }
}

/// The answer to a call that could not be judged. Without an event it is taken for a `PreToolUse`: the client drops an answer to
/// another event, and a tool that runs unseen is the one thing that must not be.
pub fn fail(event: Option<&str>, mode: Mode, on_failure: OnFailure, cause: &str) -> Response {
    let event = event.unwrap_or("PreToolUse");
    let denies = match (Role::of(event), mode, on_failure) {
        (Role::Guard, Mode::Run, OnFailure::Record | OnFailure::Deny) | (Role::Guard, Mode::Interactive, OnFailure::Deny) => true,
        (Role::Guard, Mode::Interactive, OnFailure::Record) | (Role::Observer, Mode::Run | Mode::Interactive, _) => false,
    };
    let reason = format!(
        "Verdone could not judge this, so it is denied: {}. This is a fault of Verdone, not of your call: do not work around it. \
         Try once more; if it stays, stop and tell the user. For a report: the file .verdone/sessions/faults.jsonl and the output \
         of `verdone --version`.",
        cut(cause)
    );
    let answer = match event {
        "PreToolUse" if denies => Answer::ToolUse(Permission::Deny { reason }),
        "PermissionRequest" if denies => Answer::PermissionRequest(Permission::Deny { reason }),
        _ if denies => Answer::Block { reason },
        _ => Answer::Silent,
    };
    Response {
        answer,
        records: vec![Record::Failed(Failed { cause: cut(cause), denied: denies })],
        known: Vec::new(),
        reading: Vec::new(),
        unread: Vec::new(),
        seen: None,
    }
}

/// The event's name in an input that cannot be parsed: better than none, so that the right kind of answer is given.
///
/// The client writes it before anything of the agent's, and a quote inside a text is escaped, so the first one is the client's.
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

    #[test]
    fn only_guards_deny_and_in_the_form_of_their_event() {
        let json = |event, mode, on| fail(Some(event), mode, on, "x").answer.to_json();
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
        assert!(matches!(fail(None, Mode::Run, OnFailure::Record, "x").answer, Answer::ToolUse(Permission::Deny { .. })));
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
