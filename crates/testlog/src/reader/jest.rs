//! Jest with its default, verbose and silent reports.

use super::super::failures::{Failures, describe};
use super::super::lines::Lines;
use super::{Framework, Reading, Says, counted, indent, stack_place, without_time};

pub(super) fn read(lines: &Lines<'_>) -> Option<Reading> {
    let mut reading = Reading::new(Framework::Jest);
    let mut marked = Failures::default();
    let mut failed_files = Failures::default();
    let mut file: Option<&str> = None;
    let mut suites: Option<(usize, &str)> = None;
    let mut summaries: Vec<(&str, &str)> = Vec::new();
    let mut lone: Option<(usize, &str)> = None;
    let (mut broken, mut nothing, mut open) = (0_u64, None, false);
    for (at, line) in lines.iter().enumerate() {
        if let Some(path) = suite(line, "FAIL ") {
            (file, open) = (Some(path), false);
            failed_files.add(path, file, None, "");
        } else if suite(line, "PASS ").is_some() {
            (file, open) = (None, false);
        } else if line.starts_with("Test Suites:") {
            suites = Some((at, line));
        } else if line.starts_with("Tests:") && line.contains(" total") {
            match suites.take().filter(|(seen, _)| at - seen <= 2) {
                Some((_, suites)) => {
                    summaries.push((suites, line));
                    reading.conclude(at);
                }
                None => lone = Some((at, line)),
            }
            open = false;
        } else if line.starts_with("No tests found, exiting with code") {
            nothing = Some(at);
        } else if line.starts_with("Jest: ") && line.contains("not met") {
            reading.reason = Some(line.to_string());
        } else if let Some(title) = title(line) {
            open = !matches!(
                title,
                "Console" | "Cannot log after tests are done. Did you forget to wait for something async in your test?"
            );
            if open && title == "Test suite failed to run" {
                broken += 1;
                reading.failures.add(file.unwrap_or(title), file, None, "");
            } else if open && title.starts_with("process.exit called with ") {
                // It ends Jest immediately, before the file's heading. The stack shows the file.
                let stack = lines[at..].iter().take(40).find_map(|line| stack_place(line));
                let (found, number) = stack.unzip();
                reading.failures.add(found.or(file).unwrap_or(title), found.or(file), number, title);
            } else if open {
                reading.failures.add(title, file, None, "");
            }
        } else if let Some(name) = line.trim_start().strip_prefix("✕ ").filter(|_| indent(line) >= 2) {
            marked.add(without_time(name), file, None, "");
        } else if open && let Some(failure) = reading.failures.last_mut() {
            match stack_place(line) {
                Some(place) => describe(failure, Some(place), None),
                None if indent(line) >= 4 && !line.trim().is_empty() => describe(failure, None, Some(line)),
                None => {}
            }
        }
    }
    if summaries.is_empty()
        && let Some((at, line)) = lone
    {
        summaries.push(("", line));
        (reading.concluded, reading.is_partial) = (Some(at), true);
    }
    if reading.failures.is_empty() {
        reading.failures = marked;
    }
    if summaries.is_empty() {
        if let Some(at) = nothing {
            (reading.concluded, reading.says) = (Some(at), Says::NothingRan);
            return Some(reading);
        }
        reading.says = if broken > 0 { Says::Broken } else { Says::Failed };
        return (!reading.failures.is_empty()).then_some(reading);
    }
    if reading.failures.is_empty() {
        // The start of the output, with the names, is lost. The stacks still give the locations.
        for (file, line) in lines.iter().filter_map(|line| stack_place(line)).filter(|(file, _)| is_test_file(file)) {
            reading.failures.add(file, Some(file), Some(line), "");
        }
    }
    if reading.failures.is_empty() {
        reading.failures = failed_files;
    }
    let mut suites_failed = 0;
    for (suites, tests) in summaries {
        suites_failed += counted(suites.trim_start_matches("Test Suites:"), "failed").unwrap_or(0);
        let of = |word| counted(tests.trim_start_matches("Tests:"), word).unwrap_or(0);
        reading.count(of("passed"), of("failed"), of("skipped") + of("todo") + of("pending"));
    }
    reading.judge();
    if reading.counts.failed == Some(0) && suites_failed > 0 {
        // Files that did not load have no tests to count.
        reading.count(0, suites_failed, 0);
        reading.says = Says::Broken;
    }
    Some(reading)
}

fn suite<'l>(line: &'l str, mark: &str) -> Option<&'l str> {
    let rest = without_time(line.strip_prefix(mark)?);
    // A project name may precede the path.
    let path = rest.rsplit(' ').next()?;
    (path.contains('.') && !path.ends_with('.')).then_some(path)
}

pub(super) fn is_test_file(path: &str) -> bool {
    path.contains(".test.") || path.contains(".spec.") || path.contains("__tests__/")
}

fn title(line: &str) -> Option<&str> {
    let title = line.trim_start().strip_prefix("● ").filter(|_| indent(line) <= 2)?;
    Some(title.trim())
}
