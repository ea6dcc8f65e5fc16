//! Rust: functions with an attribute that makes them tests, modules that hold tests or declare files of them.

use std::collections::BTreeSet;

use super::{Brackets, Found, Marker, Text, hand_down, skip_blank, word_at};

const TEST_ATTRIBUTES: [&str; 7] =
    ["test", "rstest", "test_case", "quickcheck", "wasm_bindgen_test", "parameterized", "sqlx_test"];

/// The tests, the modules of tests that other files hold, and which of those are under a condition.
pub(super) fn tests(text: &Text<'_>) -> (Vec<Found>, BTreeSet<String>, BTreeSet<String>) {
    let brackets = Brackets::of(&text.code);
    let (mut found, mut groups) = (Vec::new(), Vec::new());
    let (mut modules, mut conditional) = (BTreeSet::new(), BTreeSet::new());
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
                        if is_test_module(&name, &attributes) {
                            let on_condition =
                                attributes.iter().any(|attribute| cfg_marker(attribute) == Some(Marker::SkippedIf));
                            conditional.extend(on_condition.then(|| name.clone()));
                            modules.insert(name);
                        }
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
    (found, modules, conditional)
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
        "cfg_attr" if attribute.contains("ignore") => {
            let condition = attribute.split_once('(').and_then(|(_, rest)| rest.rsplit_once(',')).map_or("", |(first, _)| first);
            let elsewhere = ELSEWHERE.contains(&plain(condition).split(",ignore").next().unwrap_or_default());
            Some(if elsewhere { Marker::SkippedElsewhere } else { Marker::SkippedIf })
        }
        _ => None,
    }
}

/// What a condition does to the tests under it, unless it is the usual one.
fn cfg_marker(attribute: &str) -> Option<Marker> {
    if path_of(attribute) != "cfg" {
        return None;
    }
    let condition = plain(attribute);
    let only = condition.strip_prefix("cfg(").and_then(|rest| rest.strip_suffix(')')).unwrap_or_default();
    // `all(test, unix)` says of tests what `unix` does.
    let only = only.strip_prefix("all(test,").and_then(|rest| rest.strip_suffix(')')).unwrap_or(only);
    if only.strip_prefix("not(").and_then(|rest| rest.strip_suffix(')')).is_some_and(|not| ELSEWHERE.contains(&not))
        || HERE.contains(&only)
    {
        return Some(Marker::SkippedElsewhere);
    }
    match condition.as_str() {
        "cfg(test)" => None,
        "cfg(any())" | "cfg(FALSE)" | "cfg(false)" | "cfg(not(test))" => Some(Marker::Skipped),
        text if text.contains("any()") || text.contains("not(all())") => Some(Marker::Skipped),
        _ => Some(Marker::SkippedIf),
    }
}

/// Where stories are not built, and what holds wherever they are.
const ELSEWHERE: [&str; 7] = [
    "windows",
    "miri",
    "target_os=\"windows\"",
    "target_family=\"windows\"",
    "target_family=\"wasm\"",
    "target_arch=\"wasm32\"",
    "target_os=\"emscripten\"",
];
const HERE: [&str; 3] = ["unix", "target_family=\"unix\"", "panic=\"unwind\""];

fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

fn is_test_module(name: &str, attributes: &[&str]) -> bool {
    let for_tests = |attribute: &&str| {
        let attribute = plain(attribute);
        (attribute == "cfg(test)" || attribute.starts_with("cfg(all(test,")) && cfg_marker(&attribute) != Some(Marker::Skipped)
    };
    name.contains("test") || attributes.iter().any(for_tests)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}
