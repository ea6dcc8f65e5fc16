//! JavaScript and TypeScript: calls of `it`, `test` and their kin, in the manner of Jest, Vitest, Mocha, Jasmine, Playwright,
//! node:test, Deno and Bun.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::{Brackets, Found, Marker, Text, hand_down, is_test_path, line_end, skip_blank, string_in};

static CALL: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"\b((?:x|f)?(?:it|test|describe|context|suite|specify)|Deno\.test|QUnit\.test|QUnit\.module)((?:\s*\.\s*\w+)*)\s*(\(|$|\s|\$)";
    Regex::new(pattern).expect("a fixed pattern compiles")
});

static OPTIONS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"\b(skip|todo|only)\s*:\s*(?:true|["'`])"#).expect("a fixed pattern compiles"));

/// A branch that nothing runs.
static NEVER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\bif\s*\(\s*(?:false|0)\s*\)\s*\{").expect("a fixed pattern compiles"));

/// How far a table of cases may go before the call that it belongs to.
const LONGEST_TABLE: usize = 50_000;

pub(super) fn tests(text: &Text<'_>) -> Vec<Found> {
    let code = text.code.as_str();
    let brackets = Brackets::of(code);
    let by_name = is_test_path(text.path);
    let (mut found, mut groups): (Vec<Found>, Vec<_>) = (Vec::new(), Vec::new());
    let mut at = 0;
    while let Some(call) = CALL.captures_at(code, at) {
        let whole = call.get(0).map_or(at..at + 1, |whole| whole.range());
        at = whole.start + 1;
        while !code.is_char_boundary(at) {
            at += 1;
        }
        let (Some(name), Some(modifiers)) = (call.get(1), call.get(2)) else { continue };
        // A method of something else, `pattern.test(x)` say, or part of a longer name.
        let before = code[..whole.start].trim_end_matches([' ', '\t']).bytes().next_back();
        if before.is_some_and(|byte| b".$#".contains(&byte)) {
            continue;
        }
        let modifiers: Vec<&str> = modifiers.as_str().split('.').map(str::trim).filter(|word| !word.is_empty()).collect();
        if !modifiers.iter().all(|word| KNOWN.contains(word)) {
            continue;
        }
        let Some(open) =
            arguments(text, &brackets, modifiers.last().copied(), skip_blank(code, call.get(2).map_or(at, |part| part.end())))
        else {
            continue;
        };
        let close = brackets.closing(open).unwrap_or_else(|| line_end(code, open));
        let base = name.as_str();
        let is_group = ["describe", "context", "suite", "module"].iter().any(|group| base.ends_with(group))
            || modifiers.contains(&"describe");
        let string = string_in(text, open + 1, close);
        // Only a file of tests calls `test(name)` with something that is no string.
        if string.is_none() && (is_group || !by_name || !code[open..close].contains(',')) {
            continue;
        }
        let (title, body_start) = string.unwrap_or_else(|| {
            let end = code[open..close].find(',').map_or(close, |comma| open + comma);
            (code[open + 1..end].trim().chars().take(80).collect(), end)
        });
        let mut markers = marks(base, &modifiers);
        let body_start = body_start.min(close);
        let head = code[body_start..close].find(['(', '>']).map_or(close, |end| body_start + end);
        for option in OPTIONS.captures_iter(&text.said[body_start..head]) {
            markers.insert(if &option[1] == "only" { Marker::Only } else { Marker::Skipped });
        }
        if is_group {
            groups.push((open..close, markers));
            at = at.max(open + 1);
            continue;
        }
        let reach = by_name;
        found.push(Found {
            name: title,
            at: whole.start,
            whole: whole.start..body_start,
            body: body_start..close,
            markers,
            reach,
        });
        at = at.max(close);
        while !code.is_char_boundary(at) {
            at += 1;
        }
    }
    for branch in NEVER.find_iter(code) {
        let open = branch.end() - 1;
        groups.extend(brackets.closing(open).map(|close| (open..close, BTreeSet::from([Marker::Skipped]))));
    }
    hand_down(&mut found, groups);
    found
}

const KNOWN: [&str; 25] = [
    "skip",
    "only",
    "todo",
    "each",
    "for",
    "concurrent",
    "sequential",
    "fails",
    "failing",
    "fixme",
    "skipIf",
    "runIf",
    "slow",
    "describe",
    "parallel",
    "serial",
    "shuffle",
    "if",
    "todoIf",
    "failingIf",
    "fail",
    "extend",
    "ignore",
    "retries",
    "timeout",
];

fn marks(base: &str, modifiers: &[&str]) -> BTreeSet<Marker> {
    let mut markers: BTreeSet<Marker> = modifiers
        .iter()
        .filter_map(|modifier| match *modifier {
            "skip" | "todo" | "fixme" | "ignore" => Some(Marker::Skipped),
            "skipIf" | "runIf" | "if" | "todoIf" => Some(Marker::SkippedIf),
            "only" => Some(Marker::Only),
            "fails" | "failing" | "fail" | "failingIf" => Some(Marker::ExpectedToFail),
            _ => None,
        })
        .collect();
    match base {
        "xit" | "xtest" | "xdescribe" | "xcontext" | "xspecify" | "xsuite" => markers.insert(Marker::Skipped),
        "fit" | "ftest" | "fdescribe" | "fcontext" => markers.insert(Marker::Only),
        _ => false,
    };
    markers
}

/// The bracket that the name of the test stands behind: after a table of cases or a condition, the second one.
fn arguments(text: &Text<'_>, brackets: &Brackets, last: Option<&str>, at: usize) -> Option<usize> {
    let code = text.code.as_str();
    let second = matches!(last, Some("each" | "for" | "skipIf" | "runIf" | "if" | "todoIf" | "failingIf"));
    let first = if code.as_bytes().get(at) == Some(&b'(') {
        at
    } else if second {
        // A table in a template: code stands between its parts.
        let end = (at + LONGEST_TABLE).min(code.len());
        let mut next = at;
        loop {
            match code.as_bytes().get(next).filter(|_| next < end)? {
                b'(' if text.raw.as_bytes()[..next].trim_ascii_end().ends_with(b"`") => return Some(next),
                b'(' | b'[' | b'{' => next = brackets.closing(next)? + 1,
                b';' => return None,
                _ => next += 1,
            }
        }
    } else {
        return None;
    };
    if !second {
        return Some(first);
    }
    let next = skip_blank(code, brackets.closing(first)? + 1);
    (code.as_bytes().get(next) == Some(&b'(')).then_some(next)
}
