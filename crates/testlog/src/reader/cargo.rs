//! `cargo test`: the harness of each binary, doc tests, and compiler errors before them.

use super::super::failures::{Failures, describe};
use super::super::lines::Lines;
use super::{End, Framework, Reading, Says, TestCounts, counted, place};

/// A test, the location of its failure, and the message.
type Reason<'l> = (&'l str, Option<(&'l str, u32)>, &'l str);

pub(super) fn read(lines: &Lines<'_>) -> Option<Reading> {
    let mut reading = Reading::new(Framework::CargoTest);
    let mut progress = Failures::default();
    let mut reasons: Vec<Reason<'_>> = Vec::new();
    let (mut in_list, mut stopped, mut panic) = (false, None, None);
    // Each binary has one result, its last. Result lines before it were printed by tests.
    let (mut running, mut result) = (false, None);
    let mut binary = Binary::default();
    for (at, line) in lines.iter().enumerate() {
        if let Some((name, end)) = verdict(line) {
            reading.names.add(&format!("{} {name}", binary.name), end);
        }
        if let Some(counts) = line.strip_prefix("test result: ").filter(|rest| rest.contains(" measured; ")) {
            match (result.replace(counts), running) {
                (Some(earlier), false) => count(&mut reading, earlier),
                (Some(printed), true) => reading.earlier = reading.earlier.plus(counts_of(printed)),
                (None, _) => {}
            }
            (reading.concluded, in_list, binary.is_open) = (Some(at), false, false);
        } else if line.starts_with("running ") && (line.ends_with(" tests") || line.ends_with(" test")) {
            if let Some(earlier) = result.take() {
                count(&mut reading, earlier);
            }
            running = true;
            if !binary.begin() {
                reading.names.spoil();
            }
        } else if let Some(name) = running_binary(line) {
            if binary.is_open {
                reading.names.spoil();
            }
            binary.next = Some(name);
        } else if let Some(event) =
            line.strip_prefix("{ \"type\": \"test\", ").filter(|rest| rest.contains("\"event\": \"failed\""))
        {
            let name = event.split_once("\"name\": \"").and_then(|(_, rest)| rest.split('"').next());
            progress.add(name.unwrap_or_default(), None, None, "");
        } else if **line == *"failures:" {
            in_list = true;
        } else if let Some(name) = in_list.then(|| line.strip_prefix("    ")).flatten().filter(|name| !name.starts_with(' ')) {
            reading.failures.add(without_note(name), None, None, "");
        } else if let Some(name) = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----")) {
            (in_list, panic) = (false, None);
            reasons.push((name, None, ""));
        } else if let Some((name, found)) = panicked(line) {
            if reasons.last().is_none_or(|(last, place, _)| *last != name && name != "main" || place.is_some()) {
                reasons.push((name, Some(found), ""));
            } else if let Some(last) = reasons.last_mut() {
                last.1 = Some(found);
            }
            panic = Some(at);
        } else if let Some(name) = failed(line) {
            progress.add(without_note(name), None, None, "");
        } else if line.starts_with("error: test failed") || line.starts_with("error: doctest failed") {
            stopped = Some(at);
        } else if let Some((name, _)) = line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... error: test failed")) {
            // The binary died in this test, before completing the line.
            progress.add(name, None, None, "");
            stopped = Some(at);
        } else if let Some(last) = reasons.last_mut().filter(|(_, _, message)| message.is_empty()) {
            let said = panic.is_some_and(|seen| seen + 1 == at)
                || line.starts_with("Error: ")
                || line.starts_with("note: test did not panic");
            if said {
                last.2 = line.trim();
                last.1 = last.1.or_else(|| line.strip_prefix("note: test did not panic as expected at ").and_then(place));
            }
        }
    }
    if let Some(counts) = result {
        count(&mut reading, counts);
    }
    if reading.failures.is_empty() {
        reading.failures = progress;
    } else {
        // With `--nocapture` the list may be incomplete, so add the failures from the progress lines.
        for failure in progress.into_list() {
            reading.failures.add(&failure.name, None, None, "");
        }
    }
    let known: std::collections::HashMap<&str, _> = reasons.iter().map(|reason| (reason.0, (reason.1, reason.2))).collect();
    let mut told = Failures::default();
    for failure in std::mem::take(&mut reading.failures).into_list() {
        let (place, message) = known.get(failure.name.as_str()).copied().unwrap_or((None, ""));
        let (file, line) = place.unzip();
        told.add(&failure.name, file, line, message);
    }
    reading.failures = told;
    if let Some((at, what)) = compile_error(lines, &mut reading) {
        (reading.concluded, reading.says, reading.reason) = (Some(at), Says::Broken, Some(what));
        return Some(reading);
    }
    if let Some(at) = stopped.filter(|_| reading.counts.failed.unwrap_or(0) == 0) {
        // The binary died without a result line.
        reading.reason =
            lines.iter().find(|line| line.contains("process didn't exit successfully")).map(|line| line.trim().to_owned());
        let reason = reading.reason.clone().unwrap_or_default();
        let died = reason.rsplit(" (").next().unwrap_or("").trim_end_matches(')');
        match reading.failures.last_mut() {
            Some(failure) => describe(failure, None, Some(died)),
            None => reading.failures.add(target(&lines[at]), None, None, died),
        }
        (reading.concluded, reading.says) = (Some(at), Says::Failed);
        return Some(reading);
    }
    if let Some(at) = stopped.filter(|_| reading.failures.is_empty()) {
        // The names were cut off; only the target is known.
        reading.failures.add(target(&lines[at]), None, None, "");
    }
    if reading.concluded.is_some() {
        reading.judge();
        return Some(reading);
    }
    reading.says = Says::Failed;
    (!reading.failures.is_empty()).then_some(reading)
}

fn count(reading: &mut Reading, result: &str) {
    reading.counts = reading.counts.plus(counts_of(result));
}

fn counts_of(result: &str) -> TestCounts {
    let of = |word| Some(counted(result, word).unwrap_or(0));
    TestCounts { passed: of("passed"), failed: of("failed"), skipped: of("ignored") }
}

/// `--test flow` in "error: test failed, to rerun pass `--test flow`".
fn target(line: &str) -> &str {
    line.split_once("pass `").and_then(|(_, rest)| rest.split_once('`')).map_or("test binary", |(target, _)| target)
}

/// The compiler's first errors, if compilation failed.
pub(super) fn compile_error(lines: &Lines<'_>, reading: &mut Reading) -> Option<(usize, String)> {
    let (at, end) = lines.iter().enumerate().find(|(_, line)| {
        line.starts_with("error: could not compile ")
            || line.starts_with("error: failed to parse manifest")
            || line.starts_with("error: could not find `Cargo.toml`")
    })?;
    let mut errors = 0;
    for (index, line) in lines.iter().enumerate() {
        // With `--message-format short` the location comes first.
        let short = line.split_once(": error").and_then(|(head, rest)| Some((place(head)?, rest.split_once(": ")?.1)));
        if let Some(((file, number), message)) = short {
            reading.failures.add(&format!("{file}:{number}"), Some(file), Some(number), message);
            errors += 1;
        }
        let Some((_, message)) = line.split_once(": ").filter(|_| line.starts_with("error")) else { continue };
        let found = lines.get(index + 1).and_then(|next| next.trim_start().strip_prefix("--> ")).and_then(place);
        if let Some((file, number)) = found {
            reading.failures.add(&format!("{file}:{number}"), Some(file), Some(number), message);
            errors += 1;
        }
    }
    if errors == 0 {
        // The package and its target: `shop (test "flow")`.
        let target = end.split_once("could not compile ").map_or("Cargo.toml", |(_, rest)| rest);
        let target = target.split(" due to ").next().unwrap_or(target).replace('`', "");
        reading.failures.add(&target, None, None, end.strip_prefix("error: ").unwrap_or(end));
    }
    Some((at, end.strip_prefix("error: ").unwrap_or(end).to_owned()))
}

/// `thread 'name' (123) panicked at src/lib.rs:4:53:`, or the older form with the message in quotes.
pub(super) fn panicked(line: &str) -> Option<(&str, (&str, u32))> {
    let (name, rest) = line.trim_start().strip_prefix("thread '")?.split_once('\'')?;
    let (_, at) = rest.split_once("panicked at ")?;
    let at = if at.starts_with('\'') { at.rsplit("', ").next()? } else { at };
    Some((name, place(at)?))
}

pub(super) fn tell_panic(reading: &mut Reading, line: &str, next: Option<&str>) {
    if let (Some((_, found)), Some(failure)) = (panicked(line), reading.failures.last_mut()) {
        describe(failure, Some(found), next);
    }
}

/// The binary whose tests are listed, because binaries may share test names. Cargo announces it on the other stream, so lines may be
/// out of order.
#[derive(Default)]
struct Binary {
    name: String,
    next: Option<String>,
    is_open: bool,
}

impl Binary {
    /// Starts the binary announced since the last one. Returns whether it is clear which one that is.
    fn begin(&mut self) -> bool {
        let is_clear = self.next.is_some() || self.name.is_empty();
        self.name = self.next.take().unwrap_or_default();
        self.is_open = true;
        is_clear
    }
}

/// `shop tests/flow.rs` in `Running tests/flow.rs (target/debug/deps/shop-507999230d6984fa)`, without the hash of the build.
fn running_binary(line: &str) -> Option<String> {
    let text = line.trim_start();
    if let Some(package) = text.strip_prefix("Doc-tests ") {
        return Some(format!("{package} doc-tests"));
    }
    let (source, program) = text.strip_prefix("Running ")?.strip_suffix(')')?.rsplit_once(" (")?;
    let program = program.rsplit('/').next().unwrap_or(program);
    let program = program.rsplit_once('-').map_or(program, |(program, _)| program);
    Some(format!("{program} {source}"))
}

/// `test name ... ok`, `test name ... ignored, why`.
fn verdict(line: &str) -> Option<(&str, End)> {
    let (name, verdict) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let word = verdict.split([',', ' ']).next().unwrap_or(verdict);
    let end = match word {
        "ok" => End::Passed,
        "FAILED" => End::Failed,
        "ignored" => End::Skipped,
        _ => return None,
    };
    Some((without_note(name), end))
}

/// `test name ... FAILED`, `name --- FAILED`.
fn failed(line: &str) -> Option<&str> {
    if let Some(name) = line.strip_suffix(" --- FAILED") {
        return (!name.contains(' ')).then_some(name);
    }
    let rest = line.strip_prefix("test ")?;
    let (name, verdict) = rest.rsplit_once(" ... ")?;
    (verdict == "FAILED" || verdict.starts_with("FAILED <") || verdict.starts_with("FAILED (")).then_some(name)
}

fn without_note(name: &str) -> &str {
    let name = name.trim();
    name.strip_suffix(" - should panic").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::super::super::lines::split;
    use super::*;

    #[test]
    fn names_are_those_of_a_binary_only_where_the_order_of_lines_is_clear() {
        let a = "     Running unittests src/lib.rs (target/debug/deps/a-0123456789abcdef)\n";
        let b = "     Running tests/b.rs (target/debug/deps/b-0123456789abcdef)\n";
        let block =
            "\nrunning 1 test\ntest adds ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let names = |text: &str| {
            let reading = read(&split(text)).unwrap();
            reading.names.complete(reading.counts).map(|names| names.passed.into_iter().collect::<Vec<_>>())
        };
        let whole = [a, block, b, block].concat();
        assert_eq!(names(&whole), Some(vec!["a unittests src/lib.rs adds".to_owned(), "b tests/b.rs adds".to_owned()]));
        let early = [
            a,
            "\nrunning 1 test\n",
            b,
            "test adds ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured\n",
            block,
        ];
        assert_eq!(names(&early.concat()), None, "the second began before the first ended");
        assert_eq!(names(&[a, b, block, block].concat()), None);
        assert_eq!(names(&[a, block, block, b].concat()), None);
        assert_eq!(names(block), Some(vec!["adds".to_owned()]), "the other stream is not there");
    }
}
