//! Shell: tests of bats, and functions named `test…` in the manner of shunit2.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::{Found, Text, indent_of, is_test_path};

static BATS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^\s*@test\b").expect("a fixed pattern compiles"));
static FUNCTION: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\s*(?:function\s+)?(test\w*)\s*\(\)").expect("a fixed pattern compiles"));

pub(super) fn tests(text: &Text<'_>) -> Vec<Found> {
    let reach = is_test_path(text.path);
    let mut found: Vec<Found> = Vec::new();
    // The test that is open, by its indentation.
    let mut open: Option<usize> = None;
    for (start, line) in text.lines() {
        let end = start + line.len();
        if let Some(indent) = open {
            if line.trim_end() == format!("{}}}", " ".repeat(indent)) || (line.starts_with('}') && indent == 0) {
                if let Some(test) = found.last_mut() {
                    test.body.end = end;
                }
                open = None;
            }
            continue;
        }
        let name = if BATS.is_match(line) {
            let said = text.said[start..end].trim().trim_start_matches("@test").trim().trim_end_matches('{').trim();
            said.trim_matches(['"', '\'']).to_owned()
        } else if let Some(name) = FUNCTION.captures(line).and_then(|found| found.get(1)) {
            name.as_str().to_owned()
        } else {
            continue;
        };
        let indent = indent_of(line);
        let body_start = line.find('{').map_or(end, |at| start + at);
        let one_line = line.trim_end().ends_with('}');
        let body = body_start..if one_line { end } else { text.code.len() };
        found.push(Found { name, at: start + indent, whole: start..body_start, body, markers: BTreeSet::new(), reach });
        open = (!one_line).then_some(indent);
    }
    found
}
