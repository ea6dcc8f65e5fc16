//! Gradle's test task.

use super::super::failures::{cut, tell};
use super::super::lines::Lines;
use super::{Framework, Reading, Says, counted, place};

pub(super) fn read(lines: &Lines<'_>) -> Option<Reading> {
    let mut reading = Reading::new(Framework::Gradle);
    let (mut built, mut open, mut failed_task, mut source, mut tests) = (None, false, None, Vec::new(), false);
    for (at, line) in lines.iter().enumerate() {
        if let Some(name) = line.strip_suffix(" FAILED").filter(|name| name.contains(" > ") && !name.starts_with([' ', '>'])) {
            reading.failures.add(name, None, None, "");
            open = true;
        } else if let Some(task) = line.strip_prefix("> Task ") {
            tests |= task.to_ascii_lowercase().contains("test");
            if let Some(task) = task.strip_suffix(" FAILED") {
                failed_task = Some(task);
            }
            open = false;
        } else if line.contains(" tests completed, ") || line.contains(" test completed, ") {
            let of = |word| counted(line, word).unwrap_or(0);
            let all = counted(line, "tests").or_else(|| counted(line, "test")).unwrap_or(0);
            reading.count(all.saturating_sub(of("failed") + of("skipped")), of("failed"), of("skipped"));
            reading.concluded = Some(at);
        } else if line.starts_with("BUILD SUCCESSFUL") || line.starts_with("BUILD FAILED") {
            built = Some((at, line.starts_with("BUILD SUCCESSFUL")));
        } else if let Some((head, message)) = line.split_once(": error: ") {
            source.extend(place(head).map(|(file, number)| (file, number, message)));
        } else if let Some((head, message)) = line.strip_prefix("e: ").and_then(|rest| rest.split_once(' ')) {
            source.extend(place(head).map(|(file, number)| (file, number, message)));
        } else if let Some(rest) = line.strip_prefix("> No tests found for given includes") {
            (reading.says, reading.reason, reading.concluded) = (Says::NothingRan, Some(cut(rest.trim(), 200)), Some(at));
            return Some(reading);
        } else if open && let Some(failure) = reading.failures.last_mut().filter(|_| line.starts_with("    ")) {
            let found = line.rsplit_once(" at ").and_then(|(_, rest)| place(rest)).or_else(|| place(line.rsplit('(').next()?));
            tell(failure, found, Some(line));
        }
    }
    let (end, success) = built?;
    if reading.counts.failed.is_some() {
        reading.judge();
        return Some(reading);
    }
    reading.concluded = tests.then_some(end);
    if success {
        return tests.then_some(reading);
    }
    if !reading.failures.is_empty() {
        reading.says = Says::Failed;
        return Some(reading);
    }
    let task = failed_task.filter(|task| task.contains("compile") || task.to_ascii_lowercase().contains("test"))?;
    for (file, number, message) in source {
        reading.failures.add(&format!("{file}:{number}"), Some(file), Some(number), message);
    }
    reading.says = if task.contains("compile") { Says::Broken } else { Says::Failed };
    (reading.concluded, reading.reason) = (Some(end), Some(format!("task {task} failed")));
    Some(reading)
}
