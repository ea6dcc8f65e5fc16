//! Reports that are one JSON value: Jest and Vitest, Mocha, `RSpec`.

use serde_json::Value;

use super::super::lines::Lines;
use super::{Framework, Reading, Says, TestCounts, place};

/// A report may follow other output, but few lines of that look like the start of a report.
const MOST_STARTS: usize = 8;

pub(super) fn read(lines: &Lines<'_>) -> Option<Reading> {
    if let Some(reading) = read_stream(lines) {
        return Some(reading);
    }
    let looks = |line: &str| {
        line.starts_with('{')
            && (line == "{"
                || line.contains("\"num")
                || line.contains("\"examples\"")
                || line.contains("\"stats\"")
                || line.contains("\"version\""))
    };
    let starts = lines.iter().enumerate().filter(|(_, line)| looks(line)).map(|(at, _)| at).take(MOST_STARTS);
    let mut readings = starts.into_iter().filter_map(|at| {
        let text = lines[at..].join("\n");
        let value = serde_json::Deserializer::from_str(&text).into_iter::<Value>().next()?.ok()?;
        jest(&value).or_else(|| mocha(&value)).or_else(|| rspec(&value))
    });
    let mut reading = readings.next()?;
    // A run has one report; the others belong to other runs.
    reading.earlier = readings.map(|more| more.counts).fold(reading.earlier, TestCounts::plus);
    (reading.concluded, reading.is_report) = (Some(lines.len() - 1), true);
    Some(reading)
}

fn jest(value: &Value) -> Option<Reading> {
    let number = |key: &str| value.get(key).and_then(Value::as_u64);
    let failed = number("numFailedTests")?;
    let suites_failed = number("numFailedTestSuites").unwrap_or(0);
    let mut reading = Reading::new(Framework::Jest);
    reading.count(
        number("numPassedTests").unwrap_or(0),
        failed,
        number("numPendingTests").unwrap_or(0) + number("numTodoTests").unwrap_or(0),
    );
    for file in list(value, "testResults") {
        let path = text(file, "name");
        let cases = list(file, "assertionResults");
        for case in cases.iter().filter(|case| text(case, "status") == "failed") {
            let message = list(case, "failureMessages").first().and_then(Value::as_str).unwrap_or_default();
            let line = case.get("location").and_then(|at| at.get("line")).and_then(Value::as_u64).map(|line| line as u32);
            let found = message.lines().find_map(super::stack_place).map(|(_, line)| line);
            let mut name: Vec<&str> =
                list(case, "ancestorTitles").iter().filter_map(Value::as_str).filter(|title| !title.is_empty()).collect();
            name.push(text(case, "title"));
            reading.failures.add(&name.join(" › "), Some(path), line.or(found), message.lines().next().unwrap_or_default());
        }
        let message = text(file, "message");
        // Old versions of Vitest report a file that did not load as passed.
        if cases.is_empty() && (text(file, "status") == "failed" || suites_failed > 0 && !message.is_empty()) {
            reading.failures.add(path, Some(path), None, message.trim().lines().next().unwrap_or_default());
        }
    }
    reading.judge();
    if failed == 0 && suites_failed > 0 {
        reading.says = Says::Broken;
    }
    Some(reading)
}

fn mocha(value: &Value) -> Option<Reading> {
    let stats = value.get("stats")?;
    let number = |key: &str| stats.get(key).and_then(Value::as_u64);
    let mut reading = Reading::new(Framework::Mocha);
    reading.count(number("passes")?, number("failures")?, number("pending").unwrap_or(0));
    for case in list(value, "failures") {
        mocha_failure(case, &mut reading);
    }
    reading.judge();
    Some(reading)
}

fn mocha_failure(case: &Value, reading: &mut Reading) {
    let error = case.get("err");
    let message = error.map_or("", |error| error.as_str().unwrap_or_else(|| text(error, "message")));
    let stack = error.map_or("", |error| text(error, "stack"));
    let stack = if stack.is_empty() { text(case, "stack") } else { stack };
    let line = stack.lines().find_map(super::stack_place).map(|(_, line)| line);
    let file = Some(text(case, "file")).filter(|file| !file.is_empty());
    reading.failures.add(text(case, "fullTitle"), file, line, message.lines().next().unwrap_or_default());
}

/// Mocha's json-stream: one event per line.
fn read_stream(lines: &Lines<'_>) -> Option<Reading> {
    let at = lines.iter().rposition(|line| line.starts_with("[\"end\",{"))?;
    let mut reading = Reading::new(Framework::Mocha);
    for end in lines.iter().filter(|line| line.starts_with("[\"end\",{")) {
        let end: Value = serde_json::from_str(end).ok()?;
        let number = |key: &str| end.get(1).and_then(|stats| stats.get(key)).and_then(Value::as_u64);
        reading.count_instead(number("passes")?, number("failures")?, number("pending").unwrap_or(0));
    }
    for line in lines.iter().filter(|line| line.starts_with("[\"fail\",{")) {
        if let Ok(event) = serde_json::from_str::<Value>(line)
            && let Some(case) = event.get(1)
        {
            mocha_failure(case, &mut reading);
        }
    }
    (reading.concluded, reading.is_report) = (Some(at), true);
    reading.judge();
    Some(reading)
}

fn rspec(value: &Value) -> Option<Reading> {
    let summary = value.get("summary")?;
    let number = |key: &str| summary.get(key).and_then(Value::as_u64);
    let (examples, failed) = (number("example_count")?, number("failure_count")?);
    let pending = number("pending_count").unwrap_or(0);
    let mut reading = Reading::new(Framework::Rspec);
    reading.count(examples.saturating_sub(failed + pending), failed, pending);
    for case in list(value, "examples").iter().filter(|case| text(case, "status") == "failed") {
        let line = case.get("line_number").and_then(Value::as_u64).map(|line| line as u32);
        let message = case.get("exception").map_or("", |error| text(error, "message"));
        let file = text(case, "file_path").trim_start_matches("./");
        reading.failures.add(text(case, "full_description"), Some(file), line, message.trim().lines().next().unwrap_or_default());
    }
    reading.judge();
    if number("errors_outside_of_examples_count").is_some_and(|errors| errors > 0) && failed == 0 {
        reading.says = Says::Broken;
        let said = list(value, "messages").iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n");
        let file = said
            .split_once("while loading ")
            .map(|(_, rest)| rest.split_whitespace().next().unwrap_or(rest).trim_end_matches('.'));
        let at = said.lines().find_map(|line| place(line.strip_prefix("# ")?.split(":in ").next()?));
        if let Some(file) = file.or(at.map(|(file, _)| file)) {
            reading.failures.add(file.trim_start_matches("./"), Some(file.trim_start_matches("./")), None, "");
        }
    }
    Some(reading)
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
