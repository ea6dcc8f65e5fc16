//! A digest of what stories ask for, independent of ticks. Identifies what a user approved and what a judge was asked about.

use sha2::Digest as _;
use verdone_text::hex;

use crate::Story;

impl Story {
    /// A digest of its id, title, body, criteria, dependencies and checks.
    pub fn fingerprint(&self) -> String {
        fingerprint(std::slice::from_ref(self))
    }
}

pub(crate) fn fingerprint(stories: &[Story]) -> String {
    let mut hasher = sha2::Sha256::new();
    let mut add = |part: &str| {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    };
    for story in stories {
        add(story.id.as_str());
        add(&story.title);
        add(&without_ticks(&story.body));
        add(&story.criteria.len().to_string());
        story.criteria.iter().for_each(|criterion| add(&criterion.text));
        add(&story.depends_on.len().to_string());
        story.depends_on.iter().for_each(|id| add(id.as_str()));
        add(&story.checks.len().to_string());
        story.checks.iter().for_each(|line| add(line));
        add(&story.maybe_checks.len().to_string());
        story.maybe_checks.iter().for_each(|line| add(line));
    }
    hex(&hasher.finalize())
}

/// A body with every box open, so that a tick does not look like an edit.
fn without_ticks(body: &str) -> String {
    let mut out = body.as_bytes().to_vec();
    for at in 0..out.len().saturating_sub(2) {
        if out[at] == b'[' && matches!(out[at + 1], b'x' | b'X' | b'~' | b'/') && out[at + 2] == b']' {
            out[at + 1] = b' ';
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| body.to_owned())
}
