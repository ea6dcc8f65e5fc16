//! A hook's answer to the client: at most one JSON object, and only in forms that the client is known to obey.

use serde_json::{Value, json};

/// The client moves longer context into a file and shows the agent only a preview.
const CONTEXT_LENGTH: usize = 9_000;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Answer {
    /// No opinion: prints nothing.
    #[default]
    Silent,
    /// Answers `PreToolUse`.
    ToolUse(Permission),
    /// Answers `PermissionRequest`, which has its own format.
    PermissionRequest(Permission),
    /// Text for the agent; `event` is the name of the answered event.
    Context { event: String, text: String },
    /// Prevents the action. After a tool call, it tells the agent that the call went wrong.
    Block { reason: String },
    /// Ends the turn after a tool call. Only the user sees the reason, not the agent.
    EndTurn { reason: String },
    /// For events that accept no object: prevents the action with exit code 2 and the reason on standard error.
    Refuse { reason: String },
    /// A message for the user.
    Tell { text: String },
}

/// An explicit decision; no opinion is [`Answer::Silent`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permission {
    Allow,
    Deny { reason: String },
}

impl Answer {
    /// The reason, if the answer prevents something.
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

    /// The object to print, if any.
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

/// Replaces an empty reason, which would tell the agent nothing.
fn said(reason: &str) -> &str {
    let reason = cut(reason);
    if reason.trim().is_empty() { "refused by Verdone" } else { reason }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(CONTEXT_LENGTH)]
}
