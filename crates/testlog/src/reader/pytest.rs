//! pytest, from `-qq` to `-vv`, with xdist, subtests and sugar. `pytest/stopped.rs` handles runs without a report.

mod stopped;

use std::collections::HashMap;

use super::super::failures::{Failures, cut};
use super::super::lines::Lines;
use super::{End, Framework, Reading, Says, TestCounts, counted, place};

#[derive(Default)]
struct Section<'l> {
    title: &'l str,
    place: Option<(&'l str, u32)>,
    message: &'l str,
}

/// The output after one `test session starts` heading, or before the first.
#[derive(Default)]
struct Session<'l> {
    /// The line number and text of each summary, and whether it is in a section of captured test output. The last is the session's own.
    summaries: Vec<(usize, &'l str, bool)>,
}

impl<'l> Session<'l> {
    fn read_line(&mut self, at: usize, title: &'l str, ends_sections: bool, is_shown: bool) {
        if ends_sections {
            self.summaries.retain(|(_, _, is_shown)| !is_shown);
        } else if is_summary(title) {
            self.summaries.push((at, title, is_shown));
        }
    }
}

pub(super) fn read(lines: &Lines<'_>) -> Option<Reading> {
    let mut reading = Reading::new(Framework::Pytest);
    let mut sections: Vec<Section<'_>> = Vec::new();
    let mut listed: Vec<(&str, &str)> = Vec::new();
    let mut loose: Vec<(&str, &str)> = Vec::new();
    let mut progress = Failures::default();
    let mut sessions: Vec<Session<'_>> = vec![Session::default()];
    let mut shows_output = false;
    // Lines that only partly identify a test: a file with an `F` among its dots, a line of `--tb=line`.
    let mut dotted = Failures::default();
    let mut missing = Failures::default();
    let (mut in_list, mut in_section, mut collecting, mut broken) = (false, false, false, None);
    let mut sugar: Vec<usize> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if let Some(title) = ruled(line, '=') {
            (in_list, in_section) = (title == "short test summary info", title == "FAILURES" || title == "ERRORS");
            shows_output = in_section || title == "PASSES" || shows_output && !in_list;
            if title == "test session starts" {
                sessions.push(Session::default());
            } else if let Some(session) = sessions.last_mut() {
                session.read_line(at, title, in_list, shows_output);
            }
        } else if line.starts_with(|c: char| c.is_ascii_digit()) && is_summary(line) || line.starts_with("no tests ran in ") {
            if let Some(session) = sessions.last_mut() {
                session.read_line(at, line, false, shows_output);
            }
            in_list = false;
        } else if let Some(title) = in_section.then(|| ruled(line, '_')).flatten() {
            collecting |= title.starts_with("ERROR collecting ");
            sections.push(Section { title, ..Section::default() });
        } else if let Some(entry) = entry(line) {
            if in_list { &mut listed } else { &mut loose }.push(entry);
        } else if let Some(section) = sections.last_mut().filter(|_| in_section) {
            if let Some(message) = line.strip_prefix("E   ").filter(|_| section.message.is_empty()) {
                section.message = message.trim();
            } else if let Some(found) = location(line) {
                section.place = Some(found);
            }
        } else if line.starts_with("INTERNALERROR>")
            || line.starts_with("pytest: error:")
            || line.contains("error: unrecognized arguments")
        {
            broken.get_or_insert((at, line));
        } else if line.starts_with("FAIL Required test coverage") || line.starts_with("ERROR: Coverage failure") {
            reading.reason = Some(line.to_string());
        } else if let Some(why) = line.starts_with("!!!").then(|| line.trim_matches(['!', ' '])) {
            reading.reason = why.strip_prefix("_pytest.outcomes.Exit: ").map(|why| format!("pytest.exit: {why}"));
        } else if let Some(path) = line.strip_prefix("ERROR: file or directory not found: ") {
            missing.add(path, Some(path), None, "not found");
        } else if let Some((file, line, message)) = in_section.then(|| traced(line)).flatten() {
            dotted.add(&format!("{file}:{line}"), Some(file), Some(line), message);
        } else if let Some(file) = dots(line) {
            dotted.add(file, Some(file), None, "");
        } else if line.starts_with("Results (") && line.ends_with("s):") {
            sugar.push(at);
        } else if let Some((name, end)) = verdict(line) {
            reading.names.add(name, end);
            if end == End::Failed {
                progress.add(name, file_of(name), None, "");
            }
        }
    }
    let mut errors = 0;
    let mut seen = false;
    for session in sessions {
        let mut summaries = session.summaries.into_iter().rev();
        if let Some((at, text, _)) = summaries.next() {
            errors += counted(text, "error").or_else(|| counted(text, "errors")).unwrap_or(0);
            reading.counts = reading.counts.plus(counts(text));
            reading.conclude(at);
            seen = true;
        }
        reading.earlier = summaries.map(|(_, text, _)| counts(text)).fold(reading.earlier, TestCounts::plus);
    }
    let sugar = if seen { Vec::new() } else { sugar };
    for at in sugar {
        let text = lines[at + 1..].iter().take(8).map(|line| line.trim()).collect::<Vec<_>>().join(" ");
        reading.counts = reading.counts.plus(counts(&text));
        (reading.concluded, seen) = (Some(at), true);
    }
    let known: HashMap<&str, &Section<'_>> = sections.iter().map(|section| (bare(section.title), section)).collect();
    let shown = if listed.is_empty() && (!seen || reading.counts.failed > Some(0)) { &loose } else { &listed };
    for (name, message) in shown {
        let key = name.split_once("::").map_or(*name, |(_, inner)| inner).replace("::", ".");
        let section = known.get(key.as_str()).or_else(|| known.get(name));
        let line = section.and_then(|section| section.place).map(|(_, line)| line);
        let message = section.map(|section| section.message).filter(|message| !message.is_empty()).unwrap_or(message);
        reading.failures.add(name, file_of(name), line, message);
    }
    if reading.failures.is_empty() && (!seen || reading.counts.failed > Some(0)) {
        for failure in progress.into_list() {
            let key = failure.name.split_once("::").map_or(failure.name.as_str(), |(_, inner)| inner).replace("::", ".");
            let section = known.get(key.as_str());
            let line = section.and_then(|section| section.place).map(|(_, line)| line);
            reading.failures.add(&failure.name, failure.file.as_deref(), line, section.map_or("", |section| section.message));
        }
    }
    if reading.failures.is_empty() {
        for section in &sections {
            let (file, line) = section.place.unzip();
            reading.failures.add(bare(section.title), file, line, section.message);
        }
    }
    if reading.failures.is_empty() && (!seen || reading.counts.failed > Some(0)) {
        reading.failures = dotted;
    }
    if seen && !missing.is_empty() {
        (reading.says, reading.failures) = (Says::Broken, missing);
        return Some(reading);
    }
    if seen {
        reading.judge();
        let failed = reading.counts.failed.unwrap_or(0);
        let collected_badly =
            collecting || lines.iter().any(|line| line.starts_with("!!!") && line.contains("during collection"));
        if failed > 0 && failed == errors && collected_badly {
            reading.says = Says::Broken;
        }
        return Some(reading);
    }
    if let Some((at, line)) = broken {
        (reading.concluded, reading.says, reading.reason) = (Some(at), Says::Broken, Some(cut(line, 200)));
        return Some(reading);
    }
    if reading.failures.is_empty() {
        return stopped::read(lines, reading);
    }
    reading.says = if collecting { Says::Broken } else { Says::Failed };
    Some(reading)
}

/// A test that is expected to fail proves nothing, whatever its result.
fn counts(summary: &str) -> TestCounts {
    let of = |words: &[&str]| Some(words.iter().filter_map(|word| counted(summary, word)).sum());
    TestCounts {
        passed: of(&["passed"]),
        failed: of(&["failed", "error", "errors"]),
        skipped: of(&["skipped", "xfailed", "xpassed"]),
    }
}

/// The title between two rules: `=== FAILURES ===`.
fn ruled(line: &str, rule: char) -> Option<&str> {
    let least = if rule == '=' { 1 } else { 3 };
    let inner = line.trim_end().trim_start_matches(rule);
    let left = line.trim_end().len() - inner.len();
    let title = inner.trim_end_matches(rule);
    let right = inner.len() - title.len();
    (left >= least && right >= 1 && title.starts_with(' ') && title.ends_with(' ')).then(|| title.trim())
}

/// `4 failed, 2 passed in 0.20s`, `no tests ran in 0.02s`, `2 deselected in 0.1s (0:01:02)`.
fn is_summary(text: &str) -> bool {
    let Some((counts, time)) = text.rsplit_once(" in ") else { return false };
    let seconds = time.split(' ').next().unwrap_or(time);
    let timed = seconds.strip_suffix('s').is_some_and(|number| number.parse::<f64>().is_ok()) || time.contains(" seconds");
    let words =
        ["failed", "passed", "skipped", "deselected", "xfailed", "xpassed", "error", "errors", "warning", "warnings", "rerun"];
    timed
        && (counts == "no tests ran"
            || (counts.len() < 200 && words.iter().any(|word| counted(counts, word).is_some()) && !counts.contains(':')))
}

/// `FAILED path::name - message`, `ERROR path::name`, `ERROR path - message`, `[case] (i=2) SUBFAIL path::name - message`.
fn entry(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix("FAILED ").or_else(|| line.strip_prefix("ERROR ")).or_else(|| {
        let at = line.find("SUBFAIL").filter(|at| *at == 0 || line.starts_with(['(', '[']))?;
        // The text that distinguishes subtests precedes the path, on either side of the word.
        let path = at + line[at..].find("::")?;
        line[..path].rfind(' ').map(|blank| &line[blank + 1..])
    })?;
    let dash = match (rest.find('['), rest.find(" - ")) {
        (Some(open), Some(dash)) if open < dash => rest[open..].find("] - ").map(|close| open + close + 1),
        (_, dash) => dash,
    };
    let (name, message) = match dash {
        Some(dash) => (&rest[..dash], &rest[dash + 3..]),
        None => (rest, ""),
    };
    let path = name.split("::").next()?;
    let is_path =
        path.ends_with(".py") || path.ends_with(".txt") || path.ends_with(".rst") || path.ends_with(".md") || name.contains("::");
    (is_path && !path.contains(' ')).then_some((name.trim(), message))
}

/// A test in the progress output of `-v`: `test_cart.py::test_total PASSED [ 50%]`, `[gw0] [ 50%] PASSED test_cart.py::test_total`.
fn verdict(line: &str) -> Option<(&str, End)> {
    let end = |word: &str| match word {
        "PASSED" => Some(End::Passed),
        "FAILED" | "ERROR" => Some(End::Failed),
        "SKIPPED" | "XFAIL" | "XPASS" => Some(End::Skipped),
        _ => None,
    };
    if let Some(rest) = line.strip_prefix("[gw") {
        let rest = rest.split_once("] ")?.1;
        let rest = if rest.starts_with('[') { rest.split_once("] ")?.1 } else { rest };
        let (word, name) = rest.split_once(' ')?;
        return name.contains("::").then_some((name.trim(), end(word)?));
    }
    let trimmed = line.trim_end();
    let text = match trimmed.strip_suffix("%]").and_then(|text| text.rsplit_once('[')) {
        Some((text, _)) => text.trim_end(),
        None => trimmed,
    };
    // A reason may follow in parentheses.
    let bare = text.rsplit_once(" (").filter(|(head, _)| text.ends_with(')') && end(last_word(head)).is_some());
    let text = bare.map_or(text, |(head, _)| head);
    let (name, word) = text.rsplit_once(' ')?;
    (name.contains("::") && name.split("::").next()?.ends_with(".py")).then_some((name, end(word)?))
}

fn last_word(text: &str) -> &str {
    text.rsplit(' ').next().unwrap_or(text)
}

/// The file in a line of dots that includes a failure: `tests/test_cart.py .F.E    [ 50%]`.
fn dots(line: &str) -> Option<&str> {
    let (path, rest) = line.split_once(' ')?;
    let rest = rest.split('[').next().unwrap_or(rest).trim();
    let marks = |c: char| matches!(c, '.' | 'F' | 'E' | 's' | 'x' | 'X' | 'R' | 'r' | 'u' | ',' | '-');
    (path.ends_with(".py") && rest.contains(['F', 'E', 'u']) && rest.chars().all(marks)).then_some(path)
}

/// A line of `--tb=line`: `/project/test_cart.py:4: KeyError: 'sku'`.
fn traced(line: &str) -> Option<(&str, u32, &str)> {
    let (head, message) = line.split_once(": ")?;
    let (file, number) = location(head)?;
    Some((file, number, message))
}

fn location(line: &str) -> Option<(&str, u32)> {
    let (head, _) = line.split_once(": ").unwrap_or((line, ""));
    if line.starts_with(' ') || line.starts_with("E ") || head.contains("site-packages/") || head.starts_with('<') {
        return None;
    }
    let (path, line) = place(head)?;
    (path.ends_with(".py") && !path.contains("/lib/python")).then_some((path, line))
}

fn file_of(name: &str) -> Option<&str> {
    name.split("::").next().filter(|path| path.contains('.'))
}

fn bare(title: &str) -> &str {
    ["ERROR at setup of ", "ERROR at teardown of ", "ERROR collecting "]
        .iter()
        .find_map(|start| title.strip_prefix(start))
        .unwrap_or(title)
}
