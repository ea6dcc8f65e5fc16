//! How complex a story is, on a scale from 1 to 10, told from its text.

/// What does not say how complex it is counts as rather complex.
const UNKNOWN: u32 = 7;
const SCALE: std::ops::RangeInclusive<u32> = 1..=10;

/// `Complexity: high`, `**Complexity:** 4/10`, `"complexity": 8`: the first line that says it.
pub fn complexity_of(text: &str) -> u32 {
    text.lines().find_map(said).unwrap_or(UNKNOWN)
}

fn said(line: &str) -> Option<u32> {
    const SIGNS: [char; 7] = ['*', '_', '-', '#', '>', '"', '`'];
    let line = line.trim_start_matches(|c: char| c.is_whitespace() || SIGNS.contains(&c));
    let label = line.get(.."complexity".len()).filter(|label| label.eq_ignore_ascii_case("complexity"))?;
    let value = line[label.len()..].trim_start_matches(|c: char| c.is_whitespace() || SIGNS.contains(&c));
    let value = value.strip_prefix([':', '='])?.trim_start_matches(|c: char| c.is_whitespace() || SIGNS.contains(&c));
    let word: String = value.chars().take_while(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    match word.as_str() {
        "low" => Some(3),
        "medium" => Some(5),
        "high" => Some(8),
        number => number.parse().ok().filter(|number| SCALE.contains(number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_story_says_how_complex_it_is_in_words_or_numbers() {
        for (text, complexity) in [
            ("- Complexity: low", 3),
            ("Text.\n  * **Complexity:** Medium\n", 5),
            ("#### Complexity: HIGH (because)", 8),
            ("\"complexity\": 2,", 2),
            ("Complexity: 10/10", 10),
            ("Complexity: 11", 7),
            ("Complexity: 0", 7),
            ("Complexity: none\nComplexity: 4", 4),
            ("The complexity of this is low", 7),
            ("Complexité: low", 7),
            ("", 7),
        ] {
            assert_eq!(complexity_of(text), complexity, "{text}");
        }
    }
}
