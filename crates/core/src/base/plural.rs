//! Counts with their nouns, for messages.

/// `1 file`, `2 files`.
pub fn plural(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_is_singular() {
        let stories = |count| plural(count, "story", "stories");
        assert_eq!([stories(0), stories(1), stories(11)], ["0 stories", "1 story", "11 stories"]);
    }
}
