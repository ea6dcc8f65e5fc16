//! Unified diff of two texts. Meant for small files such as settings: it compares every line with every other.

use std::fmt::Write as _;

use verdone_core::base::sanitise::sanitise_line;

/// Lines around a change.
const CONTEXT: usize = 3;
/// Above this many comparisons, the changed middle is shown as removed and added in full.
const MOST: usize = 4_000_000;

/// Returns the changed lines with some context, or an empty string if nothing differs. `None` means that the file does not exist.
pub fn diff(name: &str, old: Option<&str>, new: Option<&str>) -> String {
    let lines = |text: Option<&'_ str>| text.unwrap_or_default().split_inclusive('\n').map(str::to_owned).collect::<Vec<_>>();
    let changes = changes(&lines(old), &lines(new));
    if changes.iter().all(|change| change.sign == ' ') {
        return String::new();
    }
    let side = |text: Option<&str>| text.map_or_else(|| "/dev/null".to_owned(), |_| sanitise_line(name).into_owned());
    let mut out = format!("--- {}\n+++ {}\n", side(old), side(new));
    for hunk in hunks(&changes) {
        let count = |other: char| changes[hunk.clone()].iter().filter(|change| change.sign != other).count();
        let before = |other: char| changes[..hunk.start].iter().filter(|change| change.sign != other).count();
        let range = |other: char| match (before(other), count(other)) {
            (before, 0) => format!("{before},0"),
            (before, count) => format!("{},{count}", before + 1),
        };
        let _ = writeln!(out, "@@ -{} +{} @@", range('+'), range('-'));
        for Change { sign, line } in &changes[hunk.clone()] {
            let _ = writeln!(out, "{sign}{}", sanitise_line(line.trim_end_matches(['\r', '\n'])));
            if !line.ends_with('\n') {
                out.push_str("\\ No newline at end of file\n");
            }
        }
    }
    out
}

#[derive(Debug)]
struct Change {
    /// ` `, `-` or `+`.
    sign: char,
    line: String,
}

fn changes(old: &[String], new: &[String]) -> Vec<Change> {
    let same = |(a, b): &(&String, &String)| a == b;
    let head = old.iter().zip(new).take_while(same).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(same).count();
    let (before, after) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let change = |sign: char| move |line: &String| Change { sign, line: line.clone() };
    let mut out: Vec<Change> = old[..head].iter().map(change(' ')).collect();
    if before.len().saturating_mul(after.len()) > MOST {
        out.extend(before.iter().map(change('-')).chain(after.iter().map(change('+'))));
    } else {
        out.extend(middle(before, after));
    }
    out.extend(old[old.len() - tail..].iter().map(change(' ')));
    out
}

/// Diffs by the longest common subsequence.
fn middle(old: &[String], new: &[String]) -> Vec<Change> {
    let mut longest = vec![vec![0_u32; new.len() + 1]; old.len() + 1];
    for a in (0..old.len()).rev() {
        for b in (0..new.len()).rev() {
            longest[a][b] = if old[a] == new[b] { longest[a + 1][b + 1] + 1 } else { longest[a + 1][b].max(longest[a][b + 1]) };
        }
    }
    let (mut a, mut b, mut out) = (0, 0, Vec::new());
    while a < old.len() || b < new.len() {
        let (sign, line) = if a < old.len() && b < new.len() && old[a] == new[b] {
            (' ', &old[a])
        } else if a < old.len() && (b == new.len() || longest[a + 1][b] >= longest[a][b + 1]) {
            ('-', &old[a])
        } else {
            ('+', &new[b])
        };
        a += usize::from(sign != '+');
        b += usize::from(sign != '-');
        out.push(Change { sign, line: line.clone() });
    }
    out
}

/// Groups nearby changes together with their context.
fn hunks(changes: &[Change]) -> Vec<std::ops::Range<usize>> {
    let mut out: Vec<std::ops::Range<usize>> = Vec::new();
    for (at, _) in changes.iter().enumerate().filter(|(_, change)| change.sign != ' ') {
        let near = at.saturating_sub(CONTEXT)..(at + 1 + CONTEXT).min(changes.len());
        match out.last_mut() {
            Some(last) if near.start <= last.end => last.end = near.end,
            _ => out.push(near),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_shown_with_what_is_around_them() {
        let old = (1..=20).map(|n| n.to_string()).collect::<Vec<_>>().join("\n") + "\n";
        let new = old.replacen("5\n", "five\n", 1).replacen("19\n", "19\n19b\n", 1);
        let shown = diff("f", Some(&old), Some(&new));
        let expected =
            "--- f\n+++ f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n@@ -17,4 +17,5 @@\n 17\n 18\n 19\n+19b\n 20\n";
        assert_eq!(shown, expected);
        assert_eq!(diff("f", Some(&old), Some(&old)), "");
    }

    #[test]
    fn a_file_that_comes_or_goes_has_one_side() {
        assert_eq!(diff("f", None, Some("a\n")), "--- /dev/null\n+++ f\n@@ -0,0 +1,1 @@\n+a\n");
        assert_eq!(diff("f", Some("a"), None), "--- f\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-a\n\\ No newline at end of file\n");
    }

    #[test]
    fn hostile_lines_cannot_steer_the_terminal() {
        let shown = diff("n\x1b[2Jm", Some("a\x1b[2Jb\r\n"), Some(""));
        assert!(!shown.contains(['\x1b', '\r']), "{shown:?}");
    }

    #[test]
    fn a_large_middle_is_replaced_as_a_whole() {
        let text = |word: &str| format!("{word}\n").repeat(3000);
        let shown = diff("f", Some(&text("a")), Some(&text("b")));
        assert_eq!(shown.lines().count(), 3 + 6000);
    }
}
