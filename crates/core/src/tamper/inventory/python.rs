//! Python: functions whose name begins with `test`, in the manner of pytest and unittest.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::{Brackets, Found, Marker, Text, indent_of, skip_blank, word_at};

/// A class or a test that is open, by its indentation.
struct Open {
    indent: usize,
    markers: BTreeSet<Marker>,
    reach: bool,
    /// Which of the tests it is.
    test: Option<usize>,
}

pub(super) fn tests(text: &Text<'_>) -> Vec<Found> {
    let brackets = Brackets::of(&text.code);
    let by_name = is_test_file(text.path);
    let mut found: Vec<Found> = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    let (mut decorators, mut whole) = (BTreeSet::new(), None);
    let mut file: BTreeSet<Marker> = BTreeSet::new();
    let mut off: BTreeSet<String> = BTreeSet::new();
    let mut until = 0;
    let lines: Vec<(usize, &str)> = text.lines().collect();
    for (start, line) in lines {
        // Lines inside brackets belong to the one before.
        if line.trim().is_empty() || start < until {
            continue;
        }
        let indent = indent_of(line);
        while let Some(closed) = open.pop_if(|block| block.indent >= indent) {
            if let Some(test) = closed.test {
                found[test].body.end = start;
            }
        }
        let at = start + indent;
        let rest = line.trim_start();
        if let Some(bracket) = line.find(['(', '[', '{']) {
            until = brackets.closing(start + bracket).unwrap_or(0);
        }
        if rest.starts_with('@') {
            whole.get_or_insert(at);
            let end = until.max(start + line.len()).min(text.said.len());
            decorators.extend(marker(&text.said[at..end]));
            continue;
        }
        let rest = rest.strip_prefix("async ").map_or(rest, str::trim_start);
        let inside_test = open.iter().any(|block| block.test.is_some());
        if let Some(name) = rest.strip_prefix("class ") {
            let name = word_at(name.trim_start(), 0);
            let bases = rest.split_once('(').map_or("", |(_, bases)| bases);
            let named = name.starts_with("Test") || ["Test", "Tests", "TestCase"].iter().any(|end| name.ends_with(end));
            let reach = named || bases.contains("Test");
            open.push(Open { indent, markers: std::mem::take(&mut decorators), reach, test: None });
        } else if let Some(name) = rest.strip_prefix("def ") {
            let name = word_at(name.trim_start(), 0);
            if name.starts_with("test") && !inside_test {
                let parameters = line.find('(').and_then(|bracket| brackets.closing(start + bracket)).unwrap_or(at);
                let colon = text.code[parameters..].find(':').map_or(text.code.len(), |colon| parameters + colon + 1);
                let mut markers = std::mem::take(&mut decorators);
                markers.extend(open.iter().flat_map(|block| block.markers.iter().copied()));
                let reach = by_name && open.iter().all(|block| block.reach);
                let body = colon..text.code.len();
                open.push(Open { indent, markers: BTreeSet::new(), reach, test: Some(found.len()) });
                found.push(Found { name: name.to_owned(), at, whole: whole.unwrap_or(at)..colon, body, markers, reach });
            } else {
                open.push(Open { indent, markers: BTreeSet::new(), reach: false, test: None });
            }
        } else if rest.starts_with("pytestmark") {
            let end = until.max(start + line.len()).min(text.said.len());
            file.extend(marker(&text.said[at..end]));
        } else if indent == 0 && (rest.starts_with("pytest.skip(") || rest.starts_with("raise unittest.SkipTest")) {
            file.insert(Marker::Skipped);
        } else if matches!(rest, "if False:" | "if 0:" | "while False:") {
            open.push(Open { indent, markers: BTreeSet::from([Marker::Skipped]), reach: true, test: None });
        } else if indent == 0
            && let Some(name) = switched_off(rest)
        {
            off.insert(name.to_owned());
        } else if rest.starts_with("__test__") && rest.ends_with("False") {
            match open.last_mut() {
                Some(class) => class.markers.insert(Marker::Skipped),
                None => file.insert(Marker::Skipped),
            };
        }
        decorators.clear();
        whole = None;
    }
    for test in &mut found {
        test.markers.extend(file.iter().copied());
        test.markers.extend(off.contains(&test.name).then_some(Marker::Skipped));
        test.body.end = test.body.end.max(test.body.start);
        // A body on the line of its header.
        let first = skip_blank(&text.code, test.body.start);
        test.body.start = test.body.start.min(first);
    }
    found
}

/// The test that a line behind it takes away: `del test_a`, `test_a.__test__ = False`, `test_a = None`.
fn switched_off(line: &str) -> Option<&str> {
    let name = word_at(line, 0);
    let after = line[name.len()..].trim_start();
    if name == "del" {
        return Some(word_at(after, 0));
    }
    let taken =
        (after.starts_with('=') && !after.starts_with("==")) || (after.starts_with(".__test__") && after.ends_with("False"));
    taken.then_some(name)
}

/// What a decorator, or a mark of the whole file, does.
fn marker(said: &str) -> Option<Marker> {
    static ELSEWHERE: LazyLock<Regex> = LazyLock::new(|| {
        let platform = r#"sys\.platform\s*==\s*["']win32["']|os\.name\s*==\s*["']nt["']|sys\.platform\.startswith\(["']win["']\)|platform\.system\(\)\s*==\s*["']Windows["']"#;
        Regex::new(&format!(r"skip[iI]f\(\s*(?:{platform})\s*[,)]")).expect("a fixed pattern compiles")
    });
    let has = |word: &str| said.contains(word);
    if ELSEWHERE.is_match(said) {
        Some(Marker::SkippedElsewhere)
    } else if has("skipif") || has("skipIf") || has("skipUnless") {
        Some(Marker::SkippedIf)
    } else if has("mark.skip") || has("unittest.skip") || said.starts_with("@skip") || has("disabled") {
        Some(Marker::Skipped)
    } else if has("mark.xfail") || has("expectedFailure") {
        Some(Marker::ExpectedToFail)
    } else {
        None
    }
}

/// By the rules of pytest and of unittest.
fn is_test_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.starts_with("test") || name.ends_with("_test.py") || name.ends_with("_tests.py")
}
