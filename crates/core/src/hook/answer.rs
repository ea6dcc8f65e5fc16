//! What a hook tells the client: at most one JSON object, and only shapes that the client is known to obey.

use serde_json::{Value, json};

/// Longer context is moved into a file by the client, and the agent sees a preview of it.
const CONTEXT_LENGTH: usize = 9_000;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Answer {
    /// No opinion: nothing is printed.
    #[default]
    Silent,
    /// To `PreToolUse`.
    ToolUse(Permission),
    /// To `PermissionRequest`, which has a form of its own.
    PermissionRequest(Permission),
    /// Something for the agent to read; `event` is the name of the event that is answered.
    Context { event: String, text: String },
    /// What was about to happen does not, or, after a tool, the agent is told that it went wrong.
    Block { reason: String },
    /// After a tool: the turn is over. The reason is for the user; the agent does not get to read it.
    EndTurn { reason: String },
    /// To events that know no object: it does not happen, by exit code 2 and the reason on standard error.
    Refuse { reason: String },
    /// Something for the user to see.
    Tell { text: String },
}

/// An explicit decision; no opinion is [`Answer::Silent`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permission {
    Allow,
    Deny { reason: String },
}

impl Answer {
    /// Why something does not happen, where that is what it says.
    pub fn refusal(&self) -> Option<&str> {
        match self {
            Self::ToolUse(Permission::Deny { reason })
            | Self::PermissionRequest(Permission::Deny { reason })
            | Self::Block { reason }
            | Self::Refuse { reason } => Some(said(reason)),
            Self::ToolUse(Permission::Allow)
            | Self::PermissionRequest(Permission::Allow)
            | Self::Silent
            | Self::Context { .. }
            | Self::EndTurn { .. }
            | Self::Tell { .. } => None,
        }
    }

    /// The object to print, if there is one.
    pub fn to_json(&self) -> Option<Value> {
        match self {
            Self::Silent | Self::Refuse { .. } => None,
            Self::ToolUse(Permission::Allow) => {
                Some(json!({ "hookSpecificOutput": { "hookEventName": "PreToolUse", "permissionDecision": "allow" } }))
            }
            Self::ToolUse(Permission::Deny { reason }) => Some(json!({
                "hookSpecificOutput": {
                    "hookEventName": "PreToolUse",
                    "permissionDecision": "deny",
                    "permissionDecisionReason": said(reason),
                }
            })),
            Self::PermissionRequest(Permission::Allow) => Some(json!({
                "hookSpecificOutput": { "hookEventName": "PermissionRequest", "decision": { "behavior": "allow" } }
            })),
            Self::PermissionRequest(Permission::Deny { reason }) => Some(json!({
                "hookSpecificOutput": {
                    "hookEventName": "PermissionRequest",
                    "decision": { "behavior": "deny", "message": said(reason) },
                }
            })),
            Self::Context { event, text } => Some(json!({
                "hookSpecificOutput": { "hookEventName": event, "additionalContext": cut(text) }
            })),
            Self::Block { reason } => Some(json!({ "decision": "block", "reason": said(reason) })),
            Self::EndTurn { reason } => Some(json!({ "continue": false, "stopReason": said(reason) })),
            Self::Tell { text } => Some(json!({ "systemMessage": cut(text) })),
        }
    }
}

/// A block without a reason tells the agent nothing.
fn said(reason: &str) -> &str {
    let reason = cut(reason);
    if reason.trim().is_empty() { "refused by Verdone" } else { reason }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(CONTEXT_LENGTH)]
}
