//! Rust tests that stand in the file of the code that they test. Such a file cannot be put on top of the tree from before: it would
//! bring the work along. So the old file gets the new module of tests, and only tests that the attempt added or changed are run, by name.
//!
//! A file is understood where its tests are in one module under `#[cfg(test)]`; anything else is left unproven.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::source::{Language, Source};

/// The tests of an attempt in one file, ready to be run without its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spliced {
    /// The old code with the new tests.
    pub text: String,
    /// Tests that are new or not what they were, as paths inside of the file.
    pub names: Vec<String>,
}

/// The old file with the tests of the new one. Nothing where no test is new, or where the parts cannot be told apart.
pub fn splice(old: &str, new: &str) -> Option<Spliced> {
    let (before, after) = (Parsed::of(old), Parsed::of(new));
    let [block] = after.blocks.as_slice() else { return None };
    let names = added(&before, &after);
    if names.is_empty() || after.tests.iter().any(|test| !block.contains(&test.whole.start)) {
        return None;
    }
    let module = &new[block.clone()];
    let text = match before.blocks.as_slice() {
        [] => format!("{}\n\n{module}\n", old.trim_end()),
        [old_block] => [&old[..old_block.start], module, &old[old_block.end..]].concat(),
        [..] => return None,
    };
    Some(Spliced { text, names })
}

/// The tests of a file that holds nothing else (`src/parser/tests.rs`) and that are new or not what they were.
pub fn changed_tests(old: &str, new: &str) -> Vec<String> {
    added(&Parsed::of(old), &Parsed::of(new))
}

fn added(before: &Parsed<'_>, after: &Parsed<'_>) -> Vec<String> {
    let known: BTreeSet<(&str, Vec<&str>)> =
        before.tests.iter().map(|test| (test.name.as_str(), test.words(before.text))).collect();
    let is_new = |test: &&Test| !known.contains(&(test.name.as_str(), test.words(after.text)));
    after.tests.iter().filter(is_new).map(|test| test.name.clone()).collect()
}

/// Words between an attribute and what it belongs to.
const QUALIFIERS: [&str; 7] = ["pub", "async", "const", "unsafe", "extern", "crate", "super"];

struct Test {
    /// With the modules around it.
    name: String,
    /// With its attributes.
    whole: Range<usize>,
}

impl Test {
    /// However it is formatted.
    fn words<'t>(&self, text: &'t str) -> Vec<&'t str> {
        text[self.whole.clone()].split_whitespace().collect()
    }
}

struct Parsed<'t> {
    text: &'t str,
    /// Modules under `#[cfg(test)]` at the outermost level, with their attributes.
    blocks: Vec<Range<usize>>,
    tests: Vec<Test>,
}

/// What a brace opened.
struct Open {
    module: Option<String>,
    /// Where the block or the test begins that ends with it.
    block: Option<usize>,
    test: Option<(String, usize)>,
}

impl<'t> Parsed<'t> {
    fn of(text: &'t str) -> Self {
        let code = Source::read(Language::Rust, text).code();
        let bytes = code.as_bytes();
        let mut parsed = Self { text, blocks: Vec::new(), tests: Vec::new() };
        if code.len() != text.len() {
            return parsed;
        }
        let mut open: Vec<Open> = Vec::new();
        let mut next = Open { module: None, block: None, test: None };
        // Attributes of the item that comes: where the first one begins, and what they say.
        let (mut start, mut is_test, mut under_test) = (None, false, false);
        let mut at = 0;
        while at < bytes.len() {
            match bytes[at] {
                b'#' if bytes.get(at + 1) == Some(&b'[') => {
                    let Some(end) = closing(bytes, at + 1) else { break };
                    let said: String = code[at + 2..end].split_whitespace().collect();
                    start.get_or_insert(at);
                    is_test |= is_test_attribute(&said);
                    under_test |= said == "cfg(test)";
                    at = end + 1;
                }
                b'{' => {
                    open.push(std::mem::replace(&mut next, Open { module: None, block: None, test: None }));
                    (start, is_test, under_test) = (None, false, false);
                    at += 1;
                }
                b'}' => {
                    if let Some(Open { block, test, .. }) = open.pop() {
                        parsed.blocks.extend(block.map(|start| start..at + 1));
                        parsed.tests.extend(test.map(|(name, start)| Test { name, whole: start..at + 1 }));
                    }
                    at += 1;
                }
                b';' => {
                    next = Open { module: None, block: None, test: None };
                    (start, is_test, under_test) = (None, false, false);
                    at += 1;
                }
                byte if is_word(byte) => {
                    let word = word_at(&code, at);
                    let name = word_at(&code, skip_blank(bytes, at + word.len()));
                    match word {
                        "mod" if !name.is_empty() => {
                            next.module = Some(name.to_owned());
                            next.block = start.filter(|_| under_test && open.is_empty());
                        }
                        "fn" if is_test && !name.is_empty() => {
                            let modules = open.iter().filter_map(|open| open.module.as_deref());
                            let full = modules.chain([name]).collect::<Vec<_>>().join("::");
                            next.test = Some((full, start.unwrap_or(at)));
                        }
                        _ => {}
                    }
                    if !QUALIFIERS.contains(&word) {
                        (start, is_test, under_test) = (None, false, false);
                    }
                    at += word.len().max(1);
                }
                _ => at += 1,
            }
        }
        parsed
    }
}

/// `test`, `tokio::test`, `tokio::test(flavor = "...")`.
fn is_test_attribute(said: &str) -> bool {
    let path = said.split('(').next().unwrap_or(said);
    path.rsplit("::").next() == Some("test")
}

fn closing(bytes: &[u8], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in bytes.iter().enumerate().skip(open) {
        match byte {
            b'[' => depth += 1,
            b']' if depth <= 1 => return Some(at),
            b']' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn word_at(code: &str, at: usize) -> &str {
    let end = code.bytes().skip(at).take_while(|byte| is_word(*byte)).count();
    code.get(at..at + end).unwrap_or_default()
}

fn skip_blank(bytes: &[u8], at: usize) -> usize {
    at + bytes.iter().skip(at).take_while(|byte| byte.is_ascii_whitespace()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "fn old() {}\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn one() { old(); }\n}\n";

    #[test]
    fn the_old_code_gets_the_new_tests_and_only_new_ones_are_named() {
        let new = "fn old() {}\npub fn new() -> u8 { b'}' }\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn one() {\n        old();\n    }\n\n    \
                   mod inner {\n        #[tokio::test(flavor = \"x\")]\n        async fn two() { assert_eq!(super::super::new(), 1, \"}\"); }\n    }\n}\n";
        let spliced = splice(OLD, new).unwrap();
        assert_eq!(spliced.names, ["tests::inner::two"], "one was only formatted");
        assert!(spliced.text.starts_with("fn old() {}\n\n#[cfg(test)]\nmod tests {") && spliced.text.contains("fn two()"));
        assert!(!spliced.text.contains("pub fn new()"), "{}", spliced.text);
        let first = splice("fn old() {}\n", new).unwrap();
        assert_eq!(first.names, ["tests::one", "tests::inner::two"]);
        assert!(first.text.starts_with("fn old() {}\n\n#[cfg(test)]\nmod tests {") && !first.text.contains("pub fn new()"));
    }

    #[test]
    fn what_cannot_be_told_apart_is_left_alone() {
        let block = "#[cfg(test)]\nmod tests { #[test] fn a() {} }\n";
        for (old, new) in [
            (OLD, OLD.to_owned()),
            ("", "fn f() {}\n".to_owned()),
            ("", "#[test]\nfn a() {}\n".to_owned()),
            ("", [block, "#[test]\nfn b() {}\n"].concat()),
            ("", [block, &block.replace("tests", "more")].concat()),
            ("", "#[cfg(test)]\nmod tests;\n".to_owned()),
            ("", "// #[cfg(test)] mod tests { #[test] fn a() {} }\n".to_owned()),
            ("", "#[cfg(test)]\nmod tests { fn helper() {} }\n".to_owned()),
        ] {
            assert_eq!(splice(old, &new), None, "{new}");
        }
        for broken in
            ["#[", "#[cfg(test)] mod", "}}}{{{", "mod \u{e9} { #[test] fn \u{e9}() {} ", "#[test] fn a() {", "fn", "'", "r#\""]
        {
            splice(broken, broken);
            splice("", broken);
        }
    }

    #[test]
    fn a_file_of_tests_alone_names_what_changed() {
        let old = "use super::*;\n#[test]\nfn a() { x(); }\n#[test]\nfn b() {}\n";
        assert_eq!(changed_tests(old, &old.replace("x()", "y()")), ["a"]);
        assert_eq!(changed_tests("", old), ["a", "b"]);
    }
}
