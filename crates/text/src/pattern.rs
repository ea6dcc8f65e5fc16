//! Patterns of paths and names, based on `globset`: `*` and `?` stay within a name, `**` crosses folders, `[a-z]` and `{a,b}` are
//! alternatives.
//!
//! Every tool call starts a hook process, so patterns are compiled only when needed, and plain text never is. `?` and `[…]` match
//! one byte. A path that is spelled exactly like its pattern always matches (`app/[id]/page.tsx`).

use globset::{ErrorKind, Glob, GlobBuilder, GlobSet};

/// Path patterns, compiled together. Paths are relative or absolute like their patterns, without a leading `./`.
#[derive(Debug, Clone, Default)]
pub struct PathPatterns {
    /// As written; in lower case if case does not matter.
    spelled: Vec<String>,
    globs: GlobSet,
    /// For each glob, its index in `spelled`.
    places: Vec<usize>,
    ignore_case: bool,
}

/// An invalid pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{pattern:?} is not a valid pattern: {why}")]
pub struct PatternError {
    pub pattern: String,
    pub why: String,
    pub hint: &'static str,
}

impl PathPatterns {
    pub fn new<'a>(patterns: impl IntoIterator<Item = &'a str>, ignore_case: bool) -> Result<Self, PatternError> {
        let (mut spelled, mut globs, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for pattern in patterns.into_iter().map(without_dot) {
            let text = fold(pattern, ignore_case);
            if !is_plain(pattern) {
                // A range such as `[Z-a]` has no lower-case form.
                globs.push(parse(&text, true).or_else(|_| parse(pattern, true))?);
                places.push(spelled.len());
            }
            spelled.push(text);
        }
        let globs = GlobSet::new(&globs).map_err(|error| PatternError::new(&spelled.join(", "), &error))?;
        Ok(Self { spelled, globs, places, ignore_case })
    }

    pub fn matches(&self, path: &str) -> bool {
        let path = fold(path, self.ignore_case);
        self.spelled.contains(&path) || self.globs.is_match(path.as_str())
    }

    /// The index of the first pattern that matches, in the given order.
    pub fn first(&self, path: &str) -> Option<usize> {
        let path = fold(path, self.ignore_case);
        let exact = self.spelled.iter().position(|pattern| *pattern == path);
        let glob = self.globs.matches(path.as_str()).into_iter().map(|n| self.places[n]).min();
        exact.into_iter().chain(glob).min()
    }

    /// Whether a path is below a folder that a pattern spells out.
    pub fn has_above(&self, path: &str) -> bool {
        let path = fold(path, self.ignore_case);
        self.spelled.iter().any(|folder| path.strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/')))
    }
}

/// Checks that a path pattern is valid.
pub fn check(pattern: &str) -> Result<(), PatternError> {
    if is_plain(pattern) {
        return Ok(());
    }
    if has_wide_class(pattern) {
        let why = "`[…]` takes ASCII characters only".to_owned();
        return Err(PatternError { pattern: pattern.to_owned(), why, hint: "write the characters as `{ä,ö}`" });
    }
    parse(without_dot(pattern), true).map(|_| ())
}

/// Whether the name of a tool or an agent matches: `mcp__*`. Names have no folders.
pub fn name_matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) if is_plain(start) => name.starts_with(start),
        None if is_plain(pattern) => pattern == name,
        // `check_name` rejects invalid patterns in settings. Elsewhere, treat them as plain names.
        Some(_) | None => parse(pattern, false).map_or(pattern == name, |glob| glob.compile_matcher().is_match(name)),
    }
}

/// Checks that a name pattern is valid.
pub fn check_name(pattern: &str) -> Result<(), PatternError> {
    if is_plain(pattern) { Ok(()) } else { parse(pattern, false).map(|_| ()) }
}

/// A pattern that matches only this text.
pub fn escape(text: &str) -> String {
    escape_but(text, &[])
}

/// The same, but leaves these special characters alone.
pub fn escape_but(text: &str, signs: &[char]) -> String {
    let escaped = |c: char| SIGNS.contains(&c) && !signs.contains(&c);
    text.chars().flat_map(|c| escaped(c).then_some('\\').into_iter().chain([c])).collect()
}

/// Whether a text has no special characters.
pub fn is_plain(text: &str) -> bool {
    !text.contains(SIGNS)
}

/// Splits a list at commas and these separators, but not inside `{a,b}`.
pub fn split_list<'a>(text: &'a str, separators: &[char]) -> Vec<&'a str> {
    let mut depth = 0_usize;
    let ends = |c: char| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        separators.contains(&c) && (depth == 0 || c != ',')
    };
    text.split(ends).collect()
}

const SIGNS: [char; 7] = ['*', '?', '[', ']', '{', '}', '\\'];

fn parse(pattern: &str, of_path: bool) -> Result<Glob, PatternError> {
    let mut builder = GlobBuilder::new(pattern);
    builder.literal_separator(of_path).backslash_escape(true).empty_alternates(true);
    builder.build().map_err(|error| PatternError::new(pattern, &error))
}

impl PatternError {
    fn new(pattern: &str, error: &globset::Error) -> Self {
        let (why, hint) = match error.kind() {
            ErrorKind::UnclosedClass => {
                ("`[` is not closed".to_owned(), "close it with `]`, or write `\\[` for the bracket itself")
            }
            ErrorKind::UnclosedAlternates => {
                ("`{` is not closed".to_owned(), "close it with `}`, or write `\\{` for the brace itself")
            }
            ErrorKind::UnopenedAlternates => {
                ("`}` without a `{` before it".to_owned(), "open it with `{`, or write `\\}` for the brace itself")
            }
            ErrorKind::InvalidRange(from, to) => {
                (format!("the range `{from}-{to}` runs backwards"), "swap its ends, or write `\\[` for the bracket itself")
            }
            ErrorKind::DanglingEscape => ("it ends with a backslash".to_owned(), "write `\\\\` for the backslash itself"),
            other => (other.to_string(), "write a shorter pattern"),
        };
        Self { pattern: pattern.to_owned(), why, hint }
    }
}

/// `globset` would match the bytes of such a character one by one.
fn has_wide_class(pattern: &str) -> bool {
    let mut in_class = false;
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => _ = chars.next(),
            '[' => in_class = true,
            ']' => in_class = false,
            c if in_class && !c.is_ascii() => return true,
            _ => {}
        }
    }
    false
}

fn without_dot(mut pattern: &str) -> &str {
    while let Some(rest) = pattern.strip_prefix("./") {
        pattern = rest.trim_start_matches('/');
    }
    pattern
}

fn fold(text: &str, ignore_case: bool) -> String {
    if ignore_case { text.to_lowercase() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_paths_match_as_documented() {
        let table = [
            ("**/*.{pem,key}", "a/b.pem", true),
            ("**/*.{pem,key}", "b.key", true),
            ("**/*.{pem,key}", "a/b.crt", false),
            ("*.pem", "a.pem", true),
            ("*.pem", "a/b.pem", false),
            ("./src/*.rs", "src/a.rs", true),
            ("src/?.rs", "src/a.rs", true),
            ("src/?.rs", "src/ab.rs", false),
            ("a?b", "a/b", false),
            ("v[0-9].txt", "v7.txt", true),
            ("v[!0-9].txt", "v7.txt", false),
            ("a{,.b}", "a", true),
            ("a{,.b}", "a.b", true),
            ("a/{b,c/**}/d", "a/c/x/y/d", true),
            ("**/x", "x", true),
            ("**/x", "a/b/x", true),
            ("**/x", "ax", false),
            ("a/**/x", "a/x", true),
            ("a/**/x", "ab/x", false),
            ("a/**", "a/b/c", true),
            ("a/**", "a", false),
            ("**/.env*", ".env.local", true),
            ("a\\*b", "a*b", true),
            ("a\\*b", "axb", false),
            ("app/[id]/page.tsx", "app/[id]/page.tsx", true),
            ("app/[id]/page.tsx", "app/i/page.tsx", true),
            ("A.rs", "a.rs", false),
            ("ä/*", "ä/ö", true),
        ];
        for (pattern, path, expected) in table {
            assert_eq!(check(pattern), Ok(()), "{pattern}");
            let patterns = PathPatterns::new([pattern], false).unwrap();
            assert_eq!(patterns.matches(path), expected, "{pattern} {path}");
        }
        let many = PathPatterns::new(["SRC/**", "Ä.md", "[A-C].rs", "[Z-a]"], true).unwrap();
        for (path, expected) in
            [("src/x", true), ("Src/x", true), ("ä.md", true), ("B.rs", true), ("b.rs", true), ("d.rs", false)]
        {
            assert_eq!(many.matches(path), expected, "{path}");
        }
        assert!(!PathPatterns::new([], false).unwrap().matches(""));
    }

    #[test]
    fn a_pattern_that_cannot_be_read_says_why() {
        for (pattern, why) in [
            ("a[b", "`[` is not closed"),
            ("a{b,c", "`{` is not closed"),
            ("a}", "`}` without a `{` before it"),
            ("[z-a]", "the range `z-a` runs backwards"),
            ("a\\", "it ends with a backslash"),
            ("[ä]", "`[…]` takes ASCII characters only"),
        ] {
            let error = check(pattern).unwrap_err();
            assert_eq!((error.why.as_str(), error.pattern.as_str()), (why, pattern));
            assert!(!error.hint.is_empty());
        }
    }

    #[test]
    fn names_have_no_folders() {
        for (pattern, name, expected) in [
            ("mcp__*", "mcp__a/b", true),
            ("*", "anything", true),
            ("{Edit,Write}", "Write", true),
            ("mcp__*__read", "mcp__x__read", true),
            ("mcp__*__read", "mcp__x__write", false),
            ("Edit", "MultiEdit", false),
            ("a*c", "abbc", true),
            ("*-é-*", "x-é-y", true),
        ] {
            assert_eq!(name_matches(pattern, name), expected, "{pattern} {name}");
        }
        assert!(check_name("{Edit").is_err());
    }

    #[test]
    fn an_escaped_text_matches_only_itself() {
        let odd = "a*b?c[d]{e,f}\\g";
        let patterns = PathPatterns::new([format!("{}/*", escape(odd)).as_str()], false).unwrap();
        assert!(patterns.matches(&format!("{odd}/x")) && !patterns.matches("axb?c[d]{e,f}\\g/x"));
        assert_eq!(escape_but("a*[b]", &['*']), "a*\\[b\\]");
    }

    #[test]
    fn a_list_is_split_outside_of_braces() {
        assert_eq!(split_list("src/{a,b}/x,y", &[',']), ["src/{a,b}/x", "y"]);
        assert_eq!(split_list("a b,{c", &[',', ' ']), ["a", "b", "{c"]);
    }

    #[test]
    fn a_path_of_many_folders_is_no_trouble() {
        let path = format!("{}/x", vec!["a"; 20_000].join("/"));
        let fits = |pattern: &str| PathPatterns::new([pattern], false).unwrap().matches(&path);
        assert!(fits("**/a/**/x") && !fits("**/b/**/x"));
    }
}
