//! Vitest with its default, verbose, dot and basic reports.

use super::super::failures::{Failures, describe};
use super::super::lines::Lines;
use super::jest::is_test_file;
use super::{Framework, Reading, Says, annotations, counted, own, place, without_time};

pub(super) fn read(lines: &Lines<'_>) -> Option<Reading> {
    let mut reading = Reading::new(Framework::Vitest);
    let mut marked = Failures::default();
    let mut files: Option<(usize, &str)> = None;
    let mut summaries: Vec<(&str, &str)> = Vec::new();
    let mut lone: Option<(usize, &str)> = None;
    let (mut nothing, mut errors, mut open, mut stray) = (None, 0_u64, 0_usize, None);
    for (at, line) in lines.iter().enumerate() {
        let text = line.trim_start();
        if let Some(name) = text.strip_prefix("FAIL  ").filter(|_| line.len() - text.len() <= 2) {
            let (file, name) = split(name);
            reading.failures.add(name, Some(file), None, "");
            open = at + 1;
        } else if let Some(rest) = text.strip_prefix("Test Files  ") {
            (files, open) = (Some((at, rest)), 0);
        } else if let Some(rest) = text.strip_prefix("Tests  ").filter(|rest| rest.contains('(') || *rest == "no tests") {
            match files.take().filter(|(seen, _)| at - seen <= 2) {
                Some((_, files)) => {
                    summaries.push((files, rest));
                    reading.conclude(at);
                }
                None => lone = Some((at, rest)),
            }
        } else if let Some(rest) = text.strip_prefix("Errors  ").filter(|_| reading.concluded.is_some_and(|seen| at - seen <= 3))
        {
            errors += counted(rest, "error").or_else(|| counted(rest, "errors")).unwrap_or(0);
        } else if text.starts_with("No test files found, exiting with code") {
            nothing = Some(at);
        } else if let Some(name) = text.strip_prefix("× ").or_else(|| text.strip_prefix("✗ ")).filter(|_| line.starts_with(' '))
        {
            let (file, name) = split(without_time(name));
            marked.add(name, (file != name).then_some(file), None, "");
        } else if text.starts_with("⎯⎯") {
            if text.contains("Unhandled") || text.contains("Uncaught") {
                reading.reason = Some(text.trim_matches(['⎯', ' ']).to_owned());
                stray = Some(at);
            } else if text.contains("Unexpected Exit") {
                stray = Some(at);
            }
            open = 0;
        } else if open > 0
            && let Some(failure) = reading.failures.last_mut()
        {
            match text.strip_prefix("❯ ").and_then(|rest| place(rest.rsplit(' ').next()?)).and_then(own) {
                Some(found) => describe(failure, Some(found), None),
                None if !text.is_empty() && !text.starts_with("❯ ") => describe(failure, None, Some(text)),
                None => {}
            }
        } else if let Some(text) =
            text.strip_prefix("Error: ").filter(|_| reading.reason.as_deref().is_some_and(|reason| reason.starts_with("Un")))
        {
            reading.reason = Some(format!("unhandled error: {text}"));
        }
    }
    if summaries.is_empty()
        && let Some((at, tests)) = lone
    {
        summaries.push(("", tests));
        (reading.concluded, reading.is_partial) = (Some(at), true);
    }
    if reading.failures.is_empty() {
        reading.failures = marked;
    }
    if let Some(at) = stray.filter(|_| reading.failures.is_empty()) {
        outside(&lines[at..], &mut reading.failures);
    }
    if reading.failures.is_empty() && summaries.is_empty() {
        annotations(lines, &mut reading.failures);
    }
    if summaries.is_empty() {
        if let Some(at) = nothing {
            (reading.concluded, reading.says) = (Some(at), Says::NothingRan);
            return Some(reading);
        }
        reading.says = Says::Failed;
        return (!reading.failures.is_empty()).then_some(reading);
    }
    if reading.failures.is_empty() {
        // The start of the output, with the names, is lost. The stacks still give the locations.
        let places = lines.iter().filter_map(|line| place(line.trim_start().strip_prefix("❯ ")?.rsplit(' ').next()?));
        for (file, line) in places.filter(|(file, _)| is_test_file(file)) {
            reading.failures.add(file, Some(file), Some(line), "");
        }
    }
    let mut files_failed = 0;
    for (files, tests) in summaries {
        files_failed += counted(files, "failed").unwrap_or(0);
        let of = |word| counted(tests, word).unwrap_or(0);
        reading.count(of("passed"), of("failed"), of("skipped") + of("todo") + expected_to_fail(tests));
    }
    reading.judge();
    if reading.counts.failed == Some(0) && files_failed > 0 {
        // A hook that threw is listed with a suite's name, a file that did not load with its own.
        reading.count(0, files_failed, 0);
        let loaded = reading.failures.iter().any(|failure| failure.file.as_ref() != Some(&failure.name));
        reading.says = if loaded { Says::Failed } else { Says::Broken };
    }
    if errors > 0 && reading.says < Says::Failed {
        reading.count(0, errors, 0);
        reading.says = Says::Failed;
    }
    Some(reading)
}

/// `1` in `2 passed | 1 expected fail (3)`.
fn expected_to_fail(tests: &str) -> u64 {
    tests
        .split('|')
        .find_map(|part| part.split_once(" expected fail"))
        .map_or(0, |(number, _)| number.trim().parse().unwrap_or(0))
}

/// Adds an error outside any test, with the file named in the report or the stack.
fn outside(lines: &[std::borrow::Cow<'_, str>], failures: &mut Failures) {
    let origin = lines.iter().find_map(|line| line.trim_start().strip_prefix("This error originated in \"")?.split('"').next());
    let stack = lines.iter().find_map(|line| place(line.trim_start().strip_prefix("❯ ")?.rsplit(' ').next()?).and_then(own));
    let message = lines.iter().map(|line| line.trim()).find(|line| line.contains("Error: ")).unwrap_or_default();
    let (file, line) = stack.unzip();
    if let Some(name) = origin.or(file) {
        failures.add(name, origin.or(file), line.filter(|_| origin.is_none() || origin == file), message);
    }
}

/// The file and test name in `|project| path > suite > test`, `path [ path ]`.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let text = match text.strip_prefix('|').and_then(|rest| rest.split_once("| ")) {
        Some((_, rest)) => rest.trim_start(),
        None => text,
    };
    if let Some((file, _)) = text.split_once(" [ ") {
        return (file, file);
    }
    match text.split_once(" > ") {
        Some((file, name)) if file.contains('.') => (file, name),
        Some(_) | None => (text, text),
    }
}
