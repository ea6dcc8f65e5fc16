//! Mocha with any reporter that prints the standard epilogue (spec, dot, list, min, nyan and others).

use std::borrow::Cow;

use super::super::failures::{Failures, cut, describe};
use super::super::lines::Lines;
use super::entities::decode;
use super::{Framework, Reading, Says, indent, leading_number, stack_place};

pub(super) fn read(lines: &Lines<'_>) -> Option<Reading> {
    let mut reading = Reading::new(Framework::Mocha);
    let mut ends: Vec<usize> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if tally(line, "passing").is_some() && line.trim_end().ends_with(')') {
            ends.push(at);
            reading.conclude(at);
        }
    }
    for at in ends {
        let mut epilogue = lines[at..].iter().take(5);
        let of = |line: &str, word| tally(line, word).unwrap_or(0);
        let passed = epilogue.next().map_or(0, |line| of(line, "passing"));
        let (mut pending, mut failing) = (0, 0);
        for line in epilogue {
            pending += of(line, "pending");
            failing += of(line, "failing");
        }
        reading.count(passed, failing, pending);
        if failing > 0 {
            read_blocks(&lines[at..], &mut reading.failures);
        }
    }
    let failing = lines.iter().rev().find_map(|line| tally(line, "failing"));
    if let (None, Some(failing)) = (reading.concluded, failing.filter(|failing| *failing > 0)) {
        // A filter left only the failing count. A single line is not a complete summary.
        reading.count(0, failing, 0);
        reading.counts.passed = None;
        read_blocks(lines, &mut reading.failures);
        reading.says = Says::Failed;
        return Some(reading);
    } else if let Some(at) = reading.concluded.filter(|at| failing.is_none() && reading.before.is_none() && lines.len() - at <= 3)
    {
        // The output may be cut off right before that count; the marks above show the failures.
        read_marks(&lines[..at], &mut reading.failures);
        if !reading.failures.is_empty() {
            (reading.says, reading.concluded) = (Says::Failed, None);
            return Some(reading);
        }
    }
    if reading.concluded.is_some() {
        reading.judge();
        return Some(reading);
    }
    if let Some((at, line)) = lines.iter().enumerate().find(|(_, line)| line.contains("Error: No test files found")) {
        (reading.concluded, reading.says, reading.reason) = (Some(at), Says::NothingRan, Some(cut(line.trim(), 200)));
        return Some(reading);
    }
    // The end of a report whose start is lost.
    read_blocks(lines, &mut reading.failures);
    reading.says = Says::Failed;
    if reading.failures.is_empty() {
        read_doc(lines, &mut reading.failures);
    }
    if reading.failures.is_empty() {
        read_marks(lines, &mut reading.failures);
    }
    if reading.failures.is_empty() {
        last_stack(lines, &mut reading.failures);
    }
    if reading.failures.is_empty() {
        return broken(lines, reading);
    }
    Some(reading)
}

/// The `doc` reporter, an HTML outline: `<dt class="error">name</dt>`, and the file in a second one.
fn read_doc(lines: &[Cow<'_, str>], failures: &mut Failures) {
    let text = |line: &str| line.trim().strip_prefix("<dt class=\"error\">")?.strip_suffix("</dt>").map(decode);
    let mut at = 0;
    while at < lines.len() {
        let Some(name) = text(&lines[at]) else {
            at += 1;
            continue;
        };
        let file = lines.get(at + 1).and_then(|next| text(next));
        let said = lines[at..].iter().take(4).filter_map(|line| line.trim().strip_prefix("<dd class=\"error\">"));
        let message = said.filter(|rest| !rest.starts_with("<pre>")).map(|rest| decode(rest.trim_end_matches("</dd>"))).next();
        failures.add(&name, file.as_deref(), None, message.as_deref().unwrap_or_default());
        at += if file.is_some() { 2 } else { 1 };
    }
}

/// The inline marks of `spec` if the report below them was cut off: `  3) adds`, numbered from one, indented like their suite.
fn read_marks(lines: &[Cow<'_, str>], failures: &mut Failures) {
    let mut next = 1;
    for line in lines.iter().filter(|line| line.starts_with("  ")) {
        let Some((number, name)) = line.trim_start().split_once(") ") else { continue };
        if number.parse() == Ok(next) && !name.ends_with(':') {
            failures.add(name, None, None, "");
            next += 1;
        }
    }
}

/// Reads a report of which only the end is left. A passing run ends in its counts, never in a stack.
fn last_stack(lines: &[Cow<'_, str>], failures: &mut Failures) {
    let is_stack = |line: &&Cow<'_, str>| line.starts_with("      at ");
    let stack = lines.iter().rev().skip_while(|line| line.trim().is_empty()).take_while(is_stack);
    let found = stack.filter(|line| line.contains("at Context.<anonymous> (")).find_map(|line| stack_place(line));
    if let Some((file, line)) = found {
        failures.add(&format!("{file}:{line}"), Some(file), Some(line), "");
    }
}

/// Mocha failed while loading: the output has an error and its stack, but no report.
fn broken(lines: &[Cow<'_, str>], mut reading: Reading) -> Option<Reading> {
    let loader = lines.iter().any(|line| line.contains("mocha/lib/") && line.trim_start().starts_with("at "));
    if !loader {
        return None;
    }
    let error = lines.iter().find(|line| line.contains("Error: ") || line.trim_start().starts_with("SyntaxError"))?;
    let place = lines.iter().find_map(|line| stack_place(line)).or_else(|| {
        let file = lines
            .iter()
            .find_map(|line| super::place(line.trim()).filter(|(path, _)| path.ends_with("js") || path.ends_with("ts")))?;
        super::own(file)
    });
    let (file, line) = place.unzip();
    let text = error.trim();
    reading.failures.add(file.unwrap_or("loading"), file, line, text.strip_prefix("Exception during run: ").unwrap_or(text));
    reading.says = Says::Broken;
    Some(reading)
}

/// `  3 failing`, with nothing else on the line except the duration after `passing`.
fn tally(line: &str, word: &str) -> Option<u64> {
    let text = line.trim();
    let number = leading_number(text)?;
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit()).strip_prefix(' ')?.strip_prefix(word)?;
    (indent(line) <= 4 && (rest.is_empty() || rest.starts_with(" ("))).then_some(number)
}

/// `  1) suite`, deeper lines for inner suites, the last one ending in a colon; then the error.
fn read_blocks(lines: &[Cow<'_, str>], failures: &mut Failures) {
    let mut at = 0;
    let mut expected = None;
    while at < lines.len() {
        let Some((number, first)) = numbered(&lines[at]).filter(|(number, _)| expected.is_none_or(|next| *number == next)) else {
            if let (Some(place), Some(failure)) = (stack_place(&lines[at]), failures.last_mut().filter(|_| expected.is_some())) {
                describe(failure, Some(place), None);
            }
            at += 1;
            continue;
        };
        let mut parts = vec![first.trim()];
        let mut next = at + 1;
        let mut complete = first.ends_with(':');
        while !complete && next < lines.len() && next - at < 20 {
            let part = lines[next].trim();
            if part.is_empty() || indent(&lines[next]) < 5 {
                break;
            }
            parts.push(part);
            complete = part.ends_with(':');
            next += 1;
        }
        if !complete {
            at += 1;
            continue;
        }
        let name = parts.join(" ");
        let message = lines[next..].iter().take(4).map(|line| line.trim()).find(|line| !line.is_empty()).unwrap_or_default();
        failures.add(name.trim_end_matches(':'), None, None, message);
        expected = Some(number + 1);
        at = next;
    }
}

fn numbered(line: &str) -> Option<(u64, &str)> {
    let text = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' '))?;
    let (number, title) = text.split_once(") ")?;
    Some((number.parse().ok()?, title))
}
