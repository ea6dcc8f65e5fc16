//! AVA's default report. The TAP reader handles its TAP.

use super::super::failures::Failures;
use super::super::lines::Lines;
use super::{Framework, Reading, Says, TestCounts, counted, own, place, stack_place, without_time};

pub(super) fn read(lines: &Lines<'_>) -> Option<Reading> {
    let mut reading = Reading::new(Framework::Ava);
    let mut marked = Failures::default();
    // A report ends in a rule and its counts; test output cannot follow it.
    let rule = lines.iter().rposition(|line| line.trim() == "─");
    let mut uncaught = 0;
    let end = rule.unwrap_or(lines.len());
    let mut empty = false;
    for (at, line) in lines[..end].iter().enumerate() {
        let text = line.trim_start();
        if let Some(name) = failed(line) {
            marked.add(name, None, None, "");
        } else if let Some(file) =
            text.strip_prefix("Uncaught exception in ").or_else(|| text.strip_prefix("Unhandled rejection in "))
        {
            let error =
                lines[at..end].iter().map(|line| line.trim()).find(|line| line.contains("Error: ") || line.starts_with("Error"));
            reading.failures.add(file.trim(), Some(file.trim()), None, error.unwrap_or_default());
            uncaught += 1;
        } else if let Some(rest) = text.strip_prefix("✘ No tests found in ").or_else(|| text.strip_prefix("✖ No tests found in "))
        {
            let file = rest.split(',').next().unwrap_or(rest);
            reading.failures.add(file, Some(file), None, "no tests found");
            empty = true;
        } else if text.starts_with("✘ Couldn’t find any files to test") || text.starts_with("✖ Couldn’t find any files to test")
        {
            (reading.concluded, reading.says) = (Some(at), Says::NothingRan);
            return Some(reading);
        }
    }
    let before = lines[..end].iter().enumerate().filter(|(_, line)| line.trim() == "─");
    for (passed, failing, skipped, _) in before.filter_map(|(at, _)| counts(&lines[at + 1..])) {
        let more = TestCounts { passed: Some(passed), failed: Some(failing), skipped: Some(skipped) };
        reading.earlier = reading.earlier.plus(more);
    }
    detail(&lines[..end], &mut marked);
    let sums = rule.and_then(|rule| counts(&lines[rule + 1..]));
    let seen = sums.is_some();
    let (passed, failing, skipped, stray) = sums.unwrap_or_default();
    if !seen && !(rule.is_some() && (empty || !marked.is_empty())) {
        reading.says = Says::Failed;
        reading.failures = marked;
        return (!reading.failures.is_empty() && lines.iter().any(|line| line.contains("[fail]: "))).then_some(reading);
    }
    reading.concluded = rule;
    let listed = marked.len() as u64;
    let broken = uncaught > 0 && listed == 0 && passed == 0;
    for failure in marked.into_list() {
        reading.failures.add(&failure.name, failure.file.as_deref(), failure.line, &failure.message);
    }
    if failing == 0 && seen && stray == 0 {
        reading.count(passed, 0, skipped);
        reading.judge();
        return Some(reading);
    }
    reading.count(passed, failing.max(if seen { 0 } else { listed }), skipped);
    // A report with failures may leave out the number of passed tests.
    reading.counts.passed = reading.counts.passed.filter(|passed| *passed > 0);
    reading.says = if broken || empty && listed == 0 { Says::Broken } else { Says::Failed };
    Some(reading)
}

/// The counts below a rule: passed, failed, skipped, and errors outside the tests.
fn counts(lines: &[std::borrow::Cow<'_, str>]) -> Option<(u64, u64, u64, u64)> {
    let mut seen = false;
    let (mut passed, mut failing, mut skipped, mut stray) = (0, 0, 0, 0);
    let below = lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).take_while(|line| *line != "─");
    for line in below.take(12) {
        let of = |word| counted(line, word).unwrap_or(0);
        let tests = of("test") + of("tests") + of("hook") + of("hooks");
        if line.ends_with(" passed") {
            passed += tests;
        } else if line.ends_with(" failed") {
            failing += tests;
        } else if line.ends_with(" skipped") || line.ends_with(" todo") {
            skipped += tests;
        } else if line.contains("uncaught exception") || line.contains("unhandled rejection") || line.contains("timed out") {
            stray += 1;
        } else if !line.contains("known failure") {
            continue;
        }
        seen = true;
    }
    seen.then_some((passed, failing, skipped, stray))
}

/// A reason may follow the name; only these known ones are removed.
const REASONS: [&str; 7] = [
    " Error thrown in test",
    " Test was expected to fail",
    " Test timeout exceeded",
    " Rejected promise returned by test",
    " Planned for ",
    " Test finished without running any assertions",
    " Promise returned by test never resolved",
];

fn failed(line: &str) -> Option<&str> {
    let text = line.strip_prefix("  ")?;
    let rest = text.strip_prefix("✘ ").or_else(|| text.strip_prefix("✖ "))?;
    if let Some(name) = rest.strip_prefix("[fail]: ").or_else(|| rest.strip_prefix("[unexpected pass]: ")) {
        let end = REASONS.iter().filter_map(|reason| name.find(reason)).min().unwrap_or(name.len());
        return Some(without_time(&name[..end]));
    }
    let report = ["No tests found in ", "Couldn’t find", "Timed out", "Exited because", "Internal error"];
    if report.iter().any(|start| rest.starts_with(start))
        || rest.contains(" exited with ")
        || rest.contains(" remaining in ")
        || text.starts_with("✘ ")
    {
        return None;
    }
    // AVA 4 and older print no tag; the reason follows the name.
    let end = REASONS.iter().filter_map(|reason| rest.find(reason)).min().unwrap_or(rest.len());
    Some(without_time(&rest[..end]))
}

/// Adds the details from further below, where each stands under its test's name.
fn detail(lines: &[std::borrow::Cow<'_, str>], marked: &mut Failures) {
    let mut told = Failures::default();
    let names: Vec<String> = marked.iter().map(|failure| failure.name.clone()).collect();
    let start = lines.iter().position(|line| line.trim() == "─").unwrap_or(lines.len());
    let mut places: Vec<(Option<(&str, u32)>, &str)> = vec![(None, ""); names.len()];
    let mut current: Option<usize> = None;
    for line in &lines[start..] {
        let text = line.trim();
        if let Some(at) = names.iter().position(|name| name == text) {
            current = Some(at);
        } else if let Some(at) = current {
            let found = text
                .strip_prefix("› ")
                .and_then(|rest| place(rest.rsplit([' ', '(']).next()?))
                .and_then(own)
                .or_else(|| stack_place(line));
            if let (None, Some(found)) = (places[at].0, found) {
                places[at].0 = Some(found);
            } else if places[at].1.is_empty()
                && !text.is_empty()
                && place(text).is_none()
                && !text.starts_with(|c: char| c.is_ascii_digit())
            {
                places[at].1 = text;
            }
        }
    }
    // A test printed any mark that has no details, unless no mark has any.
    let detailed = places.iter().any(|(_, message)| !message.is_empty());
    for (name, (found, message)) in names.iter().zip(places) {
        if detailed && message.is_empty() && found.is_none() {
            continue;
        }
        let (file, line) = found.unzip();
        told.add(name, file, line, message);
    }
    *marked = told;
}
