//! The paths that a story claims as its own: `Scope: src/api/, docs/*.md`. Read from the plan and compared with changed files.
//!
//! A scope is relative to the project, stays below it, and covers everything under its paths. Prose after `Scope:` is not a scope: a
//! story must not be restricted to paths that its author did not mean.

use verdone_text::pattern::{self, PathPatterns, PatternError, is_plain, split_list};

/// A scope of one story does not have more paths.
const MOST: usize = 200;
const LONGEST: usize = 500;

/// The content of the text after `Scope:`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParsedScope {
    /// Normalised, without leading or trailing slashes; `.` means everything.
    pub paths: Vec<String>,
    /// Parts that are not valid paths of the project, with the reason.
    pub faults: Vec<ScopeFault>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScopeFault {
    #[error("this scope contains no path, so it has no effect: {0:?}")]
    Prose(String),
    #[error("this scope is outside the project, so it is ignored: {0:?}")]
    Outside(String),
    #[error("this scope is not a path, so it is ignored: {0:?}")]
    NoPath(String),
    #[error("this scope is ignored: {0}")]
    Pattern(PatternError),
    #[error("this scope has more than {MOST} paths; the rest are ignored")]
    TooMany,
}

impl ScopeFault {
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Prose(_) => "put its paths in backticks, or end folders with a slash",
            Self::Outside(_) | Self::NoPath(_) => "use paths inside the project, such as `src/api/` or `docs/*.md`",
            Self::Pattern(error) => error.hint,
            Self::TooMany => "name folders instead of files",
        }
    }
}

/// Reads a line of text. Only text in backticks counts, if there is any; otherwise all words, if they look like paths.
pub fn read(text: &str, spans: &[&str]) -> ParsedScope {
    let text = text.trim().trim_end_matches(['.', ';']).trim_end();
    if !spans.is_empty() {
        return list(spans.iter().flat_map(|span| split_list(span, &[','])));
    }
    if is_nothing(text) {
        return ParsedScope::default();
    }
    let parts: Vec<&str> = split_list(text, &[',', ';']).into_iter().map(str::trim).filter(|part| !part.is_empty()).collect();
    let words: Vec<&str> = split_list(text, &[',', ';', ' ', '\t']).into_iter().filter(|word| !word.is_empty()).collect();
    // A list separated by commas may contain plain names besides paths; a sentence may not.
    let is_list = parts.len() == words.len() && words.iter().any(|word| looks_like_path(word));
    if is_list || words.iter().all(|word| looks_like_path(word)) {
        return list(words.into_iter());
    }
    ParsedScope { paths: Vec::new(), faults: vec![ScopeFault::Prose(cut(text))] }
}

/// Reads paths that are given as a list.
pub fn list<'a>(given: impl Iterator<Item = &'a str>) -> ParsedScope {
    let mut named = ParsedScope::default();
    for path in given.map(str::trim).filter(|path| !path.is_empty()) {
        if named.paths.len() == MOST {
            named.faults.push(ScopeFault::TooMany);
            break;
        }
        match normalise(path) {
            Ok(path) if named.paths.contains(&path) => {}
            Ok(path) => named.paths.push(path),
            Err(fault) => named.faults.push(fault),
        }
    }
    named
}

/// A compiled scope. Each of its paths covers everything below it.
#[derive(Debug)]
pub struct ScopeMatcher {
    everything: bool,
    named: PathPatterns,
    /// Matches everything below folders that are given as patterns.
    below: PathPatterns,
}

impl ScopeMatcher {
    pub fn new(scope: &[String], ignore_case: bool) -> Result<Self, PatternError> {
        let given = || scope.iter().map(|path| path.trim_start_matches("./").trim_end_matches('/'));
        let below: Vec<String> = given().filter(|path| !is_plain(path)).map(|path| format!("{path}/**")).collect();
        Ok(Self {
            everything: given().any(|path| matches!(path, "" | "." | "**")),
            named: PathPatterns::new(given(), ignore_case)?,
            below: PathPatterns::new(below.iter().map(String::as_str), ignore_case)?,
        })
    }

    pub fn has(&self, path: &str) -> bool {
        self.everything || self.named.matches(path) || self.named.has_above(path) || self.below.matches(path)
    }
}

/// The scope relative to the top of the tree. `folder` is the project's path below the top; empty if it is the top.
pub fn below(scope: &[String], folder: &str) -> Vec<String> {
    let folder = folder.trim_matches('/');
    let place = |path: &String| match (folder, path.as_str()) {
        ("", path) => path.to_owned(),
        (folder, ".") => folder.to_owned(),
        (folder, path) => format!("{folder}/{path}"),
    };
    scope.iter().map(place).collect()
}

fn normalise(path: &str) -> Result<String, ScopeFault> {
    if path.len() > LONGEST || path.contains(char::is_control) {
        return Err(ScopeFault::NoPath(cut(path)));
    }
    if path.starts_with(['/', '~']) || path.contains(":\\") || path.contains("://") {
        return Err(ScopeFault::Outside(cut(path)));
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            ".." if parts.pop().is_none() => return Err(ScopeFault::Outside(cut(path))),
            "" | "." | ".." => {}
            name => parts.push(name),
        }
    }
    let path = if parts.is_empty() { ".".to_owned() } else { parts.join("/") };
    pattern::check(&path).map_err(ScopeFault::Pattern)?;
    Ok(path)
}

fn looks_like_path(word: &str) -> bool {
    word.contains(['/', '*']) || (word.contains('.') && !word.ends_with('.') && !word.ends_with("..."))
}

fn is_nothing(text: &str) -> bool {
    matches!(text.to_ascii_lowercase().as_str(), "" | "none" | "n/a" | "any" | "all" | "everything" | "-" | "–" | "—")
}

fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(80)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str, spans: &[&str]) -> Vec<String> {
        read(text, spans).paths
    }

    #[test]
    fn paths_are_told_from_prose() {
        let table: [(&str, &[&str]); 15] = [
            ("src/api/", &["src/api"]),
            ("src/api, docs/*.md", &["src/api", "docs/*.md"]),
            ("src/api docs/*.md README.md", &["src/api", "docs/*.md", "README.md"]),
            ("src, tests, docs/a.md", &["src", "tests", "docs/a.md"]),
            ("src/{a,b}/*.rs, docs/", &["src/{a,b}/*.rs", "docs"]),
            ("./src//x/../y/", &["src/y"]),
            ("src/a.rs.", &["src/a.rs"]),
            ("./", &["."]),
            ("src", &[]),
            ("backend only", &[]),
            ("small", &[]),
            ("only src/api, nothing else", &[]),
            ("none", &[]),
            ("", &[]),
            ("see the notes.", &[]),
        ];
        for (text, expected) in table {
            assert_eq!(paths(text, &[]), expected, "{text:?}");
        }
        assert_eq!(paths("`src` and `my docs/a.md` (no more)", &["src", "my docs/a.md"]), ["src", "my docs/a.md"]);
        assert_eq!(read("none", &[]).faults, []);
        assert_eq!(read("backend only", &[]).faults, [ScopeFault::Prose("backend only".to_owned())]);
    }

    #[test]
    fn what_leaves_the_project_is_a_fault_and_does_not_count() {
        for path in ["/etc", "~/x", "../x", "a/../../b", "c:\\x/y", "https://x/y"] {
            let named = read("", &[path]);
            assert_eq!((named.paths.len(), named.faults.len()), (0, 1), "{path}");
            assert!(matches!(named.faults[0], ScopeFault::Outside(_)), "{path}");
        }
        assert!(matches!(read("", &["src/[ab"]).faults[..], [ScopeFault::Pattern(_)]));
        assert!(matches!(read("", &["a\0b/c"]).faults[..], [ScopeFault::NoPath(_)]));
        let long = "x".repeat(10_000);
        assert!(matches!(read("", &[long.as_str()]).faults[..], [ScopeFault::NoPath(_)]));
        let many: Vec<String> = (0..500).map(|n| format!("d/{n}")).collect();
        let named = list(many.iter().map(String::as_str));
        assert_eq!((named.paths.len(), named.faults), (MOST, vec![ScopeFault::TooMany]));
    }

    #[test]
    fn a_scope_covers_what_lies_under_it() {
        let scope: Vec<String> =
            ["src/api", "docs/*.md", "packages/*/src", "a.rs", "{web,app}/**/*.ts", "app/[id]/x"].map(str::to_owned).to_vec();
        let covers = |scope: &[String], path: &str, ignore_case: bool| ScopeMatcher::new(scope, ignore_case).unwrap().has(path);
        for (path, inside) in [
            ("src/api", true),
            ("src/api/a/b.rs", true),
            ("src/apix/a.rs", false),
            ("docs/a.md", true),
            ("docs/sub/a.md", false),
            ("packages/one/src/deep/x.ts", true),
            ("packages/one/test/x.ts", false),
            ("a.rs", true),
            ("A.rs", false),
            ("web/a/b.ts", true),
            ("app/b.ts", true),
            ("api/b.ts", false),
            ("app/[id]/x", true),
            ("app/[id]/x/y", true),
        ] {
            assert_eq!(covers(&scope, path, false), inside, "{path}");
        }
        assert!(covers(&scope, "SRC/API/x", true));
        assert!(covers(&[".".to_owned()], "any/thing", false));
        assert_eq!(below(&scope[..1], "web/"), ["web/src/api"]);
        assert_eq!(below(&[".".to_owned()], "web"), ["web"]);
        assert_eq!(below(&scope[..1], ""), ["src/api"]);
    }
}
