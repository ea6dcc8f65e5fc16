//! `RSpec` with the progress and documentation formatters.

use super::super::failures::{Failures, cut, describe};
use super::super::lines::Lines;
use super::entities::decode;
use super::{Framework, Reading, Says, counted, place};

pub(super) fn read(lines: &Lines<'_>) -> Option<Reading> {
    let mut reading = Reading::new(Framework::Rspec);
    let mut detailed = Failures::default();
    let mut listed = Failures::default();
    let (mut finished, mut in_failures, mut outside, mut loading) = (false, false, 0, None);
    for (at, line) in lines.iter().enumerate() {
        if line.starts_with("Finished in ") && line.contains(" second")
            || line.starts_with("Finished in ") && line.contains(" minute")
        {
            (finished, in_failures) = (true, false);
        } else if let Some(examples) = summary(line) {
            if finished || reading.concluded.is_none() {
                let line = line.trim_end_matches("\";</script>");
                let of = |word| counted(line, word).unwrap_or(0);
                let failed = of("failure") + of("failures");
                // Tests may print the same, but only the real summary follows "Finished".
                if finished && reading.counts.passed.is_some() && reading.concluded.is_some_and(|seen| !is_real(lines, seen)) {
                    reading.counts = super::TestCounts::default();
                }
                reading.is_partial = !finished;
                reading.count(examples.saturating_sub(failed + of("pending")), failed, of("pending"));
                outside += of("error") + of("errors");
                (reading.concluded, finished) = (Some(at), false);
            }
        } else if **line == *"Failures:" {
            in_failures = true;
        } else if **line == *"Failed examples:" {
            listed = Failures::default();
        } else if let Some(rest) = line.strip_prefix("rspec ") {
            if let Some((at, name)) = rest.split_once(" # ") {
                let path = at.split('[').next().unwrap_or(at);
                let (file, number) = place(path).map_or((path, None), |(file, number)| (file, Some(number)));
                listed.add(name, Some(file.trim_start_matches("./")), number, "");
            }
        } else if let Some(path) = line.strip_prefix("An error occurred while loading ") {
            let path = path.trim_start_matches("./");
            let path = path.split(". - Did").next().unwrap_or(path).trim_end_matches('.');
            reading.failures.add(path, Some(path), None, "");
            loading = Some(at);
        } else if let Some(hook) = line.strip_prefix("An error occurred in ") {
            // Not in an example: `a `before(:suite)` hook.`
            reading.failures.add(hook.trim_start_matches("a ").trim_start_matches("an ").trim_end_matches('.'), None, None, "");
            loading = Some(at);
        } else if let Some(name) = in_failures.then(|| numbered(line)).flatten() {
            detailed.add(name.strip_suffix(" FIXED").unwrap_or(name), None, None, "");
        } else if in_failures && let Some(failure) = detailed.last_mut() {
            describe_line(line, failure);
        } else if loading.is_some()
            && reading.concluded.is_none()
            && let Some(failure) = reading.failures.last_mut()
        {
            let text = line.trim();
            if let Some(found) = line.strip_prefix("# ").and_then(ruby_place) {
                describe(failure, Some(found), None);
            } else if line.starts_with("  ") && !text.starts_with("rspec ") {
                describe(failure, None, Some(text));
            }
        }
    }
    if listed.is_empty() && detailed.is_empty() && reading.concluded.is_none() {
        brief(lines, &mut reading.failures);
    }
    if detailed.is_empty() {
        // Without a list, each failure still has its mark: `  has total 0 (FAILED - 1)`.
        marked(lines, &mut detailed);
    }
    if listed.is_empty() {
        merge(&mut reading.failures, detailed);
    } else {
        let details: std::collections::HashMap<String, super::super::TestFailure> =
            detailed.into_list().into_iter().map(|failure| (failure.name.clone(), failure)).collect();
        for failure in listed.into_list() {
            let more = details.get(&failure.name);
            let line = failure.line.or_else(|| more.and_then(|more| more.line));
            reading.failures.add(&failure.name, failure.file.as_deref(), line, more.map_or("", |more| &more.message));
        }
    }
    if reading.concluded.is_some() {
        reading.judge();
        if outside > 0 {
            reading.says = if reading.counts.failed > Some(0) { Says::Failed } else { Says::Broken };
        }
        return Some(reading);
    }
    reading.says = Says::Failed;
    (!reading.failures.is_empty()).then_some(reading)
}

/// The `failures` formatter: `./spec/cart_spec.rb:3:has total 0`.
fn brief(lines: &Lines<'_>, failures: &mut Failures) {
    for line in lines {
        if let Some((path, rest)) = line.strip_prefix("./").and_then(|rest| rest.split_once("_spec.rb:"))
            && let Some((number, name)) = rest.split_once(':')
            && let Ok(number) = number.parse()
        {
            failures.add(name, Some(&format!("{path}_spec.rb")), Some(number), "");
        }
    }
}

/// Failures marked inline: the documentation formatter, `rspec-instafail` and the HTML report.
fn marked(lines: &Lines<'_>, failures: &mut Failures) {
    let mut next = 1;
    for line in lines {
        let text = line.trim();
        if let Some((name, number)) = text.strip_suffix(')').and_then(|text| text.rsplit_once(" (FAILED - ")) {
            if number.parse() == Ok(next) {
                failures.add(name, None, None, "");
                next += 1;
            }
        } else if let Some(name) = text.strip_prefix("<span class=\"failed_spec_name\">") {
            failures.add(&decode(name.trim_end_matches("</span>")), None, None, "");
        } else if let Some(name) = numbered(line).filter(|_| line.trim_start().starts_with(&format!("{next}) "))) {
            failures.add(name.strip_suffix(" FIXED").unwrap_or(name), None, None, "");
            next += 1;
        } else if let Some(failure) = failures.last_mut().filter(|_| line.starts_with("     ")) {
            describe_line(line, failure);
        }
    }
}

fn merge(into: &mut Failures, more: Failures) {
    for failure in more.into_list() {
        into.add(&failure.name, failure.file.as_deref(), failure.line, &failure.message);
    }
}

fn is_real(lines: &Lines<'_>, at: usize) -> bool {
    at > 0 && lines[at - 1].starts_with("Finished in ")
}

fn summary(line: &str) -> Option<u64> {
    // The HTML report writes its totals with a script.
    let line = line.split_once(".innerHTML = \"").map_or(line, |(_, totals)| totals.trim_end_matches("\";</script>"));
    let examples = counted(line, "example").or_else(|| counted(line, "examples"))?;
    let failures = counted(line, "failure").or_else(|| counted(line, "failures"));
    (failures.is_some() && line.starts_with(|c: char| c.is_ascii_digit())).then_some(examples)
}

fn numbered(line: &str) -> Option<&str> {
    let text = line.strip_prefix("  ").filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))?;
    let (number, name) = text.split_once(") ")?;
    number.parse::<u32>().ok().map(|_| name)
}

fn describe_line(line: &str, failure: &mut super::super::TestFailure) {
    let text = line.trim();
    if let Some(found) = text.strip_prefix("# ").and_then(ruby_place) {
        describe(failure, Some(found), None);
    } else if text.starts_with("Failure/Error:") {
        // The next line is more informative than the source line.
    } else if !text.is_empty() && failure.message.ends_with("Error:") {
        failure.message = cut(&format!("{} {text}", failure.message), 200);
    } else if !text.is_empty() {
        describe(failure, None, Some(text));
    }
}

fn ruby_place(text: &str) -> Option<(&str, u32)> {
    let (path, line) = place(text.split(":in ").next()?)?;
    (!path.contains("/gems/")).then_some((path.trim_start_matches("./"), line))
}
