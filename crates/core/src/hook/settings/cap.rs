//! The client's limit on how often in a row a hook may hold a turn back. Beyond it the turn ends as if nothing had been said, so a
//! gate that waits for a verification has to have more room. It is a variable in the settings' `env`.
//!
//! A value that the user has set stays, and nothing else tells later whose it is; so that is told by the order of keys of two handlers,
//! as a [`Mark`](super::entry::Mark) is: both that the limit is about.

use super::container::{Fate, Layout, cut};
use super::entry::Mark;
use super::last;
use crate::base::json::{Node, Value};

const VARIABLE: &str = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP";
/// The client's own is 8. High, and not 0, which is no limit: another hook of the user's that never lets go should still come to an end.
const VALUE: &str = "100";

/// Whose the variable is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cap {
    /// The user's, or there is no place for it.
    Theirs,
    /// Ours. An `env` with nothing else in it is ours too.
    Ours,
    /// Ours, in an `env` that was there and empty.
    OursInEmpty,
}

impl Cap {
    /// What a text without it calls for.
    pub(super) fn wanted(root: &Node<'_>) -> Self {
        match last(root, "env").map(|env| &env.value) {
            Some(Value::Object(members)) if members.is_empty() => Self::OursInEmpty,
            Some(Value::Object(members)) if members.iter().any(|member| member.key == VARIABLE) => Self::Theirs,
            None | Some(Value::Object(_)) => Self::Ours,
            // Not what clients expect; it is not ours to say so.
            Some(Value::Null | Value::Bool | Value::Number(_) | Value::Text(_) | Value::List(_) | Value::Unread) => Self::Theirs,
        }
    }

    /// Whether the handler of this event tells it by its keys.
    pub(super) fn is_told_by(self, event: &str) -> bool {
        match self {
            Self::Theirs => false,
            Self::Ours => event == "Stop",
            Self::OursInEmpty => matches!(event, "Stop" | "SubagentStop"),
        }
    }

    /// From the events whose handlers tell it.
    pub(super) fn told(events: &[&str]) -> Self {
        match (events.contains(&"Stop"), events.contains(&"SubagentStop")) {
            (false, _) => Self::Theirs,
            (true, false) => Self::Ours,
            (true, true) => Self::OursInEmpty,
        }
    }

    /// Where the text has an `env`: what goes in there, and where.
    pub(super) fn insert(self, text: &str, root: &Node<'_>) -> Option<(usize, String)> {
        let env = last(root, "env").filter(|_| self != Self::Theirs)?;
        let layout = Layout::inside(text, root, env);
        Some(layout.insert(vec![variable(&layout)]))
    }

    /// What becomes of a member of the root, if it is the `env` that ours is in.
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

/// An `env` for it alone.
pub(super) fn member(layout: &Layout) -> String {
    layout.member("env", &layout.line(&[variable(layout)]))
}

fn variable(layout: &Layout) -> String {
    layout.member(VARIABLE, &format!("\"{VALUE}\""))
}
