//! Ruby's Minitest and test-unit, including the Rails runner.

use super::super::failures::describe;
use super::super::lines::Lines;
use super::{Framework, Reading, counted, place};

pub(super) fn read(lines: &Lines<'_>) -> Option<Reading> {
    let mut reading = Reading::new(Framework::Minitest);
    let mut open = false;
    let mut expect = false;
    for (at, line) in lines.iter().enumerate() {
        let text = line.trim();
        if let Some(runs) = runs(line) {
            let of = |word| counted(line, word).unwrap_or(0);
            let failed = of("failures") + of("errors");
            let skipped = of("skips") + of("pendings") + of("omissions");
            reading.count_instead(runs.saturating_sub(failed + skipped), failed, skipped);
            (reading.concluded, open) = (Some(at), false);
        } else if let Some(name) = reported(line) {
            reading.failures.add(name, None, None, "");
            open = true;
        } else if is_heading(text) {
            expect = true;
        } else if expect && !text.is_empty() {
            let (name, at) = text.trim_end_matches(':').split_once(" [").unwrap_or((text.trim_end_matches(':'), ""));
            let (file, number) = place(at.trim_end_matches(']')).unzip();
            if name.contains('#') || name.contains('(') {
                reading.failures.add(name, file, number, "");
                open = true;
            }
            expect = false;
        } else if open && let Some(failure) = reading.failures.last_mut() {
            if text.is_empty() {
                open = !failure.message.is_empty() && failure.line.is_none();
                continue;
            }
            let found = place(text.split(":in ").next().unwrap_or(text))
                .filter(|(path, _)| path.ends_with(".rb") && !path.contains("/gems/"));
            describe(failure, found, found.is_none().then_some(text));
        }
    }
    reading.concluded?;
    reading.judge();
    Some(reading)
}

/// `5 runs, 5 assertions, 1 failures, 1 errors, 0 skips`.
fn runs(line: &str) -> Option<u64> {
    let starts = line.starts_with(|c: char| c.is_ascii_digit());
    let runs = counted(line, "runs").or_else(|| counted(line, "tests"))?;
    (starts && counted(line, "assertions").is_some() && counted(line, "failures").is_some() && counted(line, "errors").is_some())
        .then_some(runs)
}

/// The columns of minitest-reporters: `  test_total          FAIL (0.00s)`.
fn reported(line: &str) -> Option<&str> {
    let (head, time) = line.strip_prefix("  ")?.rsplit_once(" (")?;
    time.strip_suffix("s)")?.parse::<f64>().ok()?;
    let name = head.strip_suffix(" FAIL").or_else(|| head.strip_suffix(" ERROR"))?;
    Some(name.trim())
}

fn is_heading(text: &str) -> bool {
    let text = text.split_once(") ").filter(|(number, _)| number.parse::<u32>().is_ok()).map_or(text, |(_, rest)| rest);
    matches!(text, "Failure:" | "Error:")
}
