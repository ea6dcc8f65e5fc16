//! Text as one word of a shell, for commands that people copy from a message. Callers sanitise foreign text first.

/// The text itself if a shell reads it as that word, otherwise in single quotes.
pub fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':' | '@' | '+' | ',' | '#');
    // A word that begins with `#` is a comment.
    let is_word = !text.is_empty() && !text.starts_with('#') && text.chars().all(is_plain);
    if is_word { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// The same for the last argument of a command: one that begins with `-` must not be read as an option.
pub fn shell_argument(text: &str) -> String {
    let word = shell_word(text);
    if text.starts_with('-') { format!("-- {word}") } else { word }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_shell_would_read_otherwise_is_quoted() {
        for (text, expected) in [
            ("docs/PLAN.md", "docs/PLAN.md"),
            ("US-2", "US-2"),
            ("a#7", "a#7"),
            ("my plan.md", "'my plan.md'"),
            ("it's", r"'it'\''s'"),
            ("$(x)", "'$(x)'"),
            ("a;reboot", "'a;reboot'"),
            ("#12", "'#12'"),
            ("~root", "'~root'"),
            ("-A", "-A"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(text), expected);
        }
    }

    #[test]
    fn an_argument_is_never_an_option() {
        for (text, expected) in [("--all", "-- --all"), ("-a b", "-- '-a b'"), ("a-b", "a-b"), ("#12", "'#12'")] {
            assert_eq!(shell_argument(text), expected);
        }
    }
}
