//! The id of a story.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The id of a story as its plan spells it. Untrusted: encode it before using it in a path or a ref.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct StoryId(pub String);

impl StoryId {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The story that a person means by this id: the one with exactly this id, else the only one that differs just in case and in
    /// leading zeros.
    pub fn meant_among<'a>(&self, known: impl IntoIterator<Item = &'a Self>) -> Option<&'a Self> {
        let mut alike: Vec<&Self> = Vec::new();
        for id in known {
            if id == self {
                return Some(id);
            }
            if plain_id(&id.0) == plain_id(&self.0) && !alike.contains(&id) {
                alike.push(id);
            }
        }
        if let [only] = alike[..] { Some(only) } else { None }
    }
}

/// An id in lower case, with no zeros before its numbers.
fn plain_id(id: &str) -> String {
    let mut plain = String::with_capacity(id.len());
    let mut rest = id;
    while let Some(first) = rest.chars().next() {
        if first.is_ascii_digit() {
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let number = rest[..end].trim_start_matches('0');
            plain.push_str(if number.is_empty() { "0" } else { number });
            rest = &rest[end..];
        } else {
            plain.push(first.to_ascii_lowercase());
            rest = &rest[first.len_utf8()..];
        }
    }
    plain
}

impl From<&str> for StoryId {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for StoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_found_whatever_its_case_if_only_one_story_can_be_meant() {
        let known = ["US-001", "us-002", "US-002", "Us-003", "Us-003"].map(StoryId::from);
        for (asked, expected) in [
            ("US-001", Some("US-001")),
            ("us-001", Some("US-001")),
            ("US-002", Some("US-002")),
            ("Us-002", None),
            ("us-003", Some("Us-003")),
            ("us-01", Some("US-001")),
            ("us-2", None),
            ("us-10", None),
        ] {
            assert_eq!(StoryId::from(asked).meant_among(&known).map(StoryId::as_str), expected, "{asked}");
        }
    }
}
