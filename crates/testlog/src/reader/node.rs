//! `node --test` with the spec and dot reporters. The TAP reader handles its TAP, except for the sums at the end.

use super::super::failures::{Failures, describe};
use super::super::lines::Lines;
use super::{Framework, Reading, Says, indent, leading_number, place, stack_place, without_time};

pub(super) fn read(lines: &Lines<'_>) -> Option<Reading> {
    let mut reading = Reading::new(Framework::NodeTest);
    let mut sums = Sums::default();
    let mut inline = Failures::default();
    let mut listed: Vec<(Option<(&str, u32)>, &str)> = Vec::new();
    let mut groups: Vec<&str> = Vec::new();
    let (mut at_place, mut in_list, mut dot, mut timed) = (None, false, false, false);
    for (at, line) in lines.iter().enumerate() {
        let text = line.trim_start();
        if let Some(sum) = line.strip_prefix("ℹ ") {
            if sums.read_line(at, sum, &mut reading) {
                reading.concluded = Some(at);
            }
        } else if **line == *"✖ failing tests:" {
            in_list = true;
        } else if **line == *"Failed tests:" {
            (in_list, dot) = (true, true);
        } else if let Some(found) = line.strip_prefix("test at ").and_then(place) {
            (at_place, in_list) = (Some(found), true);
        } else if let Some(name) = text.strip_prefix("✖ ") {
            let todo = name.ends_with("# TODO") || name.contains(" # TODO");
            if !todo {
                let name = without_time(name.split(" # ").next().unwrap_or(name));
                if in_list && indent(line) == 0 {
                    listed.push((at_place.take(), name));
                    reading.failures.add(name, None, None, "");
                    if let (Some((found, _)), Some(failure)) = (listed.last(), reading.failures.last_mut()) {
                        describe(failure, *found, None);
                    }
                } else if !in_list && !groups.contains(&name) {
                    inline.add(name, None, None, "");
                    timed |= is_timed(text);
                }
            }
        } else if let Some(name) = text.strip_prefix("▶ ") {
            groups.push(without_time(name));
        } else if in_list
            && !text.is_empty()
            && let Some(failure) = reading.failures.last_mut()
        {
            describe(failure, stack_place(line).filter(|_| dot), Some(text.trim_matches('\'')));
        }
    }
    if reading.failures.is_empty() {
        reading.failures = inline;
    } else {
        drop_suites(&mut reading.failures, &groups);
    }
    if sums.count(&mut reading) {
        reading.judge();
        let files_only = !reading.failures.is_empty() && reading.failures.iter().all(|failure| is_file(&failure.name));
        if reading.says == Says::Failed && files_only {
            reading.says = Says::Broken;
        }
        return Some(reading);
    }
    reading.concluded = None;
    if let Some(line) = lines.iter().find(|line| line.starts_with("Could not find '")) {
        (reading.says, reading.reason) = (Says::NothingRan, Some(line.to_string()));
        return (lines.len() <= 5).then_some(reading);
    }
    reading.says = Says::Failed;
    (!reading.failures.is_empty() && (in_list || dot || timed)).then_some(reading)
}

/// The block of sums at the end of a report. Only a complete block counts, because a test may print a single such line.
#[derive(Default)]
pub(super) struct Sums {
    numbers: [Option<u64>; 6],
    last: usize,
}

impl Sums {
    /// Reads a line such as `pass 3`. The first line of a block ends the previous block; the others must follow line by line.
    pub(super) fn read_line(&mut self, at: usize, sum: &str, reading: &mut Reading) -> bool {
        let Some((word, number)) = sum.split_once(' ') else { return false };
        let Some(number) = leading_number(number) else { return false };
        if word == "tests" {
            self.count(reading);
            *self = Self::default();
        } else if at != self.last + 1 {
            return false;
        }
        self.last = at;
        let slot = ["tests", "pass", "fail", "cancelled", "skipped", "todo"].iter().position(|known| *known == word);
        if let Some(slot) = slot {
            self.numbers[slot] = Some(number);
        }
        slot.is_some()
    }

    /// Counts the block if it is complete. Only `node --test` has cancelled tests.
    pub(super) fn count(&self, reading: &mut Reading) -> bool {
        let [Some(_), Some(pass), Some(fail), cancelled, skipped, todo] = self.numbers else { return false };
        let skipped = skipped.unwrap_or(0).saturating_add(todo.unwrap_or(0));
        reading.count_instead(pass, fail.saturating_add(cancelled.unwrap_or(0)), skipped);
        true
    }

    pub(super) fn is_of_node(&self) -> bool {
        self.numbers[3].is_some()
    }
}

/// `✖ adds (0.255935ms)`: node prints fractions of milliseconds, unlike people.
fn is_timed(text: &str) -> bool {
    let time = text.split(" # ").next().and_then(|text| text.trim_end().rsplit_once(" (")?.1.strip_suffix("ms)"));
    time.and_then(|time| time.split_once('.'))
        .is_some_and(|(_, part)| part.len() >= 3 && part.bytes().all(|b| b.is_ascii_digit()))
}

/// Removes suites: a suite fails because one of its tests did.
fn drop_suites(failures: &mut Failures, groups: &[&str]) {
    let groups: std::collections::HashSet<&str> = groups.iter().copied().collect();
    let inner = failures.iter().any(|failure| !groups.contains(failure.name.as_str()) && !failure.message.contains("subtest"));
    if !inner {
        return;
    }
    let mut kept = Failures::default();
    for failure in std::mem::take(failures).into_list() {
        let says_so = failure.message.ends_with("subtests failed") || failure.message.ends_with("subtest failed");
        let only_says_so = failure.message.is_empty() || failure.message.contains("subtest");
        if !says_so && !groups.contains(failure.name.as_str()) || !only_says_so {
            kept.add(&failure.name, None, None, &failure.message);
            if let (Some(file), Some(line), Some(last)) = (&failure.file, failure.line, kept.last_mut()) {
                describe(last, Some((file, line)), None);
            }
        }
    }
    *failures = kept;
}

fn is_file(name: &str) -> bool {
    [".js", ".mjs", ".cjs", ".ts", ".mts", ".cts"].iter().any(|end| name.ends_with(end)) && !name.contains(' ')
}
