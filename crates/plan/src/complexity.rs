//! How complex a story is, from 1 to 10.

/// The highest complexity of a task, and the complexity assumed if it is unknown: careful by default.
pub const MOST_COMPLEX: u8 = 10;

/// Reads a complexity as written in a plan or by a person: a number from 1 to 10, or a word.
pub fn read_complexity(text: &str) -> Option<u8> {
    let first = text.trim().split([' ', '\t', '(', '/', ',', ';']).next().unwrap_or_default();
    let first = first.trim_matches(['*', '_', '`', '.', ':']);
    match first.to_ascii_lowercase().as_str() {
        "trivial" => Some(1),
        "low" | "small" | "simple" => Some(3),
        "medium" | "moderate" => Some(5),
        "high" | "large" | "complex" => Some(8),
        digits => digits.parse().ok().filter(|number| (1..=MOST_COMPLEX).contains(number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complexity_is_a_number_or_a_word() {
        for (text, expected) in [
            ("low", Some(3)),
            ("Medium", Some(5)),
            ("**high** (two services)", Some(8)),
            ("7", Some(7)),
            ("10/10", Some(10)),
            ("11", None),
            ("0", None),
            ("-3", None),
            ("", None),
            ("who knows", None),
            ("99999999999999", None),
        ] {
            assert_eq!(read_complexity(text), expected, "{text:?}");
        }
    }
}
