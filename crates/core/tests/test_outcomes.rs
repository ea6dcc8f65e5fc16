//! Test outcomes from the real output of real frameworks: each fixture is a command, its output and its exit code.
//!
//! `expected.txt` says what each fixture shows, a line each: name, framework, state, counts (passed/failed/skipped), hidden, then the
//! failures with their places. Run with `VERDONE_BLESS=1` to rewrite it, and read the difference against the outputs.

#![expect(clippy::disallowed_methods, reason = "fixtures are files")]

use std::path::PathBuf;

use proptest::prelude::*;
use verdone_core::test_outcome::{self, TestOutcome, TestState};

struct Fixture {
    name: String,
    commands: Vec<Vec<String>>,
    exit: i32,
    output: String,
}

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/test_outcomes")
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
            let text = |end: &str| String::from_utf8_lossy(&std::fs::read(directory().join(format!("{name}.{end}"))).unwrap()).into_owned();
            let (commands, exit, output) = (simple_commands(text("cmd").trim()), text("exit").trim().parse().unwrap(), text("txt"));
            Fixture { name, commands, exit, output }
        })
        .collect()
}

/// The commands of the fixtures are plain enough for this: quotes, lists and pipes, nothing nested.
fn simple_commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.get_or_insert_default().push(c),
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
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    commands.last_mut().unwrap().extend(word);
    for command in &mut commands {
        // Redirections: `2>&1` falls apart at the `&`, so what is left of it goes.
        command.retain(|word| !word.contains('>') && word != "1");
    }
    commands.retain(|command| !command.is_empty());
    commands
}

fn read(fixture: &Fixture, output: &str) -> Option<TestOutcome> {
    test_outcome::read(Some(&fixture.commands), Some(fixture.exit), output)
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

#[test]
fn every_fixture_is_read_as_it_was_checked_by_eye() {
    let found: String = fixtures().iter().map(|fixture| describe(&fixture.name, read(fixture, &fixture.output).as_ref())).collect();
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
