//! Extracts the useful part of a failed check's output: its last meaningful lines, and the source positions in them.

use std::sync::LazyLock;

use regex::Regex;

use crate::base::sanitise::sanitise;

const MOST_LINES: usize = 20;
const LONGEST_LINE: usize = 240;
const MOST_PLACES: usize = 5;

/// The last meaningful lines, sanitised and truncated.
pub fn meaningful(output: &str) -> Vec<String> {
    let safe = sanitise(output);
    let mut lines: Vec<String> = Vec::new();
    for line in safe.lines().map(str::trim_end).filter(|line| says_something(line)) {
        let end = line.floor_char_boundary(LONGEST_LINE);
        let line = if end == line.len() { line.to_owned() } else { format!("{}…", &line[..end]) };
        if lines.last() != Some(&line) {
            lines.push(line);
        }
    }
    lines.split_off(lines.len().saturating_sub(MOST_LINES))
}

/// Excludes separator lines and empty lines.
fn says_something(line: &str) -> bool {
    line.chars().any(char::is_alphanumeric)
}

/// The first `file:line` positions in the output, without duplicates.
pub fn places(output: &str) -> Vec<String> {
    static PLACE: LazyLock<Regex> = LazyLock::new(|| {
        let path = r"[A-Za-z0-9_@~+\-./\[\]]*[A-Za-z0-9_\-]\.[A-Za-z0-9]{1,8}";
        Regex::new(&format!(
            r#"(?:File "(?P<py>[^"\n]{{1,200}})", line (?P<pyline>\d{{1,7}})|(?P<path>{path})[:(](?P<line>\d{{1,7}}))"#
        ))
        .expect("the pattern is a constant")
    });
    // Compiling the pattern takes longer than everything else.
    if !output.contains([':', '(', '"']) {
        return Vec::new();
    }
    let safe = sanitise(output);
    let mut found: Vec<String> = Vec::new();
    for captures in PLACE.captures_iter(&safe) {
        let (path, line) = match (captures.name("py"), captures.name("pyline"), captures.name("path"), captures.name("line")) {
            (Some(path), Some(line), _, _) | (_, _, Some(path), Some(line)) => (path.as_str(), line.as_str()),
            _ => continue,
        };
        // `127.0.0.1:80` and `v1.2:3` are not files.
        let is_number = path.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let place = format!("{path}:{line}");
        if !is_number && path.len() <= LONGEST_LINE && !found.contains(&place) {
            found.push(place);
        }
        if found.len() == MOST_PLACES {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_as_tools_name_them() {
        for (output, expected) in [
            ("error[E0308]: x\n --> src/auth.rs:42:7\n", vec!["src/auth.rs:42"]),
            ("  File \"pkg/a b.py\", line 7, in test\n", vec!["pkg/a b.py:7"]),
            ("    at run (/w/src/x.test.ts:10:3)\nsrc/y.ts(12,5): error TS1\n", vec!["/w/src/x.test.ts:10", "src/y.ts:12"]),
            ("main_test.go:9: no\nmain_test.go:9: no\n", vec!["main_test.go:9"]),
            ("listening on 127.0.0.1:80, at 10:30:00\n", vec![]),
            ("\u{1b}[31msrc/a.c:3\u{1b}[0m: x", vec!["src/a.c:3"]),
        ] {
            assert_eq!(places(output), expected, "{output}");
        }
        let many = (1..100).map(|n| format!("a.rs:{n}")).collect::<Vec<_>>().join(" ");
        assert_eq!(places(&many).len(), MOST_PLACES);
    }

    #[test]
    fn the_last_lines_that_say_something_are_kept_and_made_safe() {
        let output = format!("{}\n====\n\nfailed\nfailed\n\u{1b}]0;x\u{7}\u{1b}[2Jassertion é\n----\n", "x".repeat(500));
        let lines = meaningful(&output);
        assert_eq!(lines[1..], ["failed", "assertion é"]);
        assert!(lines[0].ends_with('…') && lines[0].len() < 250);
        assert_eq!(meaningful(&"line a\nline b\n".repeat(100)).len(), MOST_LINES);
        assert!(meaningful("\n---\n").is_empty());
    }
}
