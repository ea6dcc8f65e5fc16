//! Maven Surefire and Failsafe.

use super::super::failures::{Failures, cut};
use super::super::lines::Lines;
use super::{Framework, Reading, Says, labelled, leading_number};

pub(super) fn read(lines: &Lines<'_>) -> Option<Reading> {
    let mut reading = Reading::new(Framework::Surefire);
    let mut marked = Failures::default();
    let any_results = lines.iter().any(|line| line.ends_with("Results:") || line.ends_with("Results :"));
    let mut totals: Vec<(usize, bool, &str)> = Vec::new();
    let (mut in_results, mut in_list, mut nothing, mut broken, mut crashed, mut module) = (false, false, None, None, None, None);
    for (at, line) in lines.iter().enumerate() {
        let (level, text) = level(line);
        let trimmed = text.trim();
        if trimmed == "Results:" || trimmed == "Results :" {
            (in_results, in_list) = (true, false);
        } else if let Some(rest) = text.strip_prefix("Tests run: ") {
            let whole = text.contains("Skipped:") && !text.contains("<<<");
            if text.contains("Time elapsed") {
                in_list = false;
            } else if whole && (level.is_some() || in_results) {
                totals.push((at, in_results, rest));
                (in_results, in_list) = (false, false);
            }
        } else if matches!(trimmed, "Failures:" | "Errors:" | "Failed tests:" | "Tests in error:") {
            in_list = in_results || level == Some("ERROR") && !any_results;
        } else if let Some(entry) = text.strip_prefix("Failed tests:   ").or_else(|| text.strip_prefix("Tests in error:   ")) {
            in_list = in_results;
            if in_list {
                add_entry(&mut reading.failures, entry);
            }
        } else if in_list && text.starts_with("  ") && !trimmed.is_empty() {
            // Deeper lines repeat the runs of a parameterised or retried test.
            if !text.starts_with("    ") || reading.failures.is_empty() {
                add_entry(&mut reading.failures, trimmed);
            }
        } else if let Some((name, _)) = text.split_once(" <<< FAILURE!").or_else(|| text.split_once(" <<< ERROR!")) {
            let name = name.split("  Time elapsed").next().unwrap_or(name);
            let name = name.split(" -- Time elapsed").next().unwrap_or(name);
            let message = lines.get(at + 1).map_or("", |next| next.trim());
            marked.add(name.trim(), None, None, message);
        } else if trimmed == "Crashed tests:" {
            crashed = lines.get(at + 1).map(|next| self::level(next).1.trim());
        } else if trimmed.starts_with("COMPILATION ERROR") {
            broken = Some((at, "compilation error".to_owned()));
        } else if let Some((file, number, message)) = broken.as_ref().and_then(|_| compiled(text)) {
            reading.failures.add(&format!("{file}:{number}"), Some(file), Some(number), message);
        } else if trimmed.contains("No tests were executed!")
            || trimmed.contains("No tests matching pattern")
            || trimmed == "No tests to run."
        {
            nothing = Some(at);
        } else if level == Some("ERROR")
            && (trimmed.starts_with("Failed to execute goal")
                || trimmed.starts_with("Unknown lifecycle phase")
                || trimmed.starts_with("Non-resolvable"))
        {
            reading.reason = Some(cut(trimmed, 200));
            // If the report was cut off, only the module is named.
            let project = trimmed.split_once(" on project ").and_then(|(_, rest)| rest.split_once(": There are test failures"));
            module = project.map(|(project, _)| project).or(module);
        }
    }
    if reading.failures.is_empty() {
        reading.failures = marked;
    }
    // Totals under a heading are Maven's own. If a filter removed all headings, the other totals count too.
    let headed = totals.iter().any(|(_, headed, _)| *headed);
    for (at, _, text) in totals.into_iter().filter(|(_, own, _)| *own || !headed) {
        let of = |label| labelled(text, label).unwrap_or(0);
        let failed = of("Failures:") + of("Errors:");
        if headed || failed == 0 || !reading.failures.is_empty() || reading.reason.is_some() {
            let tests = leading_number(text).unwrap_or(0);
            reading.count(tests.saturating_sub(failed + of("Skipped:")), failed, of("Skipped:"));
            reading.concluded = Some(at);
        }
    }
    if let Some(test) = crashed.filter(|_| reading.failures.is_empty()) {
        reading.failures.add(test, None, None, "the test JVM exited");
        (reading.says, reading.concluded) = (Says::Failed, reading.concluded.or(Some(lines.len() - 1)));
        return Some(reading);
    }
    if let Some(module) = module.filter(|_| reading.failures.is_empty() && reading.counts.failed.unwrap_or(0) == 0) {
        reading.failures.add(module, None, None, "there are test failures");
        (reading.says, reading.concluded) = (Says::Failed, reading.concluded.or(Some(lines.len() - 1)));
        return Some(reading);
    }
    if let Some((at, what)) = broken {
        (reading.concluded, reading.says, reading.reason) = (Some(at), Says::Broken, Some(what));
        return Some(reading);
    }
    if reading.concluded.is_some() {
        reading.judge();
        return Some(reading);
    }
    if let Some(at) = nothing {
        (reading.concluded, reading.says) = (Some(at), Says::NothingRan);
        return Some(reading);
    }
    if reading.reason.is_some() && reading.failures.is_empty() {
        reading.says = Says::Broken;
        reading.concluded = lines.iter().rposition(|line| line.contains("BUILD FAILURE"));
        return Some(reading);
    }
    reading.says = Says::Failed;
    (!reading.failures.is_empty()).then_some(reading)
}

fn level(line: &str) -> (Option<&str>, &str) {
    match line.strip_prefix('[').and_then(|rest| rest.split_once("] ").or_else(|| rest.split_once(']'))) {
        Some((level @ ("INFO" | "ERROR" | "WARNING" | "WARN"), text)) => (Some(level), text),
        Some(_) | None => (None, line),
    }
}

/// `CartTest.total:4 expected: <3> but was: <2>`, `CartTest.boom:6 » IllegalState boom`, `total(shop.CartTest): message`.
fn add_entry(failures: &mut Failures, entry: &str) {
    let (head, message) = entry.split_once(' ').unwrap_or((entry, ""));
    let message = message.trim_start_matches("» ");
    if let Some((name, rest)) = head.split_once(':') {
        let line = leading_number(rest).map(|line| line as u32);
        let class = name.split(['.', '$']).next().unwrap_or(name);
        let file = line.map(|_| format!("{class}.java"));
        failures.add(name, file.as_deref(), line, message);
    } else {
        failures.add(head.trim_end_matches(':'), None, None, message);
    }
}

/// `/src/BadTest.java:[2,36] message`.
fn compiled(text: &str) -> Option<(&str, u32, &str)> {
    let (file, rest) = text.split_once(":[")?;
    let (at, message) = rest.split_once("] ")?;
    Some((file, leading_number(at)? as u32, message))
}
