//! cargo nextest.

use super::super::failures::Failures;
use super::super::lines::Lines;
use super::cargo::{compile_error, panicked, tell_panic};
use super::{Framework, Reading, Says, counted};

const BAD: [&str; 9] = ["FAIL", "TIMEOUT", "TERMINATING", "SIGABRT", "SIGSEGV", "SIGKILL", "SIGTERM", "ABORT", "LEAK-FAIL"];

pub(super) fn read(lines: &Lines<'_>) -> Option<Reading> {
    let mut reading = Reading::new(Framework::Nextest);
    let mut final_list = Failures::default();
    let mut summary: Option<&str> = None;
    for (at, line) in lines.iter().enumerate() {
        let text = line.trim_start();
        if let Some((_, counts)) =
            text.strip_prefix("Summary [").and_then(|rest| rest.split_once("] ")).filter(|(_, counts)| counts.contains(" run: "))
        {
            (reading.concluded, summary) = (Some(at), Some(counts));
            let of = |word| counted(counts.split_once(" run: ").map_or(counts, |(_, rest)| rest), word).unwrap_or(0);
            let failed = of("failed") + of("timed");
            reading.count(of("passed"), failed, of("skipped"));
        } else if let Some((binary, name)) = status(text) {
            let list = if summary.is_some() { &mut final_list } else { &mut reading.failures };
            list.add(&format!("{binary} {name}"), None, None, "");
        } else if panicked(line).is_some() {
            let next = lines.get(at + 1).map(|next| next.trim());
            tell_panic(&mut reading, line, next);
        }
    }
    if summary.is_none() {
        if let Some((at, what)) = compile_error(lines, &mut reading) {
            (reading.concluded, reading.says, reading.reason) = (Some(at), Says::Broken, Some(what));
            return lines.iter().any(|line| line.contains("nextest") || line.contains("--no-run")).then_some(reading);
        }
        reading.says = Says::Failed;
        return (!reading.failures.is_empty()).then_some(reading);
    }
    // With retries a test may have passed in the end. If there is a list after the summary, it is authoritative.
    let mut failures = Failures::default();
    let known = std::mem::take(&mut reading.failures).into_list();
    let only: Option<Vec<_>> = (!final_list.is_empty()).then(|| final_list.iter().map(|failure| failure.name.clone()).collect());
    for failure in &known {
        if only.as_ref().is_none_or(|only| only.contains(&failure.name)) {
            failures.add(&failure.name, failure.file.as_deref(), failure.line, &failure.message);
        }
    }
    for failure in final_list.into_list() {
        if !known.iter().any(|known| known.name == failure.name) {
            failures.add(&failure.name, None, None, "");
        }
    }
    reading.failures = failures;
    reading.judge();
    Some(reading)
}

/// `FAIL [   0.092s] (2/7) crate::binary name`.
fn status(text: &str) -> Option<(&str, &str)> {
    let text = match text.strip_prefix("TRY ") {
        Some(rest) => rest.split_once(' ')?.1.trim_start(),
        None => text,
    };
    let (word, rest) = text.split_once(" [")?;
    let word = word.trim();
    if !BAD.contains(&word) && word != "FAIL + LEAK" {
        return None;
    }
    let (time, rest) = rest.split_once(']')?;
    time.trim().trim_start_matches('>').strip_suffix('s')?.parse::<f64>().ok()?;
    let rest = rest.trim_start();
    let rest = match rest.strip_prefix('(') {
        Some(inner) => inner.split_once(')')?.1.trim_start(),
        None => rest,
    };
    rest.split_once(' ')
}
