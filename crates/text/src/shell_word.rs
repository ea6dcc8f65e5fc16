//! Text as one word of a shell, for commands that people copy from a message.

/// The text as it is if a shell leaves it alone, otherwise in single quotes.
pub fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':' | '@' | '+' | ',');
    if !text.is_empty() && text.chars().all(is_plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_shell_would_read_otherwise_is_quoted() {
        for (text, expected) in
            [("docs/PLAN.md", "docs/PLAN.md"), ("my plan.md", "'my plan.md'"), ("it's", r"'it'\''s'"), ("", "''")]
        {
            assert_eq!(shell_word(text), expected);
        }
    }
}
