//! Gradle's test task.

use super::super::failures::{cut, describe};
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
            describe(failure, found, Some(line));
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

#[cfg(test)]
mod tests {
    use super::super::super::lines::split;
    use super::*;

    #[test]
    fn failing_tests_are_named_with_their_place() {
        let text = "> Task :compileTestJava\n> Task :test FAILED\n\nCartTest > total() FAILED\n    \
                    org.opentest4j.AssertionFailedError at CartTest.java:12\n\nCartTest > WhenEmpty > isZero() FAILED\n    \
                    java.lang.IllegalStateException at CartTest.java:20\n\n7 tests completed, 2 failed, 1 skipped\n\n\
                    FAILURE: Build failed with an exception.\n\nBUILD FAILED in 3s\n";
        let reading = read(&split(text)).unwrap();
        assert_eq!(
            (reading.says, reading.counts.passed, reading.counts.failed, reading.counts.skipped),
            (Says::Failed, Some(4), Some(2), Some(1))
        );
        let failures = reading.failures.into_list();
        assert_eq!(
            (failures[0].name.as_str(), failures[0].file.as_deref(), failures[0].line),
            ("CartTest > total()", Some("CartTest.java"), Some(12))
        );
        assert_eq!(failures[1].name, "CartTest > WhenEmpty > isZero()");
    }

    #[test]
    fn a_build_that_does_not_compile_is_broken_and_one_that_passes_is_not() {
        let broken =
            "> Task :compileTestJava FAILED\n/p/src/test/java/BadTest.java:2: error: incompatible types\n\nBUILD FAILED in 1s\n";
        let reading = read(&split(broken)).unwrap();
        assert_eq!((reading.says, reading.failures.into_list()[0].line), (Says::Broken, Some(2)));
        assert_eq!(read(&split("> Task :test\n\nBUILD SUCCESSFUL in 2s\n")).unwrap().says, Says::Passed);
        assert!(read(&split("> Task :lint FAILED\n\nBUILD FAILED in 2s\n")).is_none());
    }
}
