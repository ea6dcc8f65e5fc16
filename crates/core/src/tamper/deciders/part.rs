//! What the words of a command say about its part in a check: whether it judges, and whether something else judges it.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::tamper::watched::is_test_path;

/// A program of no known language, such as one that is started by `sh NAME`.
pub(super) fn no_language(path: &str, text: &str) -> bool {
    !path.rsplit('/').next().unwrap_or(path).contains('.') && !text.starts_with("#!")
}

/// Whether something is named for judging.
pub(super) fn is_judge(path: &str) -> bool {
    const WORDS: [&str; 14] = [
        "check",
        "checks",
        "verify",
        "validate",
        "test",
        "tests",
        "spec",
        "lint",
        "ci",
        "smoke",
        "e2e",
        "accept",
        "acceptance",
        "selftest",
    ];
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let house = folders.split('/').any(|part| matches!(part, "scripts" | "script" | "ci" | ".ci" | "checks" | "hack"));
    let named = name.to_lowercase().split(['-', '_', '.', ':']).any(|word| WORDS.contains(&word));
    house || named || is_test_path(path)
}

/// Folders that a line goes through: `for test in tests/*.sh`, `sh tests/gr*`, `find tests`.
pub(super) fn listed_folders(line: &str) -> impl Iterator<Item = &str> {
    static LISTED: LazyLock<Regex> = LazyLock::new(|| {
        let pattern = r"([\w.-]+(?:/[\w.-]+)*)/[\w.-]*[*?\[]|\b(?:find|ls|run-parts)\s+([\w.-]+(?:/[\w.-]+)*)";
        Regex::new(pattern).expect("a fixed pattern compiles")
    });
    LISTED.captures_iter(line).filter_map(|found| found.get(1).or_else(|| found.get(2))).map(|folder| folder.as_str())
}

/// What a program's output is held against.
pub(super) fn is_wanted_output(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
    is_test_path(path) || ["expect", "golden", "wanted", "reference"].iter().any(|word| name.contains(word))
}

/// Whether its output goes through a pipe into a program that runs what it reads: `cat tests/greet | sh`.
pub(super) fn feeds(text: &str, range: &Range<usize>, runs: impl Fn(&str) -> bool) -> bool {
    let after = text.get(range.end..).unwrap_or_default().trim_start_matches([' ', '\t']);
    let Some(next) = after.strip_prefix('|').filter(|next| !next.starts_with('|')) else { return false };
    let mut words = next.trim_start_matches('&').split([';', '|', '&', ')', '\n']).next().unwrap_or_default().split_whitespace();
    let program = words.next().unwrap_or_default();
    // A script of its own reads the rest as data.
    runs(program.rsplit('/').next().unwrap_or(program)) && words.all(|word| word.starts_with(['-', '+']) && word != "-c")
}

/// Whether its output goes into another command, which then says what is so: through a pipe, or as a word.
pub(super) fn judged_by_another(text: &str, range: &Range<usize>) -> bool {
    let after = text.get(range.end..).unwrap_or_default().trim_start_matches([' ', '\t']);
    if after.starts_with('|') && !after.starts_with("||") {
        return true;
    }
    let before = text.get(..range.start).unwrap_or_default().as_bytes();
    let (mut open, mut single, mut ticks, mut at) = (Vec::new(), false, false, 0);
    while at < before.len() {
        match before[at] {
            b'\'' if !single && open.last() != Some(&b'"') => single = true,
            b'\'' if single => single = false,
            _ if single => {}
            b'\\' => at += 1,
            b'"' if open.last() == Some(&b'"') => drop(open.pop()),
            b'"' => open.push(b'"'),
            b'`' => ticks = !ticks,
            b'(' if at > 0 && matches!(before[at - 1], b'$' | b'<') => open.push(b'$'),
            b'(' if open.last() != Some(&b'"') => open.push(b'('),
            b')' if matches!(open.last(), Some(b'(' | b'$')) => drop(open.pop()),
            _ => {}
        }
        at += 1;
    }
    ticks || open.contains(&b'$')
}
