//! pytest runs without a report: pytest did not start, died, or its output was cut off.

use super::super::super::lines::Lines;
use super::super::{Reading, Says, leading_number, place};

pub(super) fn read(lines: &Lines<'_>, mut reading: Reading) -> Option<Reading> {
    if let Some((file, number, message)) = conftest(lines) {
        (reading.says, reading.reason) = (Says::Broken, Some("conftest could not be loaded".to_owned()));
        reading.failures.add(file, Some(file), number, message);
        return Some(reading);
    }
    let died = lines.iter().find(|line| line.contains("Fatal Python error: ") || line.contains("+++ Timeout +++"));
    let running = lines.iter().rev().find_map(|line| running(line));
    let frame = died.and_then(|_| lines.iter().find_map(|line| frame(line)));
    let why = died.map(|line| line.rsplit("Fatal Python error: ").next().unwrap_or(line));
    let why = why.map_or("", |why| if why.contains("+++ Timeout") { "timed out" } else { why });
    match (frame, running) {
        (Some((file, number, name)), _) => reading.failures.add(name, Some(file), Some(number), why),
        (None, Some(name)) => reading.failures.add(name, name.split("::").next(), None, why),
        (None, None) => return None,
    }
    reading.says = if died.is_some() { Says::Failed } else { Says::Unfinished };
    Some(reading)
}

/// `conf/conftest.py:1: in <module>` and the error below it; a heading gives the full file name.
fn conftest<'l>(lines: &'l Lines<'_>) -> Option<(&'l str, Option<u32>, &'l str)> {
    let message = lines.iter().rev().find_map(|line| line.strip_prefix("E   ")).unwrap_or_default();
    let found = lines
        .iter()
        .filter_map(|line| place(line.strip_suffix(": in <module>")?))
        .find(|(file, _)| file.ends_with("conftest.py") && !message.is_empty());
    let headed = lines.iter().find_map(|line| line.split_once(" while loading conftest '")?.1.split('\'').next());
    match (found, headed) {
        (Some((file, number)), _) => Some((file, Some(number), message)),
        (None, Some(file)) => Some((file, None, message)),
        (None, None) => None,
    }
}

/// The test or file whose line has no result: `test_cart.py::test_total `, `test_cart.py ..`.
fn running(line: &str) -> Option<&str> {
    let (name, rest) = line.split_once(' ')?;
    let rest = rest.trim();
    let verdict = rest.ends_with(']') || rest.split(' ').next().is_some_and(|word| word.len() > 3 && word == word.to_uppercase());
    let file = name.split("::").next()?;
    let shown = name.contains("::") && !verdict || rest.chars().all(|c| matches!(c, '.' | 's' | 'x'));
    (file.ends_with(".py") && shown).then_some(name)
}

/// The test in a stack dump: `  File "/project/test_cart.py", line 3 in test_total`.
fn frame(line: &str) -> Option<(&str, u32, &str)> {
    let (file, rest) = line.strip_prefix("  File \"")?.split_once("\", line ")?;
    let name = rest.rsplit_once(" in ")?.1;
    let own = name.starts_with("test") && !file.contains("site-packages/") && !file.contains("/lib/python");
    own.then_some((file, leading_number(rest)? as u32, name))
}
