//! Python's unittest and runners with the same output: Django, nose2.

use super::super::failures::{Failures, describe};
use super::super::lines::Lines;
use super::{End, Framework, Reading, Says, labelled, leading_number};

pub(super) fn read(lines: &Lines<'_>) -> Option<Reading> {
    let mut reading = Reading::new(Framework::Unittest);
    let mut progress = Failures::default();
    let mut ran: Option<(usize, u64)> = None;
    let (mut after_rule, mut open, mut traced, mut loading, mut failed, mut concluded) =
        (false, false, false, 0_usize, false, false);
    let mut unloaded_test = UnloadedTest::default();
    for (at, line) in lines.iter().enumerate() {
        let heading = after_rule.then(|| heading(line)).flatten();
        after_rule = line.len() >= 60 && line.bytes().all(|byte| byte == b'=');
        if let Some(name) = heading {
            loading += usize::from(
                name.contains("_FailedTest") || name.contains("LoadTestsFailure") || name.contains("ModuleImportFailure"),
            );
            reading.failures.add(name, None, None, "");
            (open, traced) = (true, false);
            unloaded_test = UnloadedTest { is_one: name.contains("_FailedTest"), ..UnloadedTest::default() };
        } else if let Some(count) =
            line.strip_prefix("Ran ").filter(|rest| rest.contains(" test") && rest.contains(" in ")).and_then(leading_number)
        {
            (ran, open) = (Some((at, count)), false);
        } else if let Some((_, count)) = ran.filter(|(seen, _)| at - seen <= 3) {
            if let Some(detail) = line.strip_prefix("FAILED").filter(|rest| rest.is_empty() || rest.starts_with(" (")) {
                let of = |label| labelled(detail, label).unwrap_or(0);
                // "expected failures" ends in the same word.
                let bad = of("(failures=").max(of(", failures=")) + of("errors=") + of("unexpected successes=");
                let skipped = of("skipped=") + of("expected failures=");
                reading.count(count.saturating_sub(bad + skipped), bad, skipped);
                (reading.concluded, ran, failed, concluded) = (Some(at), None, true, true);
            } else if line.starts_with("OK") || line.starts_with("NO TESTS RAN") {
                let skipped = labelled(line, "skipped=").unwrap_or(0) + labelled(line, "expected failures=").unwrap_or(0);
                reading.count(count.saturating_sub(skipped), 0, skipped);
                (reading.concluded, ran, concluded) = (Some(at), None, true);
            }
        } else if let Some((name, end)) = verdict(line) {
            reading.names.add(name, end);
            if end == End::Failed {
                progress.add(name, None, None, "");
            }
        } else if open && let Some(failure) = reading.failures.last_mut() {
            reading.missing += u64::from(unloaded_test.is_missing(line));
            if line.starts_with("Traceback (most recent call last)") {
                traced = true;
            } else if let Some(found) = location(line) {
                // The innermost frame in the project comes last.
                (failure.file, failure.line) = (Some(found.0.to_owned()), Some(found.1));
            } else if traced && !line.starts_with([' ', '-']) && !line.is_empty() {
                describe(failure, None, Some(line));
            }
        }
    }
    if reading.failures.is_empty() {
        reading.failures = progress;
    }
    if failed && reading.failures.is_empty() {
        // A filter removed the separator lines; the headings still name the tests.
        let other = |line| ["Failure in ", "Error in "].iter().find_map(|start| str::strip_prefix(line, start));
        let headings = lines.iter().filter_map(|line| other(line).or_else(|| heading(line).filter(|name| name.ends_with(')'))));
        for name in headings {
            reading.failures.add(name, None, None, "");
        }
    }
    if failed && reading.failures.is_empty() {
        // The start of the output, with the names, is lost. The stacks still give the locations.
        for (line, (file, number)) in lines.iter().filter_map(|line| Some((line, location(line)?))) {
            let name = line.rsplit_once(", in ").map_or(file, |(_, name)| name);
            reading.failures.add(name, Some(file), Some(number), "");
        }
    }
    if concluded {
        reading.judge();
        if failed {
            let all_loading = loading > 0 && loading == reading.failures.len();
            reading.says = if all_loading { Says::Broken } else { Says::Failed };
        }
        return Some(reading);
    }
    reading.says = Says::Failed;
    if reading.failures.is_empty() {
        return unloaded(lines, reading);
    }
    Some(reading)
}

/// unittest's report about a test name that it could not load.
#[derive(Default)]
struct UnloadedTest {
    is_one: bool,
    /// A project file was being loaded, so it exists and something in it failed.
    is_begun: bool,
}

impl UnloadedTest {
    /// Whether this line says that there is no such module, class or test.
    fn is_missing(&mut self, line: &str) -> bool {
        self.is_begun |= location(line).is_some();
        let is_gone = line.starts_with("ModuleNotFoundError: No module named ")
            || line.starts_with("AttributeError: ") && line.contains(" has no attribute ");
        self.is_one && !self.is_begun && is_gone
    }
}

/// A syntax error in a module named on the command line ends the runner itself.
fn unloaded(lines: &Lines<'_>, mut reading: Reading) -> Option<Reading> {
    let loader = lines.iter().any(|line| line.trim_start().starts_with("File \"") && line.contains("unittest/loader.py\""));
    let (file, number) = lines.iter().rev().filter(|_| loader).find_map(|line| location(line))?;
    let message = lines.iter().rev().find(|line| line.contains("Error: ") && !line.starts_with(' '))?;
    reading.failures.add(file, Some(file), Some(number), message);
    reading.says = Says::Broken;
    Some(reading)
}

/// A test in the progress output of `-v`; trial prints the result in brackets.
fn verdict(line: &str) -> Option<(&str, End)> {
    let (name, word) = line.rsplit_once(" ... ")?;
    let word = word.trim().trim_matches(['[', ']']);
    let end = match word {
        "ok" | "OK" => End::Passed,
        "FAIL" | "ERROR" | "unexpected success" => End::Failed,
        "expected failure" => End::Skipped,
        _ if word.starts_with("skipped") => End::Skipped,
        _ => return None,
    };
    Some((name, end))
}

fn heading(line: &str) -> Option<&str> {
    ["FAIL: ", "ERROR: ", "UNEXPECTED SUCCESS: "].iter().find_map(|start| line.strip_prefix(start))
}

fn location(line: &str) -> Option<(&str, u32)> {
    let rest = line.trim_start().strip_prefix("File \"")?;
    let (path, rest) = rest.split_once("\", line ")?;
    let foreign = ["/lib/python", "site-packages/", "<frozen", "/unittest/"].iter().any(|part| path.contains(part));
    if foreign { None } else { Some((path, leading_number(rest)? as u32)) }
}
