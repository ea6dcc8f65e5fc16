//! Output readers, one per framework. Each knows its framework's summary and how the framework names failures.

mod ava;
mod bats;
mod bun;
mod cargo;
mod dotnet;
mod entities;
mod go;
mod gradle;
mod jest;
mod json;
pub(super) mod junit;
mod minitest;
mod mocha;
mod nextest;
mod node;
mod phpunit;
mod pytest;
mod rspec;
mod surefire;
mod tap;
mod unittest;
mod vitest;

use super::failures::Failures;
use super::lines::Lines;
use super::names::{End, Listed};
use super::{Framework, TestCounts, TestOutcome, TestState};

/// What a reader found in the output.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) framework: Framework,
    pub(super) says: Says,
    pub(super) counts: TestCounts,
    pub(super) failures: Failures,
    pub(super) reason: Option<String>,
    /// The line of the framework's last summary; `None` if there were only single lines.
    pub(super) concluded: Option<usize>,
    /// The line of the summary before the last one: from another run, or printed by a test.
    pub(super) before: Option<usize>,
    /// The counts of earlier summaries that a later one replaced. Not included in `counts`.
    pub(super) earlier: TestCounts,
    /// Only a part of a summary was found. Other programs print such lines too.
    pub(super) is_partial: bool,
    /// A machine-readable report. The same run may also have printed a human-readable one.
    pub(super) is_report: bool,
    /// The tests that the output lists, if any.
    pub(super) names: Listed,
    /// The number of requested tests or files that the runner could not find. They may also be counted as failed.
    pub(super) missing: u64,
}

/// The result according to the output. Ordered from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Says {
    Passed,
    NothingRan,
    /// The output shows what ran last, but not how it ended: only the exit code shows whether the run died there or was cut off.
    Unfinished,
    Failed,
    Broken,
}

/// A reader function, and the strings that the text must contain for it to find anything: most outputs contain the marks of few readers.
struct Reader {
    read: fn(&Lines<'_>) -> Option<Reading>,
    marks: &'static [&'static str],
}

const JEST: Reader = Reader { read: jest::read, marks: &["Tests:", "● ", "✕ ", "No tests found, exiting"] };
const VITEST: Reader =
    Reader { read: vitest::read, marks: &["Tests  ", "FAIL  ", "× ", "✗ ", "No test files found", "::error ", "⎯⎯ Un"] };
const MOCHA: Reader = Reader {
    read: mocha::read,
    marks: &[" passing (", " failing", "mocha/lib/", "No test files found", "      at ", "<dt class=", "  1) "],
};
const AVA: Reader = Reader { read: ava::read, marks: &["─", "[fail]: ", "find any files to test"] };
const NODE: Reader = Reader { read: node::read, marks: &["ℹ ", "✖ ", "Could not find '"] };
const BUN: Reader = Reader { read: bun::read, marks: &["bun test v", " across "] };
const TAP: Reader = Reader { read: tap::read, marks: &["ok ", "1..", "Bail out!", "Result: ", "Asserts:", "Failed Tests:"] };
const BATS: Reader = Reader { read: bats::read, marks: &["tests, ", "test, ", " ✗ "] };
const PYTEST: Reader = Reader {
    read: pytest::read,
    marks: &[
        "FAILED",
        "ERROR",
        " in ",
        "pytest: error",
        "unrecognized arguments",
        "Results (",
        "test session starts",
        "conftest",
    ],
};
const UNITTEST: Reader =
    Reader { read: unittest::read, marks: &["Ran ", " ... FAIL", " ... ERROR", "FAIL: ", "ERROR: ", "unittest/loader"] };
const GO: Reader = Reader { read: go::read, marks: &["FAIL", "PASS", "ok  \t", "?   \t", "\"Action\":", "DONE ", "panic: "] };
const CARGO: Reader = Reader { read: cargo::read, marks: &["test result: ", "FAILED", "error: "] };
const NEXTEST: Reader = Reader { read: nextest::read, marks: &["Summary [", "FAIL [", "SIG", "TIMEOUT [", "could not compile"] };
const RSPEC: Reader = Reader { read: rspec::read, marks: &["example", "rspec ", "_spec.rb:", " (FAILED - "] };
const MINITEST: Reader = Reader { read: minitest::read, marks: &["assertions"] };
const PHPUNIT: Reader = Reader { read: phpunit::read, marks: &["PHPUnit", "Tests: ", "OK (", "##teamcity["] };
const SUREFIRE: Reader = Reader { read: surefire::read, marks: &["Tests run: ", "[ERROR]", "COMPILATION ERROR", "No tests "] };
const GRADLE: Reader = Reader { read: gradle::read, marks: &["BUILD ", "> No tests found"] };
const DOTNET: Reader = Reader {
    read: dotnet::read,
    marks: &["Total:", "Test summary: ", "No test is available in ", "No test matches the given testcase filter"],
};
const JSON: Reader = Reader { read: json::read, marks: &["{"] };
const JUNIT: Reader = Reader { read: junit::read, marks: &["<testsuite"] };

/// The readings of one framework: its own report first, then the other formats it can write.
pub(super) fn for_framework(framework: Framework, lines: &Lines<'_>, text: &str) -> Vec<Reading> {
    let readers: &[Reader] = match framework {
        Framework::Jest => &[JEST, JSON, JUNIT],
        Framework::Vitest => &[VITEST, TAP, JSON, JUNIT],
        Framework::Mocha => &[MOCHA, TAP, JSON, JUNIT],
        Framework::Ava => &[AVA, TAP],
        Framework::NodeTest => &[NODE, TAP, JUNIT],
        Framework::Bun => &[BUN, JUNIT],
        Framework::Tap => &[TAP, NODE],
        Framework::Bats => &[BATS, TAP, JUNIT],
        Framework::Pytest => &[PYTEST, JUNIT, TAP],
        Framework::Unittest => &[UNITTEST, JUNIT],
        Framework::Go => &[GO, JUNIT],
        Framework::CargoTest => &[CARGO, JUNIT],
        Framework::Nextest => &[NEXTEST, CARGO, JUNIT],
        Framework::Rspec => &[RSPEC, JSON, JUNIT],
        Framework::Minitest => &[MINITEST],
        Framework::Phpunit => &[PHPUNIT, JUNIT, TAP],
        Framework::Surefire => &[SUREFIRE, JUNIT],
        Framework::Gradle => &[GRADLE, JUNIT],
        Framework::Dotnet => &[DOTNET, JUNIT],
        Framework::JunitXml => &[JUNIT],
    };
    let mut readings = without_inner(run(readers, lines, text));
    for reading in &mut readings {
        reading.framework = framework;
    }
    readings
}

/// The readings of all readers, the most specific first.
pub(super) fn all(lines: &Lines<'_>, text: &str) -> Vec<Reading> {
    const ALL: [Reader; 21] = [
        JEST, VITEST, MOCHA, AVA, NODE, BUN, BATS, PYTEST, UNITTEST, GO, CARGO, NEXTEST, RSPEC, MINITEST, PHPUNIT, SUREFIRE,
        GRADLE, DOTNET, JSON, TAP, JUNIT,
    ];
    without_inner(run(&ALL, lines, text))
}

/// nextest shows the inner harness of each test, which is not a `cargo test` run.
fn without_inner(mut readings: Vec<Reading>) -> Vec<Reading> {
    if readings.iter().any(|reading| reading.framework == Framework::Nextest && reading.concluded.is_some()) {
        readings.retain(|reading| reading.framework != Framework::CargoTest);
    }
    readings
}

fn run(readers: &[Reader], lines: &Lines<'_>, text: &str) -> Vec<Reading> {
    readers
        .iter()
        .filter(|reader| reader.marks.iter().any(|mark| text.contains(mark)))
        .filter_map(|reader| (reader.read)(lines))
        .collect()
}

impl Reading {
    pub(super) fn new(framework: Framework) -> Self {
        Self {
            framework,
            says: Says::Passed,
            counts: TestCounts::default(),
            failures: Failures::default(),
            reason: None,
            concluded: None,
            before: None,
            earlier: TestCounts::default(),
            is_partial: false,
            is_report: false,
            names: Listed::default(),
            missing: 0,
        }
    }

    /// Records the line of a summary; one recorded before becomes the earlier one.
    fn conclude(&mut self, at: usize) {
        self.before = self.concluded.replace(at);
    }

    pub(super) fn into_outcome(self, state: TestState, hidden: bool) -> TestOutcome {
        let failures = if state >= TestState::Failed { self.failures.into_list() } else { Vec::new() };
        let blamed = state == TestState::Failed && !failures.is_empty();
        let reason = if state == TestState::Passed || blamed { None } else { self.reason };
        TestOutcome { framework: Some(self.framework), state, counts: self.counts, failures, reason, hidden }
    }

    fn count(&mut self, passed: u64, failed: u64, skipped: u64) {
        let more = TestCounts { passed: Some(passed), failed: Some(failed), skipped: Some(skipped) };
        self.counts = self.counts.plus(more);
    }

    /// Replaces the counts. The last summary is the real one, because a test may print similar lines.
    fn count_instead(&mut self, passed: u64, failed: u64, skipped: u64) {
        self.earlier = self.earlier.plus(std::mem::take(&mut self.counts));
        self.count(passed, failed, skipped);
    }

    /// Derives the result from the counts. Zero tests are not a pass.
    fn judge(&mut self) {
        self.says = match (self.counts.failed.unwrap_or(0), self.counts.passed.unwrap_or(0)) {
            (0, 0) => Says::NothingRan,
            (0, _) => Says::Passed,
            _ => Says::Failed,
        };
    }
}

/// `3` in `3 failed, 1 passed`: the number right before the word.
fn counted(text: &str, word: &str) -> Option<u64> {
    let mut last = None;
    for part in
        text.split(|c: char| c.is_whitespace() || matches!(c, ',' | '|' | ';' | '(' | ')')).filter(|part| !part.is_empty())
    {
        if part.trim_end_matches(['.', '!']) == word
            && let Some(number) = last
        {
            return Some(number);
        }
        last = part.parse::<u64>().ok();
    }
    None
}

/// `3` in `Failures: 3, Errors: 1`: the number right after the label.
fn labelled(text: &str, label: &str) -> Option<u64> {
    let (_, rest) = text.split_once(label)?;
    leading_number(rest.trim_start())
}

fn leading_number(text: &str) -> Option<u64> {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    text[..end].parse().ok()
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// `path:12:5`, `path:12`, `(path:12:5)`: a file and line.
fn place(text: &str) -> Option<(&str, u32)> {
    let text = text.trim().trim_start_matches('(').trim_end_matches([')', ':', ',']);
    let text = text.strip_prefix("file://").unwrap_or(text);
    let (rest, last) = text.rsplit_once(':')?;
    let number = |part: &str| part.parse::<u32>().ok();
    let last = number(last)?;
    match rest.rsplit_once(':') {
        Some((path, line)) if number(line).is_some() && !path.is_empty() => Some((path, number(line)?)),
        Some(_) | None => (!rest.is_empty()).then_some((rest, last)),
    }
}

/// The location in a line of a JavaScript stack trace, if it is in the project.
fn stack_place(line: &str) -> Option<(&str, u32)> {
    let rest = line.trim_start().strip_prefix("at ")?;
    let inside = match rest.rfind('(') {
        Some(open) => &rest[open + 1..],
        None => rest.strip_prefix("async ").unwrap_or(rest),
    };
    own(place(inside)?)
}

fn own(place: (&str, u32)) -> Option<(&str, u32)> {
    let foreign = ["node_modules/", "node:", "internal/", "site-packages/", "<anonymous>", "/rustc/", "native"];
    (!foreign.iter().any(|part| place.0.contains(part))).then_some(place)
}

/// Reads the error annotations for GitHub Actions: `::error file=a.test.js,line=4,title=a > b::message`.
fn annotations(lines: &Lines<'_>, failures: &mut Failures) {
    for line in lines.iter().filter_map(|line| line.strip_prefix("::error ")) {
        let Some((head, message)) = line.split_once("::") else { continue };
        let of = |key: &str| head.split(',').find_map(|part| part.strip_prefix(key)?.strip_prefix('='));
        if let Some(file) = of("file") {
            let message = message.split("%0A").next().unwrap_or(message);
            failures.add(of("title").unwrap_or(file), Some(file), of("line").and_then(|line| line.parse().ok()), message);
        }
    }
}

/// Removes the duration that reporters append: `adds (16 ms)`, `adds 48ms`, `adds [72]`.
fn without_time(name: &str) -> &str {
    let name = name.trim();
    let is_time = |text: &str| {
        let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        unit.len() < text.len() && matches!(unit.trim(), "ms" | "s" | "m" | "μs" | "µs" | "ns")
    };
    if let Some((rest, last)) = name.rsplit_once([' ', '\u{a0}']) {
        if is_time(last) {
            return rest.trim_end();
        }
        let inner = last.trim_start_matches(['(', '[']).trim_end_matches([')', ']']);
        if inner.len() + 2 == last.len() && is_time(inner) {
            return rest.trim_end();
        }
        // `(16 ms)`: the space is inside the parentheses.
        if let Some(inside) = name.strip_suffix([')', ']'])
            && let Some(open) = inside.rfind(['(', '['])
            && is_time(&inside[open + 1..].replace(' ', ""))
        {
            return name[..open].trim_end();
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_places_and_times_are_read() {
        assert_eq!(counted("3 failed | 1 passed (4)", "failed"), Some(3));
        assert_eq!(counted("Tests: 1 failed, 2 total", "passed"), None);
        assert_eq!(counted("ok. 2 passed; 1 failed; 0 ignored", "failed"), Some(1));
        assert_eq!(labelled("Tests: 8, Failures: 2.", "Failures:"), Some(2));
        assert_eq!(place("(src/a.js:3:7)"), Some(("src/a.js", 3)));
        assert_eq!(place("src/a.rs:3:"), Some(("src/a.rs", 3)));
        assert_eq!(place("C:\\a.js:3:7"), Some(("C:\\a.js", 3)));
        assert_eq!(place("no place"), None);
        assert_eq!(stack_place("   at Object.toBe (a/b.js:1:2)"), Some(("a/b.js", 1)));
        assert_eq!(stack_place("   at node_modules/x.js:1:2"), None);
        assert_eq!(without_time("adds (16 ms)"), "adds");
        assert_eq!(without_time("adds 48ms"), "adds");
        assert_eq!(without_time("adds (1.2s)"), "adds");
        assert_eq!(without_time("adds (twice)"), "adds (twice)");
        assert_eq!(without_time("(é"), "(é");
    }
}
