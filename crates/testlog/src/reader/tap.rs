//! TAP from producers in any language, node-tap's own reports, and `prove`, which reads TAP and prints its own format.

use super::super::failures::{Failures, describe};
use super::super::lines::Lines;
use super::node::Sums;
use super::{End, Framework, Reading, Says, TestCounts, counted, indent, labelled, leading_number, place, without_time};

/// The additional indentation of a subtest.
const SUBTEST_INDENT: usize = 4;

#[derive(Default)]
struct Tally {
    passed: u64,
    failed: u64,
    skipped: u64,
}

/// One result line. A group's line comes after those of its tests, or before them if it opens a brace.
struct Point {
    depth: usize,
    name: String,
    failed: bool,
    braced: bool,
    /// The name, prefixed with the names of the enclosing tests.
    path: String,
    end: End,
    /// A mere group of other tests.
    is_suite: bool,
}

pub(super) fn read(lines: &Lines<'_>) -> Option<Reading> {
    if let Some(reading) = read_prove(lines) {
        return Some(reading);
    }
    let mut reading = Reading::new(Framework::Tap);
    let mut tally = Tally::default();
    let mut points: Vec<Point> = Vec::new();
    let (mut plan, mut version, mut bailed, mut in_yaml, mut open) = (None, false, None, None, false);
    let (mut printed, mut printed_bad) = (None, None);
    let mut sums = Sums::default();
    let mut around: Vec<&str> = Vec::new();
    let mut loading = false;
    for (at, line) in lines.iter().enumerate() {
        let depth = indent(line);
        let text = line.trim_start();
        if let Some(level) = in_yaml {
            if text == "..." && depth == level {
                in_yaml = None;
            } else if let Some(last) = points.last_mut().filter(|_| text == "type: 'suite'") {
                last.is_suite = true;
            } else if open && let Some(failure) = reading.failures.last_mut() {
                loading |= text.starts_with("failureType: 'uncaughtException'")
                    || text.contains("exitCode: ") && !text.ends_with(": 0") && failure.name.contains('.');
                diagnose(text, failure);
            }
            continue;
        }
        if text == "---" && (open || depth > 0) {
            in_yaml = Some(depth);
        } else if line.starts_with("TAP version ") {
            version = true;
        } else if text.starts_with("1..") && leading_number(&text[3..]).is_some() {
            if depth == 0 {
                plan = Some((at, leading_number(&text[3..]).unwrap_or(0)));
            }
        } else if let Some(reason) = line.strip_prefix("Bail out!") {
            bailed = Some((at, reason.trim()));
        } else if let Some((good, name, directive)) = point(text) {
            let excused = directive.is_some();
            let failed = !good && directive != Some(Directive::Skip) && directive != Some(Directive::Todo);
            open = failed;
            let mut shown = String::new();
            if failed {
                shown = if name.is_empty() { text.trim_end_matches(" {").to_owned() } else { name.to_owned() };
                reading.failures.add(&shown, None, None, "");
            }
            let end = match (failed, excused) {
                (true, _) => End::Failed,
                (false, true) => End::Skipped,
                (false, false) => End::Passed,
            };
            around.truncate(depth / SUBTEST_INDENT);
            let path = around.iter().copied().chain([name]).collect::<Vec<_>>().join(" > ");
            points.push(Point { depth, name: shown, failed, braced: text.ends_with(" {"), path, end, is_suite: false });
            if depth == 0 {
                match end {
                    End::Failed => tally.failed += 1,
                    End::Skipped => tally.skipped += 1,
                    End::Passed => tally.passed += 1,
                }
            }
        } else if let Some(comment) = text.strip_prefix('#') {
            let comment = comment.trim();
            if let Some(name) = comment.strip_prefix("Subtest: ") {
                around.truncate(depth / SUBTEST_INDENT);
                around.push(name);
            }
            if depth == 0 {
                sums.read_line(at, comment, &mut reading);
                let number = |word: &str| leading_number(comment.strip_prefix(word)?.strip_prefix(' ')?.trim_start());
                printed = number("pass").or(printed);
                printed_bad = number("fail").or(printed_bad);
            }
            if open && let Some(failure) = reading.failures.last_mut() {
                comment_of(comment, failure);
            }
        }
    }
    if points.is_empty() && plan.is_none() && bailed.is_none() {
        return read_terse(lines).or_else(|| read_listed(lines));
    }
    reading.framework = producer(lines);
    drop_groups(&mut reading.failures, &points);
    reading.concluded = plan.map(|(at, _)| at).or(bailed.map(|(at, _)| at)).or(version.then_some(0));
    // The result lines were cut off; use the producer's own counts below the plan.
    if let (Some(passed), Some(failed), true) = (printed, printed_bad, points.is_empty()) {
        (tally.passed, tally.failed) = (passed, failed);
    }
    // Subtests are not counted here, but node's own sums include them.
    let counts_subtests = sums.is_of_node() && sums.count(&mut reading);
    if !counts_subtests {
        (reading.counts, reading.earlier) = (TestCounts::default(), TestCounts::default());
        reading.count(tally.passed, tally.failed, tally.skipped);
    }
    for point in points.iter().filter(|point| if counts_subtests { !point.is_suite } else { point.depth == 0 }) {
        reading.names.add(&point.path, point.end);
    }
    reading.judge();
    if let Some((_, reason)) = bailed {
        if reading.failures.is_empty() {
            reading.failures.add(reason, None, None, "");
            reading.count(0, 1, 0);
        }
        (reading.says, reading.reason) = (Says::Broken, Some(format!("Bail out! {reason}")));
    } else if tally.failed == 0 && !reading.failures.is_empty() {
        reading.says = Says::Failed;
    } else if let Some((at, planned)) =
        plan.filter(|(_, planned)| *planned > points.iter().filter(|point| point.depth == 0).count() as u64)
        && reading.says == Says::Passed
        && points.len() as u64 >= 1
        && at == 0
    {
        reading.reason = Some(format!("planned {planned} tests, but fewer ran"));
    }
    if loading
        && reading.says == Says::Failed
        && reading.failures.iter().all(|failure| failure.name.ends_with("js") || failure.name.ends_with("ts"))
    {
        reading.says = Says::Broken;
    }
    Some(reading)
}

/// The producer of the output, if it can be recognised.
fn producer(lines: &Lines<'_>) -> Framework {
    let from_bats = |line: &str| line.starts_with("# (") && line.contains(".bats, line ");
    if lines.iter().any(|line| line.starts_with("# duration_ms ")) {
        Framework::NodeTest
    } else if lines.iter().any(|line| from_bats(line) || line.starts_with("# ") && line.contains(".bats: line ")) {
        Framework::Bats
    } else {
        Framework::Tap
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Directive {
    Skip,
    Todo,
}

/// `not ok 1 - name # SKIP why`.
fn point(text: &str) -> Option<(bool, &str, Option<Directive>)> {
    let (good, rest) = match text.strip_prefix("not ok") {
        Some(rest) => (false, rest),
        None => (true, text.strip_prefix("ok")?),
    };
    if !(rest.is_empty() || rest.starts_with(' ')) {
        return None;
    }
    let rest = rest.trim_start();
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 && !rest.starts_with("- ") {
        return None;
    }
    let rest = rest[digits..].trim_start();
    let rest = rest.strip_prefix("- ").unwrap_or(if rest == "-" { "" } else { rest });
    let rest = rest.strip_suffix(" {").unwrap_or(rest);
    let (name, directive) = match rest.rfind('#') {
        Some(at) => {
            let note = rest[at + 1..].trim_start();
            let word = note.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default().to_ascii_lowercase();
            match word.as_str() {
                "skip" | "skipped" => (&rest[..at], Some(Directive::Skip)),
                "todo" => (&rest[..at], Some(Directive::Todo)),
                "time" => (&rest[..at], None),
                _ => (rest, None),
            }
        }
        None => (rest, None),
    };
    Some((good, without_time(name.trim()), directive))
}

/// Removes groups: a group fails because one of its tests failed, so only the tests are named.
fn drop_groups(failures: &mut Failures, points: &[Point]) {
    let deepest = |at: usize| {
        let Point { depth, braced, .. } = points[at];
        let inside_before = at > 0 && points[..at].iter().rev().take_while(|point| point.depth > depth).any(|point| point.failed);
        let inside_after = || points[at + 1..].iter().take_while(|point| point.depth > depth).any(|point| point.failed);
        !(inside_before || braced && inside_after())
    };
    // Bound the scan around each point: deep nesting is rare, and hostile output must not take quadratic time.
    if points.len() > 20_000 {
        return;
    }
    let leaves: std::collections::HashSet<&str> = (0..points.len())
        .filter(|at| points[*at].failed)
        .take(400)
        .filter(|at| deepest(*at))
        .map(|at| points[at].name.as_str())
        .collect();
    let mut kept = Failures::default();
    for failure in std::mem::take(failures).into_list() {
        if leaves.contains(failure.name.as_str()) || failure.name.chars().count() >= 300 {
            kept.add(&failure.name, failure.file.as_deref(), failure.line, &failure.message);
        }
    }
    *failures = kept;
}

fn diagnose(text: &str, failure: &mut super::super::TestFailure) {
    if text.starts_with('(') && text.contains(", line ") {
        comment_of(text, failure);
        return;
    }
    let Some((key, value)) = text.split_once(": ").or_else(|| text.strip_suffix(':').map(|key| (key, ""))) else {
        if matches!(failure.message.as_str(), "|-" | "|" | ">-") {
            text.clone_into(&mut failure.message);
        }
        return;
    };
    let value = value.trim().trim_matches(['\'', '"']);
    match key {
        "location" | "at" if !value.is_empty() => {
            let value = value.rsplit('(').next().unwrap_or(value);
            describe(failure, place(value), None);
        }
        "fileName" | "file" if failure.file.is_none() && !value.is_empty() => failure.file = Some(value.to_owned()),
        "lineNumber" | "line" if failure.line.is_none() => failure.line = value.parse().ok(),
        "error" | "message" if !value.is_empty() => describe(failure, None, Some(value)),
        _ if matches!(failure.message.as_str(), "|-" | "|" | ">-") => text.clone_into(&mut failure.message),
        _ => {}
    }
}

/// `(in test file f.bats, line 2)`, `at t/f.t line 1.`
fn comment_of(comment: &str, failure: &mut super::super::TestFailure) {
    if let Some((head, rest)) = comment.split_once(", line ").filter(|(head, _)| head.contains("file ")) {
        let file = head.rsplit("file ").next().unwrap_or(head);
        if let Some(line) = leading_number(rest) {
            describe(failure, Some((file, line as u32)), None);
        }
    } else if let Some((file, rest)) = comment.strip_prefix("at ").and_then(|rest| rest.split_once(" line ")) {
        if let Some(line) = leading_number(rest) {
            describe(failure, Some((file, line as u32)), None);
        }
    } else if !comment.is_empty() && !comment.starts_with("Failed test") {
        describe(failure, None, Some(comment));
    }
}

/// `prove` prints a line per file and a result at the end.
fn read_prove(lines: &Lines<'_>) -> Option<Reading> {
    let (end, result) = lines.iter().enumerate().rev().find_map(|(at, line)| Some((at, line.strip_prefix("Result: ")?)))?;
    lines[..end].iter().rev().take(5).find(|line| line.starts_with("Files="))?;
    let mut reading = Reading::new(Framework::Tap);
    reading.concluded = Some(end);
    let sum = |label: &str| lines.iter().filter_map(|line| labelled(line.strip_prefix("Files=")?, label)).sum::<u64>();
    let tests = sum("Tests=");
    let (mut failed, mut died, mut skipped) = (0, 0, 0);
    let (mut named, mut file) = (false, "");
    for (at, line) in lines[..end].iter().enumerate() {
        if let Some((file, rest)) = line.split_once(" (Wstat: ") {
            let bad = labelled(rest, "Failed:").unwrap_or(0);
            failed += bad;
            died += u64::from(bad == 0 && leading_number(rest) != Some(0));
            let why = lines[at + 1..end]
                .iter()
                .take(3)
                .map(|line| line.trim())
                .find(|line| line.starts_with("Parse errors") || line.starts_with("Non-zero"));
            if !reading.failures.iter().any(|failure| failure.file.as_deref() == Some(file.trim())) {
                reading.failures.add(file.trim(), Some(file.trim()), None, why.unwrap_or_default());
            }
        } else if let Some(name) = line.trim_start().strip_prefix("#   Failed test '").and_then(|rest| rest.strip_suffix('\'')) {
            let place = lines
                .get(at + 1)
                .and_then(|next| next.trim_start().strip_prefix("#   at "))
                .and_then(|rest| rest.split_once(" line "));
            let (file, number) = place.map(|(file, rest)| (file, leading_number(rest).unwrap_or(0) as u32)).unzip();
            reading.failures.add(name, file, number, "");
            named = true;
        } else if let Some((good, name, directive)) = point(line) {
            skipped += u64::from(directive.is_some());
            let end = match (good, directive) {
                (_, Some(_)) => End::Skipped,
                (true, None) => End::Passed,
                (false, None) => End::Failed,
            };
            if name.is_empty() {
                reading.names.spoil();
            }
            reading.names.add(&format!("{file} {name}"), end);
        } else if let Some((path, _)) = line.split_once(" ..").filter(|(_, rest)| rest.trim_matches(['.', ' ']).is_empty()) {
            file = path;
        }
    }
    let broken = lines[..end].iter().any(|line| line.trim_end() == "No subtests run") && tests == 0;
    reading.count(tests.saturating_sub(failed + skipped), failed + died, skipped);
    reading.says = match result.trim() {
        "PASS" => Says::Passed,
        "NOTESTS" => Says::NothingRan,
        _ if broken && !named => Says::Broken,
        _ => Says::Failed,
    };
    Some(reading)
}

/// The list at the end of tap-spec and tap-dot output: `Failed Tests: There were 2 failures`, then `✖ name` or `x name`.
fn read_listed(lines: &Lines<'_>) -> Option<Reading> {
    let is_title = |line: &str| line.trim_start().starts_with("Failed Tests:") && line.contains(" There w");
    let at = lines.iter().rposition(|line| is_title(line))?;
    let mut reading = Reading::new(Framework::Tap);
    for line in &lines[at..] {
        if let Some(name) = line.trim_start().strip_prefix("✖ ").or_else(|| line.trim_start().strip_prefix("x ")) {
            reading.failures.add(name, None, None, "");
        }
    }
    reading.concluded = Some(at);
    reading.says = Says::Failed;
    (!reading.failures.is_empty()).then_some(reading)
}

/// node-tap's human-readable reports.
fn read_terse(lines: &Lines<'_>) -> Option<Reading> {
    let clean = |line: &str| line.replace('\u{200b}', "");
    let at = lines.iter().rposition(|line| line.starts_with("Asserts:"))?;
    let asserts = clean(&lines[at]);
    let of = |word| counted(&asserts, word).unwrap_or(0);
    let suites = lines[at.saturating_sub(1)..].iter().take(3).map(|line| clean(line)).find(|line| line.starts_with("Suites:"))?;
    let mut reading = Reading::new(Framework::Tap);
    let suites_failed = counted(&suites, "fail").or_else(|| counted(&suites, "failed")).unwrap_or(0);
    reading.count(of("pass") + of("passed"), of("fail") + of("failed"), of("skip") + of("todo"));
    reading.concluded = Some(at);
    let mut file: Option<String> = None;
    for line in lines {
        let line = clean(line);
        let text = line.trim();
        if let Some(path) = text.strip_prefix("FAIL ") {
            file = path.split_whitespace().next().map(str::to_owned);
            if suites_failed > 0 && reading.counts.failed == Some(0) {
                reading.failures.add(path.split_whitespace().next().unwrap_or(path), file.as_deref(), None, "");
            }
        } else if let Some(name) = text.strip_prefix("✖ ").or_else(|| text.strip_prefix("✗ ")) {
            reading.failures.add(without_time(name), file.as_deref(), None, "");
        }
    }
    reading.judge();
    if suites_failed > 0 && reading.says < Says::Failed {
        reading.says = Says::Broken;
    }
    Some(reading)
}
