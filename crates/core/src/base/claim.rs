//! What an agent says at the end of a turn, and whether that claims the story to be done. Only the wording of pages depends on it: a
//! claim opens no gate.

use crate::base::sanitise::sanitise;

/// How much of the agent's final message a note keeps.
const LONGEST_CLAIM: usize = 500;

/// Words that say that work is done.
const DONE: [&str; 19] = [
    "done",
    "complete",
    "completed",
    "finished",
    "implemented",
    "fixed",
    "resolved",
    "ready",
    "works",
    "working",
    "pass",
    "passes",
    "passed",
    "passing",
    "green",
    "successful",
    "successfully",
    "verified",
    "✅",
];

/// Words that say the opposite of the sentence they are in.
const NOT: [&str; 15] = [
    "not",
    "no",
    "never",
    "cannot",
    "unable",
    "fail",
    "fails",
    "failed",
    "failing",
    "broken",
    "incomplete",
    "unfinished",
    "partially",
    "todo",
    "until",
];

/// The end of the agent's (already redacted) message, which is its claim. `None` if it said nothing.
pub fn claim_of(said: &str) -> Option<String> {
    let said = sanitise(said);
    let said = said.trim();
    let skip = said.chars().count().saturating_sub(LONGEST_CLAIM);
    let end: String = said.chars().skip(skip).collect();
    let cut = if skip > 0 { format!("… {}", end.trim_start()) } else { end };
    (!cut.is_empty()).then_some(cut)
}

/// Whether a final message says that the work is done: a sentence of it does, and does not deny it.
pub fn claims_done(claim: &str) -> bool {
    claim.split(['.', '!', '?', ';', '\n']).any(|sentence| {
        let words: Vec<String> = sentence
            .split(|c: char| c.is_whitespace() || matches!(c, ',' | ':' | '(' | ')' | '"' | '`' | '*'))
            .map(str::to_lowercase)
            .collect();
        let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
        let is_denied = has(&NOT) || words.iter().any(|word| word.ends_with("n't") || word.ends_with("n’t"));
        has(&DONE) && !is_denied
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_sentence_that_says_done_is_a_claim() {
        for (said, expected) in [
            ("Done.", true),
            ("Done: counted.", true),
            ("I wrote a.\nAll tests pass now.", true),
            ("Story is **complete** ✅", true),
            ("breaking", false),
            ("", false),
            ("create a", false),
            ("Not done yet.", false),
            ("The tests don't pass.", false),
            ("I could not get it working; the build is broken", false),
            ("I will be done when the tests are written, but this failed", false),
        ] {
            assert_eq!(claims_done(said), expected, "{said}");
        }
    }

    #[test]
    fn a_claim_is_the_harmless_end_of_what_was_said() {
        assert_eq!(claim_of("  \n "), None);
        assert_eq!(claim_of("All done.\n").as_deref(), Some("All done."));
        let long = claim_of(&format!("{}\x1b[2Jthe end", "é".repeat(5_000))).unwrap();
        assert!(long.starts_with("… é") && long.ends_with("the end") && !long.contains('\x1b'), "{long}");
        assert!(long.chars().count() <= LONGEST_CLAIM + 2);
    }
}
