//! Sentence case.

/// Capitalises the first letter of text that may also be used inside a sentence. A path, an id or a command at the beginning keeps
/// its spelling.
pub fn capitalise(text: &str) -> String {
    if text.split_whitespace().next().is_some_and(is_name) {
        return text.to_owned();
    }
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn is_name(word: &str) -> bool {
    let word = word.trim_end_matches(['.', ',', ':', ';', '!', '?']);
    let is_prose = |c: char| c.is_alphabetic() || matches!(c, '-' | '\'' | '’');
    !word.chars().all(is_prose) || word.chars().skip(1).any(char::is_uppercase)
}

#[cfg(test)]
mod tests {
    use super::capitalise;

    #[test]
    fn names_at_the_beginning_stay_as_they_are() {
        for (text, expected) in [
            ("no file was changed", "No file was changed"),
            ("agent-tested: it fails without the work", "Agent-tested: it fails without the work"),
            ("failed.", "Failed."),
            ("changed: a", "Changed: a"),
            ("src/a.rs is too large", "src/a.rs is too large"),
            ("plan.md has changes", "plan.md has changes"),
            ("us-001 needs a review", "us-001 needs a review"),
            ("eslintConfig differs", "eslintConfig differs"),
            ("`test` failed", "`test` failed"),
            ("a_b: failed", "a_b: failed"),
            ("été", "Été"),
            ("", ""),
        ] {
            assert_eq!(capitalise(text), expected);
        }
    }
}
