//! What kind of change a story is, in the words of conventional commits.

/// The kinds that `Kind:` and a title's prefix can name.
pub const KINDS: [&str; 11] = ["feat", "fix", "docs", "refactor", "test", "perf", "chore", "build", "ci", "style", "revert"];

/// The kind that a word names; a few common words mean one of the kinds.
pub fn read_kind(text: &str) -> Option<&'static str> {
    let word = text.trim_matches(['`', '*', '_', ' ', '.']).to_ascii_lowercase();
    let meant = match word.as_str() {
        "feature" => "feat",
        "bug" | "bugfix" => "fix",
        "doc" | "documentation" => "docs",
        "tests" => "test",
        "performance" => "perf",
        other => other,
    };
    KINDS.into_iter().find(|kind| *kind == meant)
}

/// A title that begins with a kind, such as `fix: a crash` or `docs(api): examples`: the kind, and the rest.
pub fn split_kind(title: &str) -> Option<(&'static str, &str)> {
    let (before, rest) = title.split_once(':')?;
    let word = before.split('(').next().unwrap_or_default().trim_end_matches('!');
    let is_exact = KINDS.contains(&word) && (before.len() == word.len() || before.ends_with([')', '!']));
    if is_exact && !rest.trim().is_empty() { Some((read_kind(word)?, rest.trim())) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_names_its_kind_only_by_a_known_prefix() {
        for (title, expected) in [
            ("fix: a crash", Some(("fix", "a crash"))),
            ("docs(api): examples", Some(("docs", "examples"))),
            ("feat!: drop it", Some(("feat", "drop it"))),
            ("Fix: a crash", None),
            ("fix a crash: now", None),
            ("note: this", None),
            ("fix:", None),
        ] {
            assert_eq!(split_kind(title), expected, "{title}");
        }
        assert_eq!((read_kind("Bug"), read_kind("`docs`"), read_kind("whatever")), (Some("fix"), Some("docs"), None));
    }
}
