//! The tests of one file: each with its name, the digest of its body, what it asserts and what keeps it from counting.

mod body;
mod callees;
mod go;
mod javascript;
mod python;
mod ruby;
mod rust;
mod shell;

use std::collections::BTreeSet;
use std::ops::Range;

use crate::source::{Language, Source};

pub(super) use body::{hash_of, tokens_of};

use super::assertions::{self, Asserted};
use super::watched::is_test_path;

/// Assertions of one test that are told apart.
const MOST_ASSERTIONS: usize = 200;

/// What keeps a test from counting in full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Marker {
    Skipped,
    /// Under a condition.
    SkippedIf,
    /// Under a condition that does not hold where stories are built.
    SkippedElsewhere,
    /// It alone, or its group alone, runs.
    Only,
    ExpectedToFail,
    /// It returns before its first assertion.
    EarlyReturn,
    /// It catches what its assertions raise.
    Swallows,
}

#[derive(Debug, Clone)]
pub(super) struct Test {
    pub(super) name: String,
    pub(super) line: u32,
    /// Of the body's tokens in their order: without blanks, comments and what formatters add.
    pub(super) digest: u64,
    /// The different tokens of body and header, sorted.
    pub(super) tokens: Vec<u64>,
    /// Its different assertions, each by the tokens of its statement, sorted.
    pub(super) assertions: Vec<u64>,
    pub(super) asserted: Asserted,
    pub(super) markers: BTreeSet<Marker>,
    /// Whether runners find it where it is, by their usual rules.
    pub(super) reach: bool,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Inventory {
    pub(super) tests: Vec<Test>,
    /// Modules of tests that this file declares and other files hold.
    pub(super) modules: BTreeSet<String>,
    /// Of those, the ones under a condition.
    pub(super) conditional: BTreeSet<String>,
}

/// A test as a language's reader finds it.
struct Found {
    name: String,
    at: usize,
    /// With its attributes, decorators or options.
    whole: Range<usize>,
    body: Range<usize>,
    markers: BTreeSet<Marker>,
    reach: bool,
}

/// A file as the readers see it.
struct Text<'a> {
    path: &'a str,
    raw: &'a str,
    code: String,
    /// Without comments.
    said: String,
    starts: Vec<usize>,
}

impl Text<'_> {
    /// From 1.
    fn line(&self, at: usize) -> u32 {
        self.starts.partition_point(|start| *start <= at) as u32
    }

    /// Lines of the code with where they begin.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.starts.iter().enumerate().map(|(number, start)| {
            let end = self.starts.get(number + 1).copied().unwrap_or(self.code.len());
            (*start, self.code[*start..end].trim_end_matches(['\n', '\r']))
        })
    }
}

pub(super) fn inventory(language: Language, path: &str, text: &str) -> Inventory {
    let source = Source::read(language, text);
    let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let text = Text { path, raw: text, code: source.code(), said: source.without_comments(), starts };
    let mut inventory = Inventory::default();
    let found = match language {
        Language::Rust => {
            let (found, modules, conditional) = rust::tests(&text);
            (inventory.modules, inventory.conditional) = (modules, conditional);
            found
        }
        Language::JavaScript => javascript::tests(&text),
        Language::Python => python::tests(&text),
        Language::Go => go::tests(&text),
        Language::Ruby => ruby::tests(&text),
        Language::Shell => shell::tests(&text),
    };
    let asserting = if found.is_empty() { BTreeSet::new() } else { callees::asserting(language, &text) };
    inventory.tests = found.into_iter().map(|found| finish(language, &text, &source, &asserting, found)).collect();
    if body::skips_before_each(language, &text.code) {
        inventory.tests.iter_mut().for_each(|test| test.markers.extend([Marker::Skipped]));
    }
    inventory
}

fn finish(language: Language, text: &Text<'_>, source: &Source<'_>, asserting: &BTreeSet<String>, found: Found) -> Test {
    let code = &text.code[found.body.clone()];
    let said = &text.said[found.body.clone()];
    let (mut asserted, places) = assertions::count(language, code, said);
    if !asserting.is_empty() {
        asserted.local = callees::calls(language, code).filter(|name| asserting.contains(*name)).count() as u32;
    }
    let mut markers = found.markers;
    markers.extend(body::markers(language, code, places.first().copied(), asserted));
    let statement = |place: &usize| {
        let range = assertions::statement(language, code, *place);
        hash_of(&body::said_by(&tokens_of(source, found.body.start + range.start..found.body.start + range.end)))
    };
    let mut assertions: Vec<u64> = places.iter().take(MOST_ASSERTIONS).map(statement).collect();
    assertions.sort_unstable();
    assertions.dedup();
    let tokens = tokens_of(source, found.body.clone());
    let mut all: Vec<u64> = tokens_of(source, found.whole).into_iter().chain(tokens.iter().copied()).collect();
    all.sort_unstable();
    all.dedup();
    Test {
        name: found.name,
        line: text.line(found.at),
        digest: hash_of(&tokens),
        tokens: all,
        assertions,
        asserted,
        markers,
        reach: found.reach,
    }
}

/// What is said of a group holds for every test in it.
fn hand_down(tests: &mut [Found], mut groups: Vec<(Range<usize>, BTreeSet<Marker>)>) {
    groups.sort_by_key(|(range, _)| range.start);
    tests.sort_by_key(|test| test.at);
    let mut open: Vec<(usize, BTreeSet<Marker>)> = Vec::new();
    let mut groups = groups.into_iter().peekable();
    for test in tests {
        while let Some((range, markers)) = groups.next_if(|(range, _)| range.start <= test.at) {
            while open.pop_if(|(end, _)| *end <= range.start).is_some() {}
            let above = open.last().map(|(_, markers)| markers.clone()).unwrap_or_default();
            open.push((range.end, markers.into_iter().chain(above).collect()));
        }
        while open.pop_if(|(end, _)| *end <= test.at).is_some() {}
        test.markers.extend(open.last().into_iter().flat_map(|(_, markers)| markers.iter().copied()));
    }
}

/// Where each bracket of the code is closed.
struct Brackets {
    close: Vec<u32>,
}

impl Brackets {
    fn of(code: &str) -> Self {
        let mut close = vec![u32::MAX; code.len()];
        let mut open: Vec<(usize, u8)> = Vec::new();
        for (at, byte) in code.bytes().enumerate() {
            match byte {
                b'(' => open.push((at, b')')),
                b'[' => open.push((at, b']')),
                b'{' => open.push((at, b'}')),
                b')' | b']' | b'}' => {
                    // A bracket that fits nothing is a fault of the text or of ours: it closes nothing.
                    if open.last().is_some_and(|(_, wanted)| *wanted == byte)
                        && let Some((start, _)) = open.pop()
                    {
                        close[start] = at as u32;
                    }
                }
                _ => {}
            }
        }
        Self { close }
    }

    /// Where the bracket at this place is closed.
    fn closing(&self, open: usize) -> Option<usize> {
        self.close.get(open).filter(|at| **at != u32::MAX).map(|at| *at as usize)
    }
}

fn skip_blank(code: &str, from: usize) -> usize {
    code.as_bytes()[from.min(code.len())..].iter().position(|byte| !byte.is_ascii_whitespace()).map_or(code.len(), |at| from + at)
}

/// How far the end of a line is looked for: a line without one must not be read again for each call in it.
const LONGEST_LINE: usize = 10_000;

/// The end of the line that this place is in.
fn line_end(code: &str, from: usize) -> usize {
    let from = from.min(code.len());
    let most = code.floor_char_boundary(from + LONGEST_LINE).max(from);
    code.as_bytes()[from..most].iter().position(|byte| *byte == b'\n').map_or(most, |at| from + at)
}

fn word_at(code: &str, from: usize) -> &str {
    let rest = &code[from.min(code.len())..];
    &rest[..rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())]
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The content of the string that begins at or after this place and before `until`.
fn string_in(text: &Text<'_>, from: usize, until: usize) -> Option<(String, usize)> {
    let until = until.min(text.raw.len());
    let from = skip_blank(&text.said, from);
    let quote = *text.said.as_bytes().get(from).filter(|byte| b"\"'`".contains(byte))?;
    // The mask tells a string from code: its first byte is blank there.
    if from >= until || text.code.as_bytes()[from] != b' ' {
        return None;
    }
    let end = text.said.as_bytes()[from + 1..until].iter().position(|byte| *byte == quote).map(|at| from + 1 + at)?;
    Some((text.raw[from + 1..end].to_owned(), end + 1))
}
