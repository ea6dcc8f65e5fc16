//! Bats as printed on a terminal. The TAP reader handles its TAP.

use super::super::failures::describe;
use super::super::lines::Lines;
use super::{Framework, Reading, Says, counted, leading_number, without_time};

pub(super) fn read(lines: &Lines<'_>) -> Option<Reading> {
    let summary = lines.iter().enumerate().rev().find(|(_, line)| is_summary(line));
    let end = summary.map_or(lines.len(), |(end, _)| end);
    let mut reading = Reading::new(Framework::Bats);
    let mut file: Option<&str> = None;
    for line in &lines[..end] {
        if line.ends_with(".bats") && !line.starts_with(' ') {
            file = Some(line);
        } else if let Some(name) = line.strip_prefix(" ✗ ") {
            let name = without_time(name);
            let name = match name.rsplit_once(" [") {
                Some((rest, time)) if time.trim_end_matches(']').parse::<u64>().is_ok() => rest,
                Some(_) | None => name,
            };
            reading.failures.add(name, file, None, "");
        } else if let Some(failure) = reading.failures.last_mut() {
            let text = line.trim();
            if let Some((head, rest)) = text.split_once(", line ").filter(|(head, _)| head.contains("file ")) {
                let file = head.rsplit("file ").next().unwrap_or(head);
                describe(failure, leading_number(rest).map(|line| (file, line as u32)), None);
            } else if text.ends_with("failed") || text.contains("' failed with") {
                describe(failure, None, Some(text));
            }
        }
    }
    if summary.is_none() {
        // The end was cut off. A mark with a location below it was not printed by a test.
        reading.says = Says::Failed;
        let placed = reading.failures.iter().any(|failure| failure.line.is_some());
        return placed.then_some(reading);
    }
    for summary in lines.iter().filter(|line| is_summary(line)) {
        let of = |word| counted(summary, word).unwrap_or(0);
        let failed = of("failure") + of("failures");
        let tests = of("tests") + of("test");
        reading.count_instead(tests.saturating_sub(failed + of("skipped")), failed, of("skipped"));
    }
    reading.concluded = Some(end);
    reading.judge();
    Some(reading)
}

/// `4 tests, 2 failures, 1 skipped`, optionally with a duration.
fn is_summary(line: &str) -> bool {
    let tests = counted(line, "tests").or_else(|| counted(line, "test"));
    let failures = counted(line, "failures").or_else(|| counted(line, "failure"));
    line.starts_with(|c: char| c.is_ascii_digit())
        && tests.is_some()
        && failures.is_some()
        && !line.contains("assertion")
        && line.len() < 100
}
