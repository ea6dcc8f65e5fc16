//! Combines the command, the exit code and the readings of the output into one outcome.

use std::borrow::Cow;

use super::command::{Kind, Ran, classify};
use super::failures::cut;
use super::lines::{self, Lines};
use super::reader::{self, Reading, Says};
use super::{Framework, TestCounts, TestFailure, TestOutcome, TestState};

pub(super) fn outcome(ran: &Ran, exit_code: Option<i32>, output: &str) -> Option<TestOutcome> {
    let mut outcome = read(ran, exit_code, output)?;
    if outcome.state >= TestState::Failed && outcome.failures.is_empty() && outcome.reason.is_none() {
        // No test names: `tail` cut them off, or they were never printed. The targets on the command line are still known.
        let message = "the output names no test";
        let named =
            |target: &String| TestFailure { name: cut(target, 300), message: message.to_owned(), ..TestFailure::default() };
        outcome.failures = ran.targets.iter().take(5).map(named).collect();
        if let Some(code) = exit_code.filter(|code| *code != 0 && outcome.failures.is_empty()) {
            outcome.reason = Some(format!("exited with code {code} and named no test"));
        }
    }
    if let (TestState::Broken, true, Some(reason)) = (outcome.state, outcome.failures.is_empty(), &outcome.reason) {
        // A missing file or package: blame the targets that the reason mentions.
        let speaks = |target: &&String| target.len() > 2 && reason.contains(target.rsplit('/').next().unwrap_or(target));
        let named = |target: &String| TestFailure { name: cut(target, 300), message: reason.clone(), ..TestFailure::default() };
        outcome.failures = ran.targets.iter().filter(speaks).take(5).map(named).collect();
    }
    Some(outcome)
}

fn read(ran: &Ran, exit_code: Option<i32>, output: &str) -> Option<TestOutcome> {
    let lines = lines::split(output);
    let own = ran.exit_is_its_own;
    let passed = exit_code == Some(0);
    let stripped = lines::without_prefixes(&lines);
    let mut reading = stripped
        .as_ref()
        .and_then(|lines| pick(ran, exit_code, lines).filter(|reading| reading.concluded.is_some()))
        .or_else(|| pick(ran, exit_code, &lines))
        .or_else(|| stripped.as_ref().and_then(|lines| pick(ran, exit_code, lines)));
    // A run has one summary, at its end. A failing summary before it was printed by a test.
    if (passed || !own || is_direct(ran))
        && ran.kinds.len() == 1
        && stripped.is_none()
        && let Some(before) = reading.as_ref().filter(|reading| reading.says >= Says::Failed).and_then(|reading| reading.before)
        && echoed(&lines).1 <= 1
    {
        let last = pick(ran, exit_code, &lines[before + 1..].to_vec()).map(|mut last| {
            last.concluded = last.concluded.map(|at| at + before + 1);
            last
        });
        // If the last summary fails too, nothing is hidden, and the names may appear anywhere.
        reading = last.filter(|last| last.says < Says::Failed).or(reading);
    }
    match reading {
        None => without_reading(ran, exit_code, &lines),
        // Single lines prove nothing if the command may not have run tests at all.
        Some(reading) if ran.only_loose() && (reading.concluded.is_none() || scripts_test_nothing(&lines)) => None,
        Some(reading) => match reading.says {
            // The framework itself exited with 0, so apparent failures were printed by a test.
            Says::Failed | Says::Broken if passed && own && is_direct(ran) => Some(TestOutcome {
                framework: Some(reading.framework),
                state: TestState::Passed,
                counts: TestCounts::default(),
                failures: Vec::new(),
                reason: None,
                hidden: false,
            }),
            // A script's exit code 0 outweighs failure lines without a summary.
            Says::Failed | Says::Broken if passed && own && reading.concluded.is_none() => {
                Some(reading.into_outcome(TestState::Passed, false))
            }
            Says::Failed => Some(reading.into_outcome(TestState::Failed, passed)),
            Says::Broken => Some(reading.into_outcome(TestState::Broken, passed)),
            Says::NothingRan => Some(reading.into_outcome(TestState::NothingRan, false)),
            Says::Passed if passed || !own => Some(reading.into_outcome(TestState::Passed, false)),
            Says::Passed if ran.only_loose() => Some(reading.into_outcome(TestState::Passed, false)),
            Says::Passed if exit_code.is_none() => Some(reading.into_outcome(TestState::Passed, false)),
            Says::Unfinished if passed || !own || exit_code.is_none() => without_reading(ran, exit_code, &lines),
            Says::Unfinished | Says::Passed => {
                // Lines below the summary were not printed by a test.
                let below = reading.concluded.filter(|_| stripped.is_none()).and_then(|at| lines.get(at + 1..));
                let below = below.and_then(|below| why(exit_code, below));
                let reason = reading.reason.clone().or(below).or_else(|| why(exit_code, &lines));
                let all_passed = reading.says == Says::Passed;
                let mut outcome = reading.into_outcome(TestState::Failed, false);
                if all_passed {
                    // Apparent failures were printed by a test.
                    outcome.failures.clear();
                }
                outcome.reason = reason;
                Some(outcome)
            }
        },
    }
}

fn is_direct(ran: &Ran) -> bool {
    ran.kinds.iter().any(|kind| matches!(kind, Kind::Direct(_)))
}

/// The outcome if the output contains no reading: only the command and the exit code are known.
fn without_reading(ran: &Ran, exit_code: Option<i32>, lines: &Lines<'_>) -> Option<TestOutcome> {
    if ran.only_loose() || !ran.exit_is_its_own {
        return None;
    }
    let state = if exit_code? == 0 { TestState::Passed } else { TestState::Broken };
    Some(TestOutcome {
        framework: ran.frameworks().first().copied(),
        state,
        counts: TestCounts::default(),
        failures: Vec::new(),
        reason: if state == TestState::Passed { None } else { why(exit_code, lines) },
        hidden: false,
    })
}

/// The meaning of the exit code, or else the first line that mentions an error.
fn why(exit_code: Option<i32>, lines: &[Cow<'_, str>]) -> Option<String> {
    match exit_code? {
        124 => return Some("timed out (exit code 124)".to_owned()),
        126 | 127 => return Some(last_line(lines).unwrap_or_else(|| "the command could not be started".to_owned())),
        130 | 137 | 143 => return Some(format!("was killed by a signal (exit code {})", exit_code.unwrap_or_default())),
        _ => {}
    }
    let speaks = |line: &str| {
        let line = line.to_ascii_lowercase();
        (line.contains("error")
            || line.contains("not met")
            || line.contains("fail")
            || line.contains("cannot")
            || line.contains("not found"))
            && !line.contains("npm error")
            && !line.contains("npm err!")
            && !line.contains("npm warn")
            && !line.starts_with("plugins: ")
    };
    let tail = &lines[lines.len().saturating_sub(200)..];
    let npm = |line: &str| line.starts_with("npm error Missing script") || line.starts_with("npm ERR! Missing script");
    let mut said = tail.iter().map(|line| line.trim());
    let line = said.clone().find(|line| speaks(line)).or_else(|| said.find(|line| npm(line)));
    line.map(|line| cut(line, 200))
}

fn last_line(lines: &[Cow<'_, str>]) -> Option<String> {
    lines.iter().rev().map(|line| line.trim()).find(|line| !line.is_empty()).map(|line| cut(line, 200))
}

/// The reading that decides: the worst one of the frameworks known to have run, or else the last one.
fn pick(ran: &Ran, exit_code: Option<i32>, lines: &Lines<'_>) -> Option<Reading> {
    let text = lines.join("\n");
    let mut certain = ran.frameworks();
    if certain.len() < ran.kinds.len() {
        certain.extend(echoed(lines).0);
    }
    if !certain.is_empty() {
        let readings: Vec<Reading> =
            certain.iter().flat_map(|framework| reader::for_framework(*framework, lines, &text)).collect();
        // A single framework that may have passed has one report, the last one. Any others were printed by its tests.
        let may_pass = exit_code == Some(0) || !ran.exit_is_its_own;
        let one = certain.len() == 1 && may_pass && readings.iter().any(|reading| reading.concluded.is_some());
        let chosen = if one { readings.into_iter().max_by_key(|reading| reading.concluded) } else { worst(readings) };
        if let Some(reading) = chosen {
            return Some(reading);
        }
        if certain.len() == ran.kinds.len() && is_direct(ran) {
            return None;
        }
    }
    let mut readings = reader::all(lines, &text);
    if readings.iter().any(|reading| reading.concluded.is_some()) {
        readings.retain(|reading| reading.concluded.is_some());
    }
    // The failed readings explain a failing command; passing ones may have been printed by a test.
    if exit_code.is_some_and(|code| code != 0) && readings.iter().any(|reading| reading.says >= Says::Failed) {
        readings.retain(|reading| reading.says >= Says::Failed);
    }
    readings.into_iter().max_by_key(|reading| (reading.concluded, reading.failures.len()))
}

fn worst(readings: Vec<Reading>) -> Option<Reading> {
    readings
        .into_iter()
        .max_by_key(|reading| (reading.concluded.is_some(), reading.says, reading.failures.len(), reading.concluded))
}

/// npm prints the script it runs. If no part of that script can run tests, the output merely shows something like a report.
fn scripts_test_nothing(lines: &Lines<'_>) -> bool {
    let mut parts = 0;
    for pair in lines.windows(2).take(2000).filter(|pair| pair[0].starts_with("> ") && pair[0].contains('@')) {
        let Some(command) = pair[1].strip_prefix("> ") else { continue };
        for part in command.split(['|', '&', ';']).filter(|part| !part.trim().is_empty()) {
            parts += 1;
            if classify(&part.split_whitespace().take(40).collect::<Vec<_>>()).is_some() {
                return false;
            }
        }
    }
    parts > 0
}

/// The frameworks of the commands that runners print before running them, and the number of such commands:
/// `> jest --ci`, `$ vitest run`, `py: commands[0]> pytest`.
fn echoed(lines: &Lines<'_>) -> (Vec<Framework>, usize) {
    let (mut found, mut all) = (Vec::new(), 0);
    for line in lines.iter().take(2000) {
        let Some(text) = line
            .strip_prefix("> ")
            .or_else(|| line.strip_prefix("$ "))
            .or_else(|| line.split_once("commands[").and_then(|(_, rest)| rest.split_once("]> ").map(|(_, text)| text)))
        else {
            continue;
        };
        for part in text.split(['|', '&', ';']).take(20) {
            let words: Vec<&str> = part.split_whitespace().take(40).collect();
            if let Some(Kind::Direct(framework)) = classify(&words) {
                all += 1;
                if !found.contains(&framework) {
                    found.push(framework);
                }
            }
        }
    }
    (found, all)
}
