//! Rust: functions with an attribute that makes them tests, modules that hold tests or declare files of them.

use std::collections::BTreeSet;

use super::{Brackets, Found, Marker, Text, hand_down, skip_blank, word_at};

const TEST_ATTRIBUTES: [&str; 7] =
    ["test", "rstest", "test_case", "quickcheck", "wasm_bindgen_test", "parameterized", "sqlx_test"];

pub(super) fn tests(text: &Text<'_>) -> (Vec<Found>, BTreeSet<String>) {
    let brackets = Brackets::of(&text.code);
    let (mut found, mut modules, mut groups) = (Vec::new(), BTreeSet::new(), Vec::new());
    let mut file: BTreeSet<Marker> = BTreeSet::new();
    let mut attributes: Vec<&str> = Vec::new();
    let (mut at, mut whole) = (0, 0);
    let code = text.code.as_str();
    while at < code.len() {
        let rest = &code.as_bytes()[at..];
        let open = match rest {
            [b'#', b'[', ..] => at + 1,
            [b'#', b'!', b'[', ..] => at + 2,
            [byte, ..] if is_word(*byte) => {
                let before = at.checked_sub(1).map(|at| code.as_bytes()[at]);
                let word = word_at(code, at);
                // A sign outside of ASCII is no word, and has several bytes.
                let end = at + if word.is_empty() { code[at..].chars().next().map_or(1, char::len_utf8) } else { word.len() };
                let item =
                    (!before.is_some_and(is_word)).then(|| read_item(text, &brackets, word, end, &attributes, whole)).flatten();
                match item {
                    Some(Item::Test(next)) => {
                        at = next.body.end.max(end);
                        found.push(next);
                        attributes.clear();
                    }
                    Some(Item::Declares(name, after)) => {
                        modules.extend(is_test_module(&name, &attributes).then_some(name));
                        attributes.clear();
                        at = after;
                    }
                    Some(Item::Group(range)) => {
                        let marker = attributes.iter().find_map(|attribute| cfg_marker(attribute));
                        at = range.start + 1;
                        groups.extend(marker.map(|marker| (range, BTreeSet::from([marker]))));
                        attributes.clear();
                    }
                    None => {
                        if !QUALIFIERS.contains(&word) {
                            attributes.clear();
                        }
                        at = end;
                    }
                }
                continue;
            }
            _ => {
                at += 1;
                continue;
            }
        };
        let Some(close) = brackets.closing(open) else {
            at = open + 1;
            continue;
        };
        let attribute = text.said[open + 1..close].trim();
        if open == at + 2 {
            file.extend(cfg_marker(attribute));
        } else {
            if attributes.is_empty() {
                whole = at;
            }
            attributes.push(attribute);
        }
        at = close + 1;
    }
    groups.push((0..code.len(), file));
    hand_down(&mut found, groups);
    (found, modules)
}

/// Words between an attribute and what it belongs to.
const QUALIFIERS: [&str; 7] = ["pub", "async", "const", "unsafe", "extern", "crate", "super"];

enum Item {
    Test(Found),
    Declares(String, usize),
    Group(std::ops::Range<usize>),
}

fn read_item(text: &Text<'_>, brackets: &Brackets, word: &str, end: usize, attributes: &[&str], whole: usize) -> Option<Item> {
    let code = text.code.as_str();
    let name_at = skip_blank(code, end);
    let name = word_at(code, name_at);
    match word {
        "fn" if attributes.iter().any(|attribute| is_test(attribute)) => {
            let mut open = name_at + name.len();
            // Parameters and types hold no braces that count.
            while let Some(byte) = code.as_bytes().get(open).filter(|byte| !b"{;".contains(byte)) {
                open = if b"([".contains(byte) { brackets.closing(open).unwrap_or(open) + 1 } else { open + 1 };
            }
            let close = brackets.closing(open).map_or(open, |close| close + 1).min(code.len());
            let mut markers: BTreeSet<Marker> = attributes.iter().filter_map(|attribute| marker(attribute)).collect();
            markers.extend(attributes.iter().filter_map(|attribute| cfg_marker(attribute)));
            let body = open.min(close)..close;
            Some(Item::Test(Found { name: name.to_owned(), at: name_at, whole: whole..body.start, body, markers, reach: true }))
        }
        "mod" if !name.is_empty() => {
            let after = skip_blank(code, name_at + name.len());
            match code.as_bytes().get(after) {
                Some(b';') => Some(Item::Declares(name.to_owned(), after)),
                Some(b'{') => Some(Item::Group(after..brackets.closing(after).unwrap_or(code.len()))),
                _ => None,
            }
        }
        _ => None,
    }
}

fn path_of(attribute: &str) -> &str {
    let path = attribute.split(['(', '=', ' ', '\n']).next().unwrap_or_default();
    path.rsplit("::").next().unwrap_or(path).trim()
}

fn is_test(attribute: &str) -> bool {
    TEST_ATTRIBUTES.contains(&path_of(attribute))
}

fn marker(attribute: &str) -> Option<Marker> {
    match path_of(attribute) {
        "ignore" => Some(Marker::Skipped),
        "should_panic" => Some(Marker::ExpectedToFail),
        "cfg_attr" if attribute.contains("ignore") => Some(Marker::SkippedIf),
        _ => None,
    }
}

/// What a condition does to the tests under it, unless it is the usual one.
fn cfg_marker(attribute: &str) -> Option<Marker> {
    if path_of(attribute) != "cfg" {
        return None;
    }
    let condition: String = attribute.chars().filter(|c| !c.is_whitespace()).collect();
    match condition.as_str() {
        "cfg(test)" => None,
        "cfg(any())" | "cfg(FALSE)" | "cfg(false)" | "cfg(not(test))" => Some(Marker::Skipped),
        text if text.contains("any()") || text.contains("not(all())") => Some(Marker::Skipped),
        _ => Some(Marker::SkippedIf),
    }
}

fn is_test_module(name: &str, attributes: &[&str]) -> bool {
    name.contains("test") || attributes.iter().any(|attribute| attribute.replace(' ', "") == "cfg(test)")
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}
