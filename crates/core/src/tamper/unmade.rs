//! Code that takes tests or assertions away while it runs: the text of every test is as it was, and none of it counts.

use std::sync::LazyLock;

use regex::Regex;

use super::watched::{Look, is_test_path};
use super::{Alarm, AlarmKind, Severity};
use crate::source::{Language, Source};

/// What such a line does.
struct Rule {
    pattern: Regex,
    kind: AlarmKind,
    severity: Severity,
    why: &'static str,
    /// It changes its own file alone: a new file does no harm by it.
    own: bool,
    /// Other code has such words too, so only files of tests count.
    tests: bool,
}

static PYTHON: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    use AlarmKind::{RunnerChanged, TestDeleted, TestSkipped, TestWeakened};
    use Severity::{High, Medium};
    vec![
        rule(r"^\s*del\s+\w+(?:\.\w+)*\.test\w*", TestDeleted, High, "a test is taken out as the file is loaded"),
        rule(r"\bdelattr\(\s*[\w.]+\s*,\s*.test", TestDeleted, High, "a test is taken out as the file is loaded"),
        rule(r"\b[A-Z]\w*\.test\w*\s*=\s*(?:None\b|lambda\b)", TestDeleted, High, "a test is replaced as the file is loaded"),
        rule(r"\bTestCase\.(?:assert\w+|fail\w*)\s*=[^=]", TestWeakened, High, "replaces what asserts"),
        rule(r"\bsetattr\(\s*[\w.]*TestCase\s*,\s*.(?:assert|fail)", TestWeakened, High, "replaces what asserts"),
        Rule { own: true, ..rule(r"^\s+(test\w*)\s*=\s*None\s*$", TestSkipped, Medium, "a test is nothing in this class") },
        Rule { own: true, ..rule(r"^\s+def\s+(assert[A-Z]\w*|fail)\(", TestWeakened, Medium, "replaces what asserts") },
        Rule { own: true, ..rule(r"^def\s+load_tests\(", RunnerChanged, Medium, "decides which tests of the file run") },
    ]
});

static JAVASCRIPT: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    use AlarmKind::TestWeakened;
    use Severity::Medium;
    let why = "replaces what tests are made of";
    let local = |pattern| Rule { own: true, tests: true, ..rule(pattern, TestWeakened, Medium, why) };
    vec![
        rule(r"\b(?:global|globalThis|window)\.(?:expect|assert|it|test|describe)\s*=[^=>]", TestWeakened, Medium, why),
        local(r"^\s*(?:expect|it|test|describe)\s*=[^=>]"),
        local(r"\b(?:const|let|var)\s+(?:expect|it|test|describe)\s*=\s*(?:\(|async\b|function\b|\w+\s*=>)"),
        local(r"\bfunction\s+(?:expect|it|test|describe)\s*\("),
    ]
});

fn rule(pattern: &str, kind: AlarmKind, severity: Severity, why: &'static str) -> Rule {
    let pattern = Regex::new(pattern).expect("a fixed pattern compiles");
    Rule { pattern, kind, severity, why, own: false, tests: false }
}

impl Look<'_> {
    /// The gravest of the added lines that unmake tests.
    pub(super) fn unmade(&self) -> Option<Alarm> {
        let text = self.file.new.as_deref()?;
        let language = self.file.language?;
        let rules: &[Rule] = match language {
            Language::Python => &PYTHON,
            Language::JavaScript => &JAVASCRIPT,
            Language::Rust | Language::Go | Language::Ruby | Language::Shell => return None,
        };
        let in_tests = is_test_path(self.file.path);
        let counts = |rule: &&Rule| !(rule.own && self.created()) && (in_tests || !rule.tests);
        let found =
            |line: &str| rules.iter().filter(counts).find(|rule| rule.pattern.is_match(line) && !self.is_usual(rule, line));
        let candidates: Vec<(u32, &Rule)> = self.added().filter_map(|(number, line)| Some((number, found(line)?))).collect();
        if candidates.is_empty() {
            return None;
        }
        // Strings and comments that speak of it do nothing.
        let code = Source::read(language, text).code();
        let lines: Vec<&str> = code.lines().collect();
        let in_code = |(number, rule): &(u32, &Rule)| {
            let line = lines.get(*number as usize - 1).copied().unwrap_or_default();
            rule.pattern.is_match(line) || line.contains("delattr(") || line.contains("setattr(")
        };
        let real = candidates.into_iter().filter(in_code);
        let (number, rule) = real.max_by_key(|(number, rule)| (rule.severity, std::cmp::Reverse(*number)))?;
        Some(self.alarm(rule.kind, rule.severity, Some(number), rule.why))
    }

    /// What honest files do that looks the same.
    fn is_usual(&self, rule: &Rule, line: &str) -> bool {
        let text = self.file.new.as_deref().unwrap_or_default();
        let old = self.file.old.as_deref().unwrap_or_default();
        let name = rule.pattern.captures(line).and_then(|found| found.get(1)).map_or("", |name| name.as_str());
        match rule.kind {
            // An attribute of a class that begins like a test, and never was one.
            AlarmKind::TestSkipped => !old.contains(&format!("def {name}(")),
            AlarmKind::TestWeakened if !name.is_empty() => {
                text.contains(&format!("super().{name}(")) || old.contains(&format!("def {name}(")) || !text.contains("TestCase")
            }
            AlarmKind::RunnerChanged => {
                let own_suite = |(at, _): (usize, &str)| !text[..at].ends_with(char::is_alphanumeric);
                text.contains("addTest") && !text.match_indices("TestSuite(").any(own_suite)
            }
            _ => ["chai", "require(", "import(", ".extend(", "@jest", "vitest", "jest."].iter().any(|word| line.contains(word)),
        }
    }
}
