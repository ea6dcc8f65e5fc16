//! Finds lines by the words that they share with a query. A project has few enough lessons that this is sufficient.

use std::collections::BTreeSet;

use serde::Serialize;

/// How many passages are returned.
const MOST: usize = 10;
/// Shorter words say nothing.
const SHORTEST_WORD: usize = 3;

/// A passage that fits the query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Passage {
    /// Where it comes from: `guardrails`, or a commit with evidence.
    pub source: String,
    pub text: String,
}

/// The passages that share the most words with the query, the best first. Equal ones stay in order.
pub fn search(query: &str, passages: impl IntoIterator<Item = Passage>) -> Vec<Passage> {
    let wanted = significant_words(query);
    let mut scored: Vec<(usize, Passage)> = passages
        .into_iter()
        .map(|passage| (significant_words(&passage.text).intersection(&wanted).count(), passage))
        .filter(|(score, _)| *score > 0)
        .collect();
    scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    scored.into_iter().take(MOST).map(|(_, found)| found).collect()
}

fn significant_words(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() >= SHORTEST_WORD);
    // "tests" and "test" mean the same here.
    words.map(str::to_lowercase).map(|word| word.strip_suffix('s').unwrap_or(&word).to_owned()).collect()
}
