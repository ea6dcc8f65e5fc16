//! `bun test`.

use super::super::failures::describe;
use super::super::lines::Lines;
use super::{Framework, Reading, Says, leading_number, stack_place, without_time};

pub(super) fn read(lines: &Lines<'_>) -> Option<Reading> {
    let mut reading = Reading::new(Framework::Bun);
    let (mut pass, mut fail, mut skip, mut errors) = (None, None, 0, 0);
    let mut last_sum = 0;
    let mut file: Option<&str> = None;
    let (mut message, mut found) = ("", None);
    for (at, line) in lines.iter().enumerate() {
        let text = line.trim();
        if let Some(name) = line.strip_prefix("(fail) ").or_else(|| line.strip_prefix("✗ ")) {
            reading.failures.add(without_time(name), file, None, message);
            if let Some(failure) = reading.failures.last_mut() {
                describe(failure, found, None);
            }
            (message, found) = ("", None);
        } else if line.starts_with("(pass) ") || line.starts_with("✓ ") {
            (message, found) = ("", None);
        } else if let Some(path) = line.strip_suffix(':').filter(|path| path.contains('.') && !path.contains(' ')) {
            file = Some(path);
        } else if let Some(rest) = line.strip_prefix("error: ") {
            message = rest;
        } else if let Some(place) = stack_place(line) {
            found = found.or(Some(place));
        } else if let (Some(number), Some(word)) =
            (leading_number(text), text.split(' ').nth(1).filter(|_| text.split(' ').count() == 2))
        {
            // The sums are on consecutive lines; a test may print a single one.
            let is_next = last_sum + 1 == at;
            last_sum = if is_next || word == "pass" { at } else { last_sum };
            match word {
                "pass" => {
                    if let (Some(pass), Some(fail)) = (pass, fail.take()) {
                        reading.count_instead(pass, fail, skip);
                    }
                    (pass, skip, reading.concluded) = (Some(number), 0, Some(at));
                }
                "fail" if is_next => fail = Some(number),
                "skip" | "todo" if is_next => skip += number,
                "error" | "errors" if is_next => errors += number,
                _ => {}
            }
        }
    }
    let ran = lines.iter().any(|line| line.starts_with("Ran ") && line.contains(" across "));
    if let (Some(pass), Some(fail), true) = (pass, fail, ran) {
        reading.count_instead(pass, fail, skip);
        reading.judge();
        if errors > 0 && reading.failures.is_empty() {
            reading.says = Says::Broken;
            reading.failures.add(file.unwrap_or("loading"), file, None, message);
        }
        return Some(reading);
    }
    if !lines.iter().any(|line| line.starts_with("bun test v")) {
        return None;
    }
    if let Some(at) =
        lines.iter().position(|line| line.starts_with("No tests found") || line.contains("did not match any test files"))
    {
        (reading.concluded, reading.says) = (Some(at), Says::NothingRan);
        return Some(reading);
    }
    reading.says = Says::Failed;
    (reading.concluded, reading.reason) = (None, None);
    (!reading.failures.is_empty()).then_some(reading)
}
