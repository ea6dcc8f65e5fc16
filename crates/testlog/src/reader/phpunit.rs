//! `PHPUnit` and tools with the same output: default, testdox, teamcity.

use super::super::failures::{Failures, describe};
use super::super::lines::Lines;
use super::{Framework, Reading, Says, counted, labelled, place};

pub(super) fn read(lines: &Lines<'_>) -> Option<Reading> {
    let mut reading = Reading::new(Framework::Phpunit);
    let mut dox = Failures::default();
    let mut city = Failures::default();
    let mut verdict: Option<(usize, &str)> = None;
    let mut end: Option<(usize, Says)> = None;
    let (mut in_failures, mut class, mut pest, mut lone) = (false, "", None, None);
    let mut entries = Failures::default();
    for (at, line) in lines.iter().enumerate() {
        let text = line.trim();
        if text.starts_with("There was ") || text.starts_with("There were ") {
            in_failures = text.ends_with("failure:")
                || text.ends_with("failures:")
                || text.ends_with("error:")
                || text.ends_with("errors:");
        } else if text == "FAILURES!" || text == "ERRORS!" || text.starts_with("OK, but ") || text == "WARNINGS!" {
            (verdict, in_failures) = (Some((at, text)), false);
        } else if let (Some((seen, word)), Some(rest)) = (verdict, line.strip_prefix("Tests: ")) {
            if at - seen <= 2 {
                let of = |label| labelled(line, label).unwrap_or(0);
                let failed = of("Failures:") + of("Errors:");
                let skipped = of("Skipped:") + of("Incomplete:");
                let tests = super::leading_number(rest).unwrap_or(0);
                reading.count_instead(tests.saturating_sub(failed + skipped), failed, skipped);
                let bad = matches!(word, "FAILURES!" | "ERRORS!");
                end = Some((at, if bad { Says::Failed } else { Says::Passed }));
            }
            verdict = None;
        } else if line.starts_with("Tests: ") && line.contains(", Assertions: ") {
            lone = Some((at, line));
        } else if let Some(name) = numbered(line).filter(|name| !in_failures && name.contains("::")) {
            entries.add(name, None, None, "");
        } else if let Some(rest) = line.strip_prefix("OK (").filter(|rest| rest.contains(" assertion")) {
            reading.count_instead(counted(rest, "test").or_else(|| counted(rest, "tests")).unwrap_or(0), 0, 0);
            (end, in_failures) = (Some((at, Says::Passed)), false);
        } else if text == "No tests executed!" {
            end = Some((at, Says::NothingRan));
        } else if let Some(counts) = text.strip_prefix("Tests:    ").filter(|rest| {
            (rest.contains(" assertions)") || rest.contains("passed") || rest.contains("failed")) && !rest.ends_with(" total")
        }) {
            pest = Some((at, counts));
        } else if let Some(name) = in_failures.then(|| numbered(line)).flatten() {
            reading.failures.add(name, None, None, "");
        } else if in_failures && let Some(failure) = reading.failures.last_mut() {
            match place(text).filter(|(path, _)| path.ends_with(".php") && !path.contains(' ')) {
                Some(found) => describe(failure, Some(found), None),
                None if !text.is_empty() && text != "--" => describe(failure, None, Some(text)),
                None => {}
            }
        } else if let Some(name) =
            line.strip_prefix(" ✘ ").or_else(|| line.strip_prefix("  ⨯ ")).or_else(|| line.strip_prefix("   FAILED  "))
        {
            let name = super::without_time(name);
            dox.add(&if class.is_empty() { name.to_owned() } else { format!("{class}: {name}") }, None, None, "");
        } else if let Some(rest) = text.strip_prefix("│").map(str::trim).filter(|rest| !rest.is_empty()) {
            if let Some(failure) = dox.last_mut() {
                let found = place(rest).filter(|(path, _)| path.ends_with(".php"));
                describe(failure, found, found.is_none().then_some(rest));
            }
        } else if let Some(name) = text.strip_prefix("Test Failed (").or_else(|| text.strip_prefix("Test Errored (")) {
            // The events of `--debug`; the message is on the next line.
            city.add(name.trim_end_matches(')'), None, None, lines.get(at + 1).map_or("", |next| next.trim()));
        } else if let Some(event) = text.strip_prefix("##teamcity[testFailed ") {
            city.add(attribute(event, "name").unwrap_or("test"), None, None, attribute(event, "message").unwrap_or_default());
        } else if !line.is_empty()
            && !line.starts_with(' ')
            && lines.get(at + 1).is_some_and(|next| next.starts_with(" ✔") || next.starts_with(" ✘"))
        {
            class = line;
        }
    }
    if reading.failures.is_empty() {
        reading.failures = if dox.is_empty() { city } else { dox };
    }
    // A filter removed the final result line; the counts are enough.
    if let (None, Some((at, line))) = (end, lone) {
        let of = |label| labelled(line, label).unwrap_or(0);
        let (failed, skipped) = (of("Failures:") + of("Errors:"), of("Skipped:") + of("Incomplete:"));
        reading.count(of("Tests:").saturating_sub(failed + skipped), failed, skipped);
        if reading.failures.is_empty() && failed > 0 {
            reading.failures = entries;
        }
        end = Some((at, if failed > 0 { Says::Failed } else { Says::Passed }));
    }
    if let Some((at, says)) = end {
        reading.concluded = Some(at);
        reading.judge();
        if says == Says::Failed || says == Says::NothingRan {
            reading.says = says;
        }
        return Some(reading);
    }
    if let Some((at, counts)) = pest {
        let of = |word| counted(counts, word).unwrap_or(0);
        reading.count(of("passed"), of("failed"), of("skipped") + of("todos"));
        reading.concluded = Some(at);
        reading.judge();
        return Some(reading);
    }
    if let Some((at, line)) = lines.iter().enumerate().find(|(_, line)| is_fatal(line)) {
        let found = line.rsplit_once(" in ").and_then(|(_, rest)| {
            place(rest).or_else(|| rest.split_once(" on line ").and_then(|(file, line)| Some((file, line.parse().ok()?))))
        });
        let (file, number) = found.unzip();
        reading.failures.add(file.unwrap_or("loading"), file, number, line.trim());
        (reading.concluded, reading.says) = (Some(at), Says::Broken);
        return lines.iter().any(|line| line.contains("PHPUnit")).then_some(reading);
    }
    if lines.iter().any(|line| line.starts_with("An error occurred inside PHPUnit")) {
        let after = |label: &str| lines.iter().find_map(|line| line.strip_prefix(label));
        let (file, number) = after("Location:").and_then(place).unzip();
        reading.failures.add(file.unwrap_or("loading"), file, number, after("Message:").unwrap_or_default());
        reading.says = Says::Broken;
        return Some(reading);
    }
    reading.says = Says::Failed;
    (!reading.failures.is_empty() && lines.iter().any(|line| line.starts_with("PHPUnit ") || line.starts_with("##teamcity[")))
        .then_some(reading)
}

fn is_fatal(line: &str) -> bool {
    // The mark of the previous test has no line break: `EPHP Fatal error:`.
    line.trim_start_matches(['.', 'E', 'F', 'S', 'I', 'R', 'W', 'D', 'N']).starts_with("PHP Fatal error:")
        || line.starts_with("PHP Fatal error:")
        || line.starts_with("PHP Parse error:")
        || line.starts_with("Fatal error:")
        || line.starts_with("Parse error:")
}

fn numbered(line: &str) -> Option<&str> {
    let (number, name) = line.split_once(") ")?;
    (number.parse::<u32>().is_ok() && (name.contains("::") || !name.contains(' '))).then_some(name)
}

fn attribute<'l>(event: &'l str, name: &str) -> Option<&'l str> {
    let (_, rest) = event.split_once(&format!("{name}='"))?;
    rest.split('\'').next()
}
