//! Test outcomes from the real output of real frameworks: each fixture is a command, its output and its exit code.
//!
//! `expected.txt` has one line per fixture: name, framework, state, counts (passed/failed/skipped), hidden, then the failures with their
//! locations. Run with `VERDONE_BLESS=1` to rewrite it, and compare the difference with the outputs.

#![expect(clippy::disallowed_methods, reason = "fixtures are files")]
#![expect(clippy::unwrap_used, reason = "a fixture that cannot be read is a failed test")]

use std::path::PathBuf;

use proptest::prelude::*;
use verdone_testlog::{TestOutcome, TestState};

struct Fixture {
    name: String,
    commands: Vec<Vec<String>>,
    exit: i32,
    output: String,
}

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/outputs")
}

fn fixtures() -> Vec<Fixture> {
    let mut names: Vec<String> = std::fs::read_dir(directory())
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str().and_then(|name| name.strip_suffix(".cmd")).map(str::to_owned))
        .collect();
    names.sort();
    names
        .into_iter()
        .map(|name| {
            let text = |end: &str| {
                String::from_utf8_lossy(&std::fs::read(directory().join(format!("{name}.{end}"))).unwrap()).into_owned()
            };
            let (commands, exit, output) =
                (simple_commands(text("cmd").trim()), text("exit").trim().parse().unwrap(), text("txt"));
            Fixture { name, commands, exit, output }
        })
        .collect()
}

/// The fixtures' commands are simple enough for this: quotes, lists and pipes, nothing nested.
fn simple_commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ' | ';' | '|' | '&' | '\n') => {
                commands.last_mut().unwrap().extend(word.take());
                if c != ' ' {
                    commands.push(Vec::new());
                }
            }
            (Some(_) | None, c) => word.get_or_insert_default().push(c),
        }
    }
    commands.last_mut().unwrap().extend(word);
    for command in &mut commands {
        // Redirections: `2>&1` was split at the `&`, so the rest is dropped.
        command.retain(|word| !word.contains('>') && word != "1");
    }
    commands.retain(|command| !command.is_empty());
    commands
}

fn read(fixture: &Fixture, output: &str) -> Option<TestOutcome> {
    verdone_testlog::read(&fixture.commands, Some(fixture.exit), output)
}

fn describe(name: &str, outcome: Option<&TestOutcome>) -> String {
    let Some(outcome) = outcome else { return format!("{name}: no test run\n") };
    let number = |count: Option<u64>| count.map_or_else(|| "-".to_owned(), |count| count.to_string());
    let counts = &outcome.counts;
    let mut text = format!(
        "{name}: {} {:?} {}/{}/{}{}\n",
        outcome.framework.map_or("unknown", |framework| framework.name()),
        outcome.state,
        number(counts.passed),
        number(counts.failed),
        number(counts.skipped),
        if outcome.hidden { " hidden" } else { "" }
    );
    if let Some(reason) = &outcome.reason {
        text.push_str(&format!("    reason: {reason}\n"));
    }
    for failure in &outcome.failures {
        let place = match (&failure.file, failure.line) {
            (Some(file), Some(line)) => format!("{file}:{line}"),
            (Some(file), None) => file.clone(),
            (None, _) => "nowhere".to_owned(),
        };
        text.push_str(&format!("    {} @ {place} | {}\n", failure.name, failure.message));
    }
    text
}

fn is_alarm(outcome: Option<&TestOutcome>) -> bool {
    outcome.is_some_and(|outcome| matches!(outcome.state, TestState::Failed | TestState::Broken))
}

#[test]
fn every_fixture_is_read_as_it_was_checked_by_eye() {
    let found: String =
        fixtures().iter().map(|fixture| describe(&fixture.name, read(fixture, &fixture.output).as_ref())).collect();
    let path = directory().join("expected.txt");
    if std::env::var_os("VERDONE_BLESS").is_some() {
        std::fs::write(&path, &found).unwrap();
    }
    let expected = std::fs::read_to_string(path).unwrap();
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.lines().count(), expected.lines().count());
}

/// A fixture's name says what really happened: `_fail` failed (hidden or not), `_pass` passed.
#[test]
fn failing_runs_are_recognised_and_named_and_passing_ones_never_alarm() {
    let (mut failing, mut recognised, mut named, mut passing, mut explained) = (0, 0, 0, 0, 0);
    let mut missed = Vec::new();
    for fixture in fixtures() {
        let outcome = read(&fixture, &fixture.output);
        if fixture.name.contains("_pass") || fixture.name.starts_with("nontest_") {
            passing += 1;
            assert!(!is_alarm(outcome.as_ref()), "{}: {outcome:?}", fixture.name);
            continue;
        }
        let state = outcome.as_ref().map(|outcome| outcome.state);
        // No test is to blame: no test was found, a threshold was missed, or an option does not exist.
        let reason = outcome.as_ref().and_then(|outcome| outcome.reason.as_ref());
        let nameless = outcome.as_ref().is_none_or(|outcome| outcome.failures.is_empty());
        if state == Some(TestState::NothingRan) || reason.is_some() && nameless {
            explained += 1;
            continue;
        }
        failing += 1;
        if is_alarm(outcome.as_ref()) && outcome.as_ref().is_some_and(|outcome| outcome.framework.is_some()) {
            recognised += 1;
            named += usize::from(!nameless);
        }
        if nameless {
            missed.push(fixture.name);
        }
    }
    assert!(failing > 440 && passing > 110 && explained < 60, "{failing} failing, {passing} passing, {explained} explained");
    assert!(recognised * 100 >= failing * 99, "{recognised} of {failing}: {missed:?}");
    assert!(named * 100 >= failing * 99, "{named} of {failing}: {missed:?}");
}

#[test]
fn a_hidden_failure_is_seen_and_an_open_one_is_not_called_hidden() {
    for fixture in fixtures() {
        let Some(outcome) = read(&fixture, &fixture.output).filter(|outcome| outcome.state == TestState::Failed) else {
            continue;
        };
        assert_eq!(outcome.hidden, fixture.exit == 0, "{}", fixture.name);
    }
}

#[test]
fn colours_and_line_ends_change_nothing() {
    for fixture in fixtures() {
        let expected = describe("", read(&fixture, &fixture.output).as_ref());
        let crlf = fixture.output.replace("\r\n", "\n").replace('\n', "\r\n");
        assert_eq!(describe("", read(&fixture, &crlf).as_ref()), expected, "{} with CRLF", fixture.name);
        let colour = "\u{1b}[39m\u{1b}[22m\n\u{1b}[2m\u{1b}[31m";
        let coloured = format!("\u{1b}[2m\u{1b}[31m{}", fixture.output.replace('\n', colour));
        assert_eq!(describe("", read(&fixture, &coloured).as_ref()), expected, "{} with colours", fixture.name);
    }
}

/// Tools keep the beginning and the end of a long output.
#[test]
fn failures_are_seen_when_the_middle_of_the_output_is_cut() {
    let (mut all, mut seen) = (0, 0);
    for fixture in fixtures().iter().filter(|fixture| fixture.name.contains("_fail") && !fixture.output.starts_with(['{', '<'])) {
        let lines: Vec<&str> = fixture.output.lines().collect();
        if lines.len() < 40 || !is_alarm(read(fixture, &fixture.output).as_ref()) {
            continue;
        }
        let cut = format!(
            "{}\n\n... [{} lines truncated] ...\n\n{}\n",
            lines[..10].join("\n"),
            lines.len() - 30,
            lines[lines.len() - 20..].join("\n")
        );
        all += 1;
        seen += usize::from(is_alarm(read(fixture, &cut).as_ref()));
    }
    assert!(all > 50 && seen * 100 >= all * 98, "{seen} of {all}");
}

/// Runners of several packages, and logs with timestamps, add a prefix to each line.
#[test]
fn failures_are_seen_behind_the_prefixes_of_other_tools() {
    for prefix in
        ["@scope/web:test: ", "packages/web test: ", "[0] ", "[web] ", "web-1  | ", "2026-01-02T03:04:05.678Z ", "[12:30:01] "]
    {
        let (mut all, mut same) = (0, 0);
        for fixture in fixtures().iter().filter(|fixture| fixture.name.contains("_fail") && !fixture.name.starts_with("mono_")) {
            let Some(plain) = read(fixture, &fixture.output).filter(|outcome| !outcome.failures.is_empty()) else { continue };
            if fixture.output.lines().count() < 4 {
                continue;
            }
            let prefixed = format!("{prefix}{}", fixture.output.trim_end().replace('\n', &format!("\n{prefix}")));
            all += 1;
            let found = read(fixture, &prefixed);
            same += usize::from(found.is_some_and(|found| found.state == plain.state && !found.failures.is_empty()));
        }
        assert!(all > 200 && same * 100 >= all * 95, "{prefix}: {same} of {all}");
    }
}

#[test]
fn output_of_commands_that_test_nothing_never_alarms_whatever_it_says() {
    for fixture in fixtures() {
        for command in [
            &["cat", "test.log"][..],
            &["grep", "-rn", "FAILED", "tests"],
            &["git", "log"],
            &["npm", "run", "lint"],
            &["echo", "pytest"],
        ] {
            for exit in [0, 1] {
                let found = verdone_testlog::read(&[command], Some(exit), &fixture.output);
                assert!(found.is_none(), "{command:?} over {}: {found:?}", fixture.name);
            }
        }
    }
}

/// The output of a passing run, in which one test printed the failure report of another framework.
#[test]
fn a_framework_that_answers_zero_itself_is_believed() {
    let printed: String =
        fixtures().iter().filter(|fixture| fixture.name.ends_with("_fail")).map(|fixture| fixture.output.clone()).collect();
    for command in
        [&["pytest"][..], &["npx", "jest"], &["go", "test", "./..."], &["cargo", "test"], &["bats", "t"], &["mvn", "test"]]
    {
        let found = verdone_testlog::read(&[command], Some(0), &printed);
        assert!(!is_alarm(found.as_ref()), "{command:?}: {found:?}");
    }
}

/// The exit code is that of another command, so only the output counts: a green summary is believed.
#[test]
fn passing_runs_never_alarm_behind_a_pipe_or_before_another_command() {
    for fixture in fixtures().iter().filter(|fixture| fixture.name.contains("_pass") && !fixture.name.starts_with("nontest_")) {
        for (after, exit) in [("tee", 0), ("true", 0), ("eslint", 1)] {
            let mut commands = fixture.commands.clone();
            commands.push(vec![after.to_owned()]);
            let found = verdone_testlog::read(&commands, Some(exit), &fixture.output);
            assert!(!is_alarm(found.as_ref()), "{} before {after}: {found:?}", fixture.name);
        }
        let found = verdone_testlog::read(&[["npm", "test"]], Some(0), &fixture.output);
        assert!(!is_alarm(found.as_ref()), "{} by npm test: {found:?}", fixture.name);
    }
}

/// Hiding the exit code does not hide a failure: the same output with exit code 0.
#[test]
fn failing_runs_are_seen_behind_a_pipe() {
    let (mut all, mut seen) = (0, 0);
    for fixture in fixtures().iter().filter(|fixture| fixture.name.contains("_fail")) {
        let Some(open) = read(fixture, &fixture.output).filter(|outcome| outcome.state == TestState::Failed) else { continue };
        let mut commands = fixture.commands.clone();
        commands.push(vec!["cat".to_owned()]);
        let found = verdone_testlog::read(&commands, Some(0), &fixture.output);
        // If the failure is not a test (coverage, a stray error), the counts alone say that all tests passed.
        if open.counts.failed == Some(0) {
            continue;
        }
        all += 1;
        seen += usize::from(
            found.is_some_and(|found| found.state == TestState::Failed && found.hidden && found.failures == open.failures),
        );
    }
    assert!(all > 250 && seen * 100 >= all * 98, "{seen} of {all}");
}

/// `npm test` does not say which framework it runs.
#[test]
fn failing_runs_are_recognised_by_their_output_alone() {
    let (mut all, mut same) = (0, 0);
    for fixture in fixtures().iter().filter(|fixture| fixture.name.contains("_fail") && fixture.exit != 0) {
        let Some(direct) = read(fixture, &fixture.output).filter(|outcome| !outcome.failures.is_empty()) else { continue };
        let found = verdone_testlog::read(&[["npm", "test"]], Some(1), &fixture.output);
        all += 1;
        let fits = found.as_ref().is_some_and(|found| {
            let by_format = ["tap", "junit", "xunit", "json"].iter().any(|format| fixture.name.contains(format));
            !found.failures.is_empty() && found.state == direct.state && (found.framework == direct.framework || by_format)
        });
        same += usize::from(fits);
    }
    assert!(all > 250 && same * 100 >= all * 95, "{same} of {all}");
}

#[test]
fn an_output_of_ten_megabytes_is_read_in_bounded_work() {
    // No clock needed: a reader that is not linear would not finish within a test's time limit.
    for line in [
        "not ok 1 - x\n",
        "FAIL a.test.js\n",
        "  1) a\n",
        "--- FAIL: T (0.0s)\n",
        "<testcase name=\"x\"><failure>\n",
        "a: b\n",
        "{\n",
        "\n",
        "● x\r",
        "= 1 failed in 1s =\n",
        "[\"fail\",{\n",
    ] {
        let output = line.repeat(10 * 1024 * 1024 / line.len());
        let outcome = verdone_testlog::read(&[["npm", "test"]], Some(1), &output).unwrap();
        assert!(outcome.failures.len() <= 200, "{line:?}");
        assert!(verdone_testlog::describe_outcome(&outcome).len() < 8000);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reading_never_panics(
        commands in prop::collection::vec(prop::collection::vec("(npm|npx|test|run|pytest|jest|-c|--|docker|sh|go|cargo|python|-m|timeout|=|é|[a-z-]{0,6})", 0..5), 0..4),
        exit in prop::option::of(-1..300_i32),
        pieces in prop::collection::vec(prop::sample::select(vec![
            "FAIL ", "● ", "Tests:", " 1 failed", "not ok ", "ok 1", "---", "...", "=== ", " ===", "in 0.1s", "\n", "\r", "\t", "é", "✖ ", "  1) ", ":", "(", ")", "[",
            "]", "%]", "::", "FAILED ", "<testsuite>", "<testcase name=\"", "<failure ", "&", ";", "{\"Action\":", "{", "\u{1b}[1G", "\u{1b}[", "Summary [", "] 2 tests run: ",
            "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; ", "─", "ℹ fail 1", "--- FAIL: ", "FAIL\t", ".go:3: ", "thread '", "panicked at ", "Result: ", "Files=1",
            "#", "1..", "99999999999999999999", "Ran ", "[ERROR] ", "<<< FAILURE!", ":[", " > ", "a.py", "\u{feff}", "| ", "test at ", "./a_spec.rb:1:",
        ]), 0..60),
    ) {
        let output = pieces.concat();
        let outcome = verdone_testlog::read(&commands, exit, &output);
        if let Some(outcome) = outcome {
            verdone_testlog::describe_outcome(&outcome);
        }
        verdone_testlog::read(&[["npm", "test"]], exit, &output);
    }

    #[test]
    fn reading_any_text_never_panics(output in "(?s).{0,300}", exit in prop::option::of(0..3_i32)) {
        verdone_testlog::read(&[["make", "test"]], exit, &output);
    }
}
