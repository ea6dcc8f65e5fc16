//! The client limits how often in a row a hook may block the end of a turn. Beyond the limit the turn ends regardless, so a gate that
//! waits for a verification needs a higher one. The limit is a variable in the settings' `env`.
//!
//! A value set by the user stays. To recognise our own value later, the key order of the two handlers that the limit affects encodes
//! it, like a [`Mark`](super::entry::Mark).

use verdone_text::json::{Node, Value};

use super::container::{Fate, Layout, cut};
use super::entry::Mark;
use super::last;

/// The variable, for settings that lack it.
pub const VARIABLE: &str = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP";
/// The client's default is 8. Use a high value but not 0, which means no limit: a hook of the user's that always blocks should still end.
const VALUE: &str = "100";

/// Who set the variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cap {
    /// The user, or there is no place for it.
    Theirs,
    /// We did. An `env` with nothing else in it is ours too.
    Ours,
    /// We did, in an `env` that existed and was empty.
    OursInEmpty,
}

impl Cap {
    /// The value to install in a file without our variable.
    pub(super) fn wanted(root: &Node<'_>) -> Self {
        match last(root, "env").map(|env| &env.value) {
            Some(Value::Object(members)) if members.is_empty() => Self::OursInEmpty,
            Some(Value::Object(members)) if members.iter().any(|member| member.key == VARIABLE) => Self::Theirs,
            None | Some(Value::Object(_)) => Self::Ours,
            // Invalid for clients, but reporting that is not our job.
            Some(Value::Null | Value::Bool | Value::Number(_) | Value::Text(_) | Value::List(_) | Value::Unread) => Self::Theirs,
        }
    }

    /// Whether the key order of this event's handler encodes it.
    pub(super) fn is_told_by(self, event: &str) -> bool {
        match self {
            Self::Theirs => false,
            Self::Ours => event == "Stop",
            Self::OursInEmpty => matches!(event, "Stop" | "SubagentStop"),
        }
    }

    /// Decodes the value from the events whose handlers encode it.
    pub(super) fn told(events: &[&str]) -> Self {
        match (events.contains(&"Stop"), events.contains(&"SubagentStop")) {
            (false, _) => Self::Theirs,
            (true, false) => Self::Ours,
            (true, true) => Self::OursInEmpty,
        }
    }

    /// The position and text to insert, if the file has an `env`.
    pub(super) fn insert(self, text: &str, root: &Node<'_>) -> Option<(usize, String)> {
        let env = last(root, "env").filter(|_| self != Self::Theirs)?;
        let layout = Layout::inside(text, root, env);
        Some(layout.insert(vec![variable(&layout)]))
    }

    /// The fate of a root member, if it is the `env` that contains our variable.
    pub(super) fn fate(self, text: &str, root: &Node<'_>, env: &Node<'_>, mark: Mark) -> Fate {
        let counts = last(root, "env").is_some_and(|last| last.span == env.span);
        if self == Self::Theirs || !counts {
            return Fate::Stays;
        }
        let fates = env.members().iter().map(|member| {
            let ours = member.key == VARIABLE && matches!(&member.node.value, Value::Text(text) if text == VALUE);
            if ours { Fate::Goes { mark, emptied: 0..0 } } else { Fate::Stays }
        });
        match cut(text, root, env, fates.collect()) {
            Fate::Goes { emptied, .. } if self == Self::OursInEmpty => Fate::Parts(vec![emptied]),
            fate => fate,
        }
    }
}

/// An `env` that contains only our variable.
pub(super) fn member(layout: &Layout) -> String {
    layout.member("env", &layout.line(&[variable(layout)]))
}

fn variable(layout: &Layout) -> String {
    layout.member(VARIABLE, &format!("\"{VALUE}\""))
}
