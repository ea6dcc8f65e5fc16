//! Functions of a file of tests that assert, by what they do and not by their names: what a test calls of them is as good as an
//! assertion of its own.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::{Brackets, Text, indent_of, line_end, skip_blank};
use crate::source::Language;
use crate::tamper::assertions;
use crate::tamper::watched::is_test_path;

/// The names of those that assert, or call one that does.
pub(super) fn asserting(language: Language, text: &Text<'_>) -> BTreeSet<String> {
    let code = text.code.as_str();
    // What the product itself asserts is no test of it.
    let from = match language {
        _ if is_test_path(text.path) => Some(0),
        Language::Rust => code.find("#[cfg(test)]"),
        Language::JavaScript | Language::Python | Language::Go | Language::Ruby | Language::Shell => None,
    };
    let Some(from) = from else { return BTreeSet::new() };
    let brackets = Brackets::of(code);
    let mut names = BTreeSet::new();
    let mut open: Vec<(&str, BTreeSet<&str>)> = Vec::new();
    for found in definitions(language).captures_iter(&code[from..]) {
        let Some(name) = found.iter().skip(1).flatten().next().map(|name| name.as_str()) else { continue };
        let whole = found.get(0).map_or(0..0, |whole| from + whole.start()..from + whole.end());
        let body = body(language, text, &brackets, whole);
        if assertions::count(language, &code[body.clone()], &text.said[body.clone()]).0.real > 0 {
            names.insert(name);
        } else {
            open.push((name, calls(language, &code[body]).collect()));
        }
    }
    loop {
        let before = names.len();
        open.retain(|(name, called)| {
            let asserts = !called.is_disjoint(&names);
            if asserts {
                names.insert(name);
            }
            !asserts
        });
        if names.len() == before {
            return names.into_iter().map(str::to_owned).collect();
        }
    }
}

/// What is called in this code, in its order.
pub(super) fn calls(language: Language, code: &str) -> impl Iterator<Item = &str> {
    static CALLS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(\w+)(\s*\()?").expect("a fixed pattern compiles"));
    let bare = matches!(language, Language::Ruby | Language::Shell);
    let name =
        move |found: regex::Captures<'_>| (bare || found.get(2).is_some()).then(|| found.get(1).map(|name| name.range()))?;
    CALLS.captures_iter(code).filter_map(name).map(|range| &code[range])
}

fn definitions(language: Language) -> &'static Regex {
    fn regex(pattern: &str) -> Regex {
        Regex::new(pattern).expect("a fixed pattern compiles")
    }
    static RUST: LazyLock<Regex> = LazyLock::new(|| regex(r"\bfn\s+(\w+)"));
    static JAVASCRIPT: LazyLock<Regex> = LazyLock::new(|| {
        regex(r"\bfunction\s*\*?\s*(\w+)|\b(?:const|let)\s+(\w+)\s*=\s*(?:async\s*)?(?:function\b|(?:\([^()]*\)|\w+)\s*=>)")
    });
    static PYTHON: LazyLock<Regex> = LazyLock::new(|| regex(r"(?m)^[ \t]*(?:async[ \t]+)?def[ \t]+(\w+)"));
    static GO: LazyLock<Regex> = LazyLock::new(|| regex(r"\bfunc\s+(?:\([^()]*\)\s*)?(\w+)"));
    static RUBY: LazyLock<Regex> = LazyLock::new(|| regex(r"(?m)^[ \t]*def[ \t]+(?:self\.)?(\w+)"));
    static SHELL: LazyLock<Regex> = LazyLock::new(|| regex(r"(?m)^[ \t]*(?:function[ \t]+)?(\w+)[ \t]*\(\)"));
    match language {
        Language::Rust => &RUST,
        Language::JavaScript => &JAVASCRIPT,
        Language::Python => &PYTHON,
        Language::Go => &GO,
        Language::Ruby => &RUBY,
        Language::Shell => &SHELL,
    }
}

/// What belongs to the function whose header begins in `header`.
fn body(language: Language, text: &Text<'_>, brackets: &Brackets, header: Range<usize>) -> Range<usize> {
    let code = text.code.as_str();
    match language {
        Language::Python | Language::Ruby => {
            let first = line_end(code, header.start);
            let indent = indent_of(&code[header.start..first]);
            let deeper = |line: &str| line.trim().is_empty() || indent_of(line) > indent;
            let length: usize = code[first..].split_inclusive('\n').take_while(|line| deeper(line)).map(str::len).sum();
            header.end..(first + length).max(header.end)
        }
        Language::Rust | Language::JavaScript | Language::Go | Language::Shell => {
            let mut open = skip_blank(code, header.end);
            // A body of one expression ends with its line.
            if code[..header.end].ends_with("=>") && !code[open..].starts_with('{') {
                return open..line_end(code, open).max(open);
            }
            while let Some(byte) = code.as_bytes().get(open).filter(|byte| !b"{;".contains(byte)) {
                open = if b"([".contains(byte) { brackets.closing(open).unwrap_or(open) + 1 } else { open + 1 };
            }
            let open = open.min(code.len());
            open..brackets.closing(open).unwrap_or(open)
        }
    }
}
