//! What a test's body says about itself, whatever the language: its tokens, and ways to run without testing.

use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hasher as _};
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::Marker;
use crate::source::{Language, Part, Source};
use crate::tamper::assertions::Asserted;

/// Names, numbers, signs and strings as hashes, in their order. What formatters add or turn is left out: blanks, comments, commas,
/// semicolons, the kind of quotes.
pub(in crate::tamper) fn tokens_of(source: &Source<'_>, range: Range<usize>) -> Vec<u64> {
    let bytes = source.text().as_bytes();
    let end = range.end.min(bytes.len());
    let mut tokens = Vec::new();
    let mut at = range.start;
    while at < end {
        let from = at;
        let part = source.part(at);
        match part {
            Part::Comment => at += 1,
            Part::Text => {
                while at < end && source.part(at) == Part::Text {
                    at += 1;
                }
                let inner = bytes[from..at].trim_ascii();
                let inner: &[u8] = if inner.len() >= 2 { &inner[1..inner.len() - 1] } else { inner };
                tokens.push(hash_of(&inner));
            }
            Part::Code if is_word(bytes[at]) => {
                while at < end && is_word(bytes[at]) && source.part(at) == Part::Code {
                    at += 1;
                }
                tokens.push(hash_of(&&bytes[from..at]));
            }
            Part::Code => {
                if !bytes[at].is_ascii_whitespace() && !b",;".contains(&bytes[at]) {
                    tokens.push(u64::from(bytes[at]));
                }
                at += 1;
            }
        }
    }
    tokens
}

/// What an assertion says, whatever it is written with: without brackets, which formatters add, and without the words and signs by
/// which frameworks ask for the same thing.
pub(super) fn said_by(tokens: &[u64]) -> Vec<u64> {
    static SAME: LazyLock<HashSet<u64>> = LazyLock::new(|| {
        let words = [
            "expect",
            "assert",
            "assert_eq",
            "assert_equal",
            "assertEqual",
            "assertEquals",
            "toBe",
            "toEqual",
            "toStrictEqual",
            "equal",
            "Equal",
            "equals",
            "strictEqual",
            "deepEqual",
            "deepStrictEqual",
            "eq",
            "eql",
            "to",
            "be",
            "is",
            "self",
            "t",
        ];
        words.iter().map(|word| hash_of(&word.as_bytes())).collect()
    });
    let equals = |at: usize| tokens.get(at) == Some(&u64::from(b'='));
    let doubled = |at: usize| equals(at) && (equals(at + 1) || at > 0 && equals(at - 1));
    let sign = |token: u64| b"().".iter().any(|sign| u64::from(*sign) == token);
    let says = |(at, token): &(usize, &u64)| !(sign(**token) || doubled(*at) || SAME.contains(*token));
    tokens.iter().enumerate().filter(says).map(|(_, token)| *token).collect()
}

pub(in crate::tamper) fn hash_of<T: std::hash::Hash + ?Sized>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a fixed pattern compiles")
}

static SKIP_JS: LazyLock<Regex> = LazyLock::new(|| regex(r"\b(?:t|ctx|this|context|test|it)\.(skip|fixme|todo)\s*\("));
static SKIP_PYTHON: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?m)^(\s*)(?:pytest\.(?:skip|xfail)\s*\(|self\.skipTest\s*\(|raise\s+(?:unittest\.)?SkipTest)"));
static SKIP_GO: LazyLock<Regex> = LazyLock::new(|| regex(r"(?m)^([ \t]*)\w+\.Skip(?:Now|f)?\("));
static SKIP_RUBY: LazyLock<Regex> = LazyLock::new(|| regex(r"(?m)^\s*(?:skip|pending)\b"));
static SKIP_SHELL: LazyLock<Regex> = LazyLock::new(|| regex(r"(?m)^\s*(?:skip|startSkipping)\b"));
static SWALLOW_PYTHON: LazyLock<Regex> = LazyLock::new(|| regex(r"\bexcept\b[^:\n]*:\s*(?:pass\b|\.\.\.|return\b)"));
static SWALLOW_JS: LazyLock<Regex> = LazyLock::new(|| regex(r"\bcatch\s*(?:\([^)]*\)\s*)?\{\s*\}"));
static SWALLOW_RUBY: LazyLock<Regex> = LazyLock::new(|| regex(r"\brescue\b[^\n]*\n\s*(?:nil\s*)?end\b"));
static SWALLOW_RUST: LazyLock<Regex> = LazyLock::new(|| regex(r"\bcatch_unwind\b"));
static RETURN: LazyLock<Regex> = LazyLock::new(|| regex(r"\breturn\b[ \t]*(?:;|\}|\n|\r|Ok\(\(\)\)|$)"));

/// What the body itself does against its test. `first` is where the first assertion stands.
pub(super) fn markers(language: Language, code: &str, first: Option<usize>, asserted: Asserted) -> BTreeSet<Marker> {
    let mut markers = BTreeSet::new();
    let skip = match language {
        Language::JavaScript => SKIP_JS.is_match(code).then_some(Marker::Skipped),
        Language::Python => conditional(&SKIP_PYTHON, code),
        Language::Go => conditional(&SKIP_GO, code),
        Language::Ruby => SKIP_RUBY.is_match(code).then_some(Marker::Skipped),
        Language::Shell => SKIP_SHELL.is_match(code).then_some(Marker::Skipped),
        Language::Rust => None,
    };
    markers.extend(skip);
    if asserted.real > 0 {
        let swallows = match language {
            Language::Python => SWALLOW_PYTHON.is_match(code),
            Language::JavaScript => SWALLOW_JS.is_match(code),
            Language::Ruby => SWALLOW_RUBY.is_match(code),
            Language::Rust => SWALLOW_RUST.is_match(code),
            Language::Go | Language::Shell => false,
        };
        markers.extend(swallows.then_some(Marker::Swallows));
    }
    if let Some(first) = first
        && RETURN.find_iter(code).any(|found| found.start() < first && is_unconditional(language, code, found.start()))
    {
        markers.insert(Marker::EarlyReturn);
    }
    markers
}

/// A skip at the body's own depth always happens; a deeper one may not.
fn conditional(pattern: &Regex, code: &str) -> Option<Marker> {
    let base = base_indent(code);
    let deepest = |found: regex::Captures<'_>| found.get(1).map_or(0, |blank| blank.as_str().trim_start_matches('\n').len());
    let depths: Vec<usize> = pattern.captures_iter(code).map(deepest).collect();
    let least = depths.into_iter().min()?;
    Some(if least <= base { Marker::Skipped } else { Marker::SkippedIf })
}

fn base_indent(code: &str) -> usize {
    let lines = code.lines().skip(1).filter(|line| !line.trim().is_empty() && line.trim() != "}");
    lines.map(super::indent_of).next().unwrap_or(usize::MAX)
}

fn is_unconditional(language: Language, code: &str, at: usize) -> bool {
    match language {
        Language::Rust | Language::JavaScript | Language::Go => {
            let start = code.find('{').unwrap_or(0);
            let depth = |count: i64, byte: u8| match byte {
                b'{' => count + 1,
                b'}' => count - 1,
                _ => count,
            };
            code.as_bytes()[start.min(at)..at].iter().copied().fold(0, depth) == 1
        }
        Language::Python | Language::Ruby | Language::Shell => {
            let line = code[..at].rfind('\n').map_or(0, |line| line + 1);
            line > 0 && at - line == base_indent(code) && code[line..at].trim().is_empty()
        }
    }
}

/// Whether what is run before every test of a file skips it.
pub(super) fn skips_before_each(language: Language, code: &str) -> bool {
    static JAVASCRIPT: LazyLock<Regex> = LazyLock::new(|| {
        regex(r"\bbefore(?:Each|All)?\s*\(\s*(?:async\s*)?(?:function\s*)?\(?\w*\)?\s*(?:=>)?\s*\{\s*\w+\.skip\(")
    });
    static PYTHON: LazyLock<Regex> = LazyLock::new(|| {
        let set_up = r"(?:autouse\s*=\s*True[^)]*\)\s*def\s+\w+|def\s+(?:setUp\w*|setup_\w+))\s*\([^)]*\)[^:\n]*:";
        regex(&format!(r"{set_up}\s*(?:pytest\.skip\(|self\.skipTest\(|raise\s+(?:unittest\.)?SkipTest)"))
    });
    static RUBY: LazyLock<Regex> = LazyLock::new(|| {
        regex(r"\bbefore(?:\s*\(?\s*:\w+\s*\)?)?\s*(?:do|\{)\s*(?:skip|pending)\b|\b(?:def\s+setup|setup\s+do)\s+skip\b")
    });
    match language {
        Language::JavaScript => JAVASCRIPT.is_match(code),
        Language::Python => PYTHON.is_match(code),
        Language::Ruby => RUBY.is_match(code),
        // Rust and shell have no such place; Go has one that ends the whole run.
        Language::Rust | Language::Go | Language::Shell => false,
    }
}
