//! Summaries that scripts print without a known framework: `12 tests passed`, `2 tests, 1 failed`, `# PASS:  4` above `# FAIL:  1`,
//! `50% tests passed, 1 tests failed out of 2`.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::TestCounts;
use super::lines::Lines;

/// A longer line is not a summary.
const LONGEST: usize = 200;
/// The maximum distance between the lines of one summary.
const NEAR: usize = 2;

/// The sum of all summaries.
///
/// A failure counts only if its line contains nothing else, so that prose is not mistaken for one. A pass may be part of a sentence.
pub(super) fn counts(lines: &Lines<'_>) -> Option<TestCounts> {
    let mut groups: Vec<(usize, Part)> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(part) = Part::parse(line) else { continue };
        match groups.last_mut().filter(|(last, _)| at - *last <= NEAR) {
            Some((last, before)) => (*last, *before) = (at, before.plus(part)),
            None => groups.push((at, part)),
        }
    }
    let whole = groups.into_iter().filter_map(|(_, part)| part.counts());
    whole.reduce(TestCounts::plus).or_else(|| passed(lines))
}

/// The content of one or several summary lines.
#[derive(Debug, Clone, Copy, Default)]
struct Part {
    verdicts: TestCounts,
    all: Option<u64>,
    is_of_tests: bool,
}

impl Part {
    /// `None` for a line that contains other words or no number.
    fn parse(line: &str) -> Option<Self> {
        static FORMS: LazyLock<Vec<Regex>> = LazyLock::new(forms);
        let separator = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | '|' | '(' | ')' | '#' | '=' | '-' | '.' | '!');
        let line = line.trim_matches(separator);
        if line.len() > LONGEST || !line.bytes().any(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let (mut part, mut rest) = (Self::default(), line);
        while !rest.is_empty() {
            let found = FORMS.iter().find_map(|form| form.captures(rest))?;
            part = part.plus(Self::of_item(&found));
            rest = rest[found[0].len()..].trim_start_matches(separator);
        }
        (part.all.is_some() || part.verdicts != TestCounts::default()).then_some(part)
    }

    fn of_item(found: &Captures<'_>) -> Self {
        let number = |name: &str| found.name(name).and_then(|number| number.as_str().parse::<u64>().ok());
        let mut part =
            Self { all: number("all"), is_of_tests: found.name("of_tests").or(found.name("title")).is_some(), ..Self::default() };
        let verdict = found.name("verdict").map_or("", |word| word.as_str()).to_ascii_lowercase();
        match verdict.get(..2) {
            Some("pa" | "ok" | "su") => part.verdicts.passed = number("number"),
            Some("fa" | "er") => part.verdicts.failed = number("number"),
            Some("sk" | "pe" | "to" | "ig" | "xf" | "xp") => part.verdicts.skipped = number("number"),
            Some(_) | None => {}
        }
        part
    }

    fn plus(self, more: Self) -> Self {
        let all = self.all.map_or(more.all, |all| Some(all.saturating_add(more.all.unwrap_or(0))));
        Self { verdicts: self.verdicts.plus(more.verdicts), all, is_of_tests: self.is_of_tests || more.is_of_tests }
    }

    /// The counts, if they refer to tests: a word says so, or both verdicts are counted.
    fn counts(self) -> Option<TestCounts> {
        let TestCounts { passed, failed, skipped } = self.verdicts;
        let is_meant = self.is_of_tests || passed.is_some() && failed.is_some();
        let rest = || Some(self.all?.saturating_sub(failed.unwrap_or(0)).saturating_sub(skipped.unwrap_or(0)));
        passed.or(failed)?;
        is_meant.then_some(TestCounts { passed: passed.or_else(rest), failed, skipped })
    }
}

/// The forms of a summary item, anchored at the start of the text.
fn forms() -> Vec<Regex> {
    let tests = "(?:tests?|specs?|examples?|(?:test )?cases?|scenarios?)";
    let verdict = "(?P<verdict>pass(?:ed|ing|es)?|ok|succeeded|successful|fail(?:ed|ing|s|ures?)?|errors?|skip(?:ped|s)?|pending|todo|ignored\
                   |xfail|xpass)";
    let forms = [
        // `1/3 tests failed`, `1 of 3 failed`
        format!(r"(?P<number>\d+)(?: ?/ ?| of )(?P<all>\d+)(?P<of_tests> {tests})?(?: have| were)? {verdict}\b"),
        // `3 tests passed`, `Tests: 3 passed`, `1 tests failed out of 7`
        format!(
            r"(?P<title>{tests}: *)?(?P<number>\d+)(?P<of_tests> {tests})?(?: have| were)? {verdict}\b(?: out of (?P<all>\d+)\b)?"
        ),
        // `2 tests`, `4 tests run`, `4 total`
        format!(r"(?P<all>\d+)(?P<of_tests> {tests})(?: run| ran| total| executed)?\b"),
        r"(?P<all>\d+) total\b".to_owned(),
        // `passed: 3`, `tests failed = 1`
        format!(r"(?P<of_tests>{tests} )?{verdict} ?[:=] *(?P<number>\d+)\b"),
        // `tests: 4`, `tests run: 4`, `total: 4`
        format!(r"(?P<of_tests>(?:total )?{tests}(?: run| ran)?|total|ran) ?[:=] *(?P<all>\d+)\b"),
        // Words that may surround them.
        format!(r"\d+% {tests} passed\b"),
        r"(?:in )?\d+(?:\.\d+)? ?(?:ms|s|seconds?)\b".to_owned(),
        format!(r"(?:summary|results?|ran|all|and|with|{tests}|failed|passed|ok)\b:?"),
    ];
    forms.iter().map(|form| Regex::new(&format!("(?i)^(?:{form})")).expect("a fixed pattern compiles")).collect()
}

/// Passed tests, from lines that may contain other text: `all good: 12 tests passed`, `3 passing`.
fn passed(lines: &Lines<'_>) -> Option<TestCounts> {
    static PASSED: LazyLock<Regex> = LazyLock::new(|| {
        let tests = "(?:tests?|specs?|examples?|cases?|scenarios?)";
        Regex::new(&format!(r"(?i)(?:^|[\s,;(])(\d+) (?:passed|passing|{tests} (?:passed|passing|ok|run|succeeded))\b"))
            .expect("a fixed pattern compiles")
    });
    let of = |line: &str| PASSED.captures(line).and_then(|found| found[1].parse::<u64>().ok());
    let sum = lines.iter().filter(|line| line.len() <= LONGEST).filter_map(|line| of(line)).reduce(u64::saturating_add);
    sum.map(|passed| TestCounts { passed: Some(passed), ..TestCounts::default() })
}

#[cfg(test)]
mod tests {
    use super::super::lines::split;
    use super::*;

    fn seen(text: &str) -> Option<(u64, u64, u64)> {
        let counts = counts(&split(text))?;
        Some((counts.passed.unwrap_or(0), counts.failed.unwrap_or(0), counts.skipped.unwrap_or(0)))
    }

    #[test]
    fn summaries_of_scripts_are_read() {
        for (text, expected) in [
            ("2 tests, 1 failed", (1, 1, 0)),
            ("FAIL: 2 != 3\n2 tests, 1 failed\n", (1, 1, 0)),
            ("Tests: 3 passed, 1 failed, 4 total", (3, 1, 0)),
            ("1 failed, 3 passed, 2 skipped in 0.4s", (3, 1, 2)),
            ("passed: 3 failed: 1", (3, 1, 0)),
            ("PASSED: 3\nFAILED: 1", (3, 1, 0)),
            ("# TOTAL: 4\n# PASS:  2\n# SKIP:  1\n# XFAIL: 0\n# FAIL:  1\n# XPASS: 0\n# ERROR: 0", (2, 1, 1)),
            ("50% tests passed, 1 tests failed out of 2", (1, 1, 0)),
            ("100% tests passed, 0 tests failed out of 7", (7, 0, 0)),
            ("1 of 3 tests failed", (2, 1, 0)),
            ("2/3 tests passed", (2, 0, 0)),
            ("Ran 3 tests.\n\nFAILED (failures=1)", (2, 1, 0)),
            ("=== 12 tests passed ===", (12, 0, 0)),
            ("2 tests, 1 failed\n3 tests, 0 failed", (4, 1, 0)),
            ("2 tests, 1 failed\nmore\nof\nit\n3 tests, 0 failed", (4, 1, 0)),
            ("all good: 12 tests passed", (12, 0, 0)),
            ("3 passing (4ms)", (3, 0, 0)),
            ("0 tests run, 0 failed", (0, 0, 0)),
        ] {
            assert_eq!(seen(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn words_in_passing_are_no_summary() {
        for text in [
            "2 failed",
            "3 files failed",
            "2 failed logins were blocked in the last hour",
            "warning: 1 test failed to compile because of nothing",
            "✖ 3 problems (1 error, 2 warnings)",
            "Found 2 errors in 1 file (checked 3 source files)",
            "All checks passed!",
            "test_failed_login.py: 3 tests",
            "12 tests skipped",
            "PASS: nothing",
            "FAIL: 2 != 3",
            "error: 2",
            "TOTAL   10   0   100%",
            "retry 1 of 3 failed, trying again",
        ] {
            assert_eq!(seen(text), None, "{text}");
        }
    }
}
