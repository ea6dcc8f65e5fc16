//! Ruby: examples of `RSpec`, tests of Rails and methods of Minitest. A block ends where its indentation does.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::{Found, Marker, Text, indent_of};

static HEAD: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"^\s*(?:RSpec\.)?(x|f|p)?(it|specify|example|scenario|test|describe|context|feature)\b\s*\(?";
    Regex::new(pattern).expect("a fixed pattern compiles")
});
static METHOD: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^\s*def\s+(test_\w+[?!]?)").expect("a fixed pattern compiles"));
static OFF: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?::skip\b|\bskip:\s*(?:true|['\x22])|:pending\b|\bpending:\s*(?:true|['\x22]))")
        .expect("a fixed pattern compiles")
});
static FOCUS: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(?::focus\b|\bfocus:\s*true)").expect("a fixed pattern compiles"));

struct Open {
    indent: usize,
    markers: BTreeSet<Marker>,
    test: Option<usize>,
}

pub(super) fn tests(text: &Text<'_>) -> Vec<Found> {
    let reach = is_test_file(text.path);
    let mut found: Vec<Found> = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    let mut above: BTreeSet<Marker> = BTreeSet::new();
    let lines: Vec<(usize, &str)> = text.lines().collect();
    for (start, line) in lines {
        if line.trim().is_empty() {
            continue;
        }
        let indent = indent_of(line);
        let closes = line.trim_start().starts_with("end") || line.trim_start().starts_with('}');
        while let Some(closed) =
            open.pop_if(|block| block.indent > indent || (block.indent == indent && (closes || block.test.is_none())))
        {
            if let Some(test) = closed.test {
                found[test].body.end = start + line.len();
            }
            above = open.last().map(|block| block.markers.clone()).unwrap_or_default();
        }
        if open.iter().any(|block| block.test.is_some()) {
            continue;
        }
        let end = start + line.len();
        let method = METHOD.captures(line).and_then(|method| method.get(1));
        let head = HEAD.captures(line);
        let said = &text.said[start..end];
        let (name, is_test, markers) = if let Some(name) = method {
            (name.as_str().to_owned(), true, BTreeSet::new())
        } else if let Some(head) = head.filter(|_| said.contains(['"', '\'']) || line.contains(" do") || line.contains('{')) {
            let after = head.get(0).map_or(0, |whole| whole.end());
            // A local or a call of another name: `test = 1`, `it.foo`.
            if line[after..].trim_start().starts_with(['=', '.']) {
                continue;
            }
            let title = said[after..].split([',', '{']).next().unwrap_or_default().trim().trim_end_matches(" do");
            let mut markers = BTreeSet::new();
            match head.get(1).map(|letter| letter.as_str()) {
                Some("x" | "p") => markers.insert(Marker::Skipped),
                Some("f") => markers.insert(Marker::Only),
                Some(_) | None => false,
            };
            let options = said[after..].trim_start_matches(title);
            markers.extend(OFF.is_match(options).then_some(Marker::Skipped));
            markers.extend(FOCUS.is_match(options).then_some(Marker::Only));
            let kind = head.get(2).map_or("", |kind| kind.as_str());
            let is_test = !matches!(kind, "describe" | "context" | "feature");
            (title.trim_matches(['"', '\'', '(', ')']).to_owned(), is_test, markers)
        } else {
            continue;
        };
        let markers: BTreeSet<Marker> = markers.into_iter().chain(above.iter().copied()).collect();
        let one_line = line.trim_end().ends_with('}') || line.trim_end().ends_with(" end");
        if is_test {
            let body_start = line.find(" do").map_or_else(|| line.find('{').map_or(line.len(), |at| at), |at| at + 3);
            let body_start = if method.is_some() { line.len() } else { body_start };
            let body = start + body_start..if one_line { end } else { text.code.len() };
            let example = Found { name, at: start + indent, whole: start..body.start, body, markers: markers.clone(), reach };
            if !one_line && (method.is_some() || line.contains(" do") || line.contains('{')) {
                open.push(Open { indent, markers, test: Some(found.len()) });
                found.push(example);
            } else if one_line {
                found.push(example);
            } else {
                // Without a block it is pending.
                let markers = markers.into_iter().chain([Marker::Skipped]).collect();
                found.push(Found { body: end..end, markers, ..example });
            }
        } else if !one_line {
            above.clone_from(&markers);
            open.push(Open { indent, markers, test: None });
        }
    }
    found
}

fn is_test_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.ends_with("_spec.rb") || name.ends_with("_test.rb") || name.starts_with("test_")
}
