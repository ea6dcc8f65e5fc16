//! `go test`: plain, `-v`, `-json`; and gotestsum, which prints the same plus its own summary.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Deserialize;

use super::super::failures::describe;
use super::super::lines::Lines;
use super::{End, Framework, Listed, Reading, Says, counted, place};

#[derive(Default)]
struct Packages {
    ok: usize,
    failed: usize,
    built_badly: usize,
    without_tests: usize,
}

/// The state of the reading when a test started.
struct Start<'l> {
    name: &'l str,
    failures: usize,
    verdicts: usize,
    failed_tests: u64,
    failed: usize,
    built_badly: usize,
    concluded: Option<usize>,
}

pub(super) fn read(lines: &Lines<'_>) -> Option<Reading> {
    if lines.iter().any(|line| line.starts_with('{') && line.contains("\"Action\":")) {
        return read_json(lines);
    }
    read_text(lines)
}

fn read_text(lines: &Lines<'_>) -> Option<Reading> {
    let mut reading = Reading::new(Framework::Go);
    let mut packages = Packages::default();
    let mut verdicts = Verdicts::default();
    let (mut verbose, mut last, mut totals) = (false, None, Vec::new());
    let mut log: Option<(&str, u32, &str)> = None;
    // With `-v` a test's log comes before its result, and a subtest's log before its parent's result.
    let mut logs: HashMap<&str, (&str, u32, &str)> = HashMap::new();
    let mut running = "";
    let (mut open, mut panicked, mut package) = (false, None, None);
    // Go reports the location of a failing import in a file. A package that does not exist has none. Check both output streams.
    let (mut unset, mut placed): (Vec<&str>, HashSet<&str>) = (Vec::new(), HashSet::new());
    // A running test may print lines that look like results. If the test passes, they came from the test.
    let mut start: Option<Start<'_>> = None;
    for (at, line) in lines.iter().enumerate() {
        // With coverage, the line of a package without tests may lack a line break.
        let text = line
            .trim_start()
            .rsplit_once("\t\t--- FAIL: ")
            .map_or(line.trim_start(), |(head, _)| &line.trim_start()[head.len() + 2..]);
        if let Some(name) = text.strip_prefix("--- FAIL: ") {
            reading.failures.add(without_elapsed(name), None, None, "");
            verdicts.add(without_elapsed(name), End::Failed);
            open = true;
            let said = logs.remove(without_elapsed(name)).or(log.take().filter(|_| verbose));
            if let (Some((file, number, message)), Some(failure)) = (said, reading.failures.last_mut()) {
                describe(failure, Some((file, number)), Some(message));
                open = false;
            }
        } else if let Some(name) = text.strip_prefix("=== FAIL: ") {
            let name = without_elapsed(name);
            reading.failures.add(name.split_once(' ').map_or(name, |(_, test)| test), None, None, "");
            open = true;
        } else if text.starts_with("--- PASS: ") || text.starts_with("--- SKIP: ") {
            if let Some(start) =
                start.take_if(|start| line.starts_with("--- PASS: ") && without_elapsed(&line[10..]) == start.name)
            {
                reading.failures.truncate(start.failures);
                if verdicts.failed > start.failed_tests {
                    verdicts.failed = start.failed_tests;
                    reading.names.spoil();
                }
                verdicts.ended.truncate(start.verdicts);
                (packages.failed, packages.built_badly, reading.concluded, last) =
                    (start.failed, start.built_badly, start.concluded, None);
            }
            let end = if text.starts_with("--- PASS: ") { End::Passed } else { End::Skipped };
            verdicts.add(without_elapsed(&text["--- PASS: ".len()..]), end);
            (open, log) = (false, None);
        } else if line.starts_with("=== RUN ") || line.starts_with("=== NAME ") || line.starts_with("=== CONT ") {
            (verbose, log, open) = (true, None, false);
            running = line.split_whitespace().nth(2).unwrap_or_default();
            start = (line.starts_with("=== RUN ") && !running.contains('/')).then(|| Start {
                name: running,
                failures: reading.failures.len(),
                verdicts: verdicts.ended.len(),
                failed_tests: verdicts.failed,
                failed: packages.failed,
                built_badly: packages.built_badly,
                concluded: reading.concluded,
            });
        } else if let Some(rest) = line.strip_prefix("FAIL\t") {
            packages.failed += 1;
            let name = rest.split(['\t', ' ']).next().unwrap_or(rest);
            verdicts.end_package(name, true, &mut reading.names);
            if rest.contains("[build failed]") || rest.contains("[setup failed]") {
                packages.built_badly += 1;
                unset.extend(rest.contains("[setup failed]").then_some(name));
                if !reading.failures.iter().any(|failure| failure.name == name) {
                    reading.failures.add(name, None, None, "");
                }
            } else if let Some(message) = panicked.take() {
                if reading.failures.is_empty() {
                    reading.failures.add(name, None, None, message);
                }
            } else if reading.failures.is_empty() {
                reading.failures.add(name, None, None, "");
            }
            (reading.concluded, open) = (Some(at), false);
        } else if let Some(rest) = line.strip_prefix("ok  \t") {
            packages.ok += 1;
            verdicts.end_package(rest.split(['\t', ' ']).next().unwrap_or(rest), false, &mut reading.names);
            packages.without_tests += usize::from(line.contains("[no tests to run]"));
            (reading.concluded, open) = (Some(at), false);
        } else if line.starts_with("?   \t") && line.contains("[no test files]")
            || line.ends_with("coverage: 0.0% of statements") && line.starts_with('\t')
        {
            (packages.ok, packages.without_tests, reading.concluded) = (packages.ok + 1, packages.without_tests + 1, Some(at));
        } else if **line == *"FAIL" || **line == *"PASS" {
            (last, open) = (Some((at, **line == *"FAIL")), false);
        } else if let Some(counts) = line.strip_prefix("DONE ").filter(|rest| rest.contains(" test")) {
            totals.push((at, counts));
        } else if let Some(name) = line.strip_prefix("# ") {
            package = Some(name.split(' ').next().unwrap_or(name).trim_matches(['[', ']']));
        } else if let Some((file, number, message)) = located(text) {
            if line.starts_with([' ', '\t']) {
                if open && let Some(failure) = reading.failures.last_mut() {
                    describe(failure, Some((file, number)), Some(message));
                    open = false;
                } else if verbose {
                    logs.entry(running).or_insert((file, number, message));
                } else {
                    log = log.or(Some((file, number, message)));
                }
            } else if let Some(package) = package {
                placed.insert(package);
                reading.failures.add(package, Some(file), Some(number), message);
            }
        } else if let Some(message) = text.strip_prefix("panic: ") {
            panicked.get_or_insert(message);
            if let Some(failure) = reading.failures.last_mut().filter(|_| open) {
                describe(failure, None, Some(text));
            }
        } else if panicked.is_some() {
            stack(line, lines.get(at + 1), &mut reading);
        }
    }
    reading.missing = unset.iter().filter(|package| !placed.contains(*package)).count() as u64;
    // A test binary run directly names no package.
    verdicts.end_package("", false, &mut reading.names);
    conclude(reading, &packages, &verdicts, verbose, last, &totals)
}

/// Tests by how they ended, collected per package.
#[derive(Default)]
struct Verdicts {
    ended: Vec<(String, End)>,
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl Verdicts {
    fn add(&mut self, name: &str, end: End) {
        self.ended.push((name.to_owned(), end));
    }

    /// Counts a package's tests, without mere groups. A package that failed although no test did counts as one failure.
    fn end_package(&mut self, package: &str, failed: bool, names: &mut Listed) {
        let before = self.failed;
        let ended = std::mem::take(&mut self.ended);
        let is_group_of = |wanted: fn(End) -> bool| -> HashSet<&str> {
            let with_end = ended.iter().filter(|(_, end)| wanted(*end)).map(|(name, _)| name);
            with_end.flat_map(|name| name.match_indices('/').map(|(at, _)| &name[..at])).collect()
        };
        let (groups, failed_groups) = (is_group_of(|_| true), is_group_of(|end| end == End::Failed));
        for (name, end) in &ended {
            let (skip_as, count) = match end {
                End::Passed => (&groups, &mut self.passed),
                // A group may fail although its tests pass.
                End::Failed => (&failed_groups, &mut self.failed),
                End::Skipped => (&groups, &mut self.skipped),
            };
            if !skip_as.contains(name.as_str()) {
                *count += 1;
                names.add(&format!("{package} {name}"), *end);
            }
        }
        if failed && self.failed == before {
            self.failed += 1;
        }
    }
}

fn conclude(
    mut reading: Reading,
    packages: &Packages,
    verdicts: &Verdicts,
    verbose: bool,
    last: Option<(usize, bool)>,
    totals: &[(usize, &str)],
) -> Option<Reading> {
    reading.failures = std::mem::take(&mut reading.failures).without_groups('/');
    if let Some((at, _)) = totals.last() {
        for (_, counts) in totals {
            let of = |word| counted(counts, word).unwrap_or(0);
            let failed = of("failure") + of("failures");
            let tests = of("tests") + of("test");
            reading.count_instead(tests.saturating_sub(failed + of("skipped")), failed, of("skipped"));
        }
        reading.judge();
        reading.concluded = Some(*at);
        return Some(reading);
    }
    // Any program may print a lone FAIL.
    let last = last.filter(|(_, failed)| !failed || verbose || !reading.failures.is_empty() || packages.ok > 0);
    let no_package = packages.ok + packages.failed == 0;
    let failing = packages.failed > 0 || (no_package && last.is_some_and(|(_, failed)| failed));
    if reading.concluded.is_none() {
        reading.concluded = last.map(|(at, _)| at);
    }
    if !failing && reading.concluded.is_some() {
        if verbose {
            reading.count(verdicts.passed, 0, verdicts.skipped);
        }
        let is_skipped = verbose && verdicts.passed == 0 && verdicts.skipped > 0;
        let nothing = packages.ok > 0 && packages.ok == packages.without_tests || is_skipped;
        reading.says = if nothing { Says::NothingRan } else { Says::Passed };
        return Some(reading);
    }
    if verbose {
        reading.count(verdicts.passed, verdicts.failed, verdicts.skipped);
    } else {
        // Go prints the number of passed tests only with `-v`.
        reading.counts.failed = Some(verdicts.failed);
    }
    reading.says = if packages.built_badly > 0 && packages.built_badly == packages.failed { Says::Broken } else { Says::Failed };
    (failing || !reading.failures.is_empty()).then_some(reading)
}

/// Finds the test in the stack of a panic, and its location on the next line.
fn stack(line: &str, next: Option<&std::borrow::Cow<'_, str>>, reading: &mut Reading) {
    let name = line.split('(').next().and_then(|call| call.rsplit('.').next()).filter(|name| is_test(name));
    let inner = line.split('(').next().and_then(|call| call.split('.').rev().find(|part| is_test(part)));
    let running = line.strip_prefix("\t\t").and_then(|rest| rest.split(' ').next()).filter(|name| is_test(name));
    let found = next.and_then(|next| place(next.trim_start().split(' ').next()?));
    if let Some(name) = running {
        reading.failures.add(name, None, None, "timed out");
    } else if let Some(name) = name.or(inner).filter(|_| !line.starts_with([' ', '\t'])) {
        let known = reading.failures.iter().any(|failure| failure.name.split('/').next() == Some(name));
        if !known && reading.failures.is_empty() {
            reading.failures.add(name, None, None, "");
        }
        if let (Some(failure), Some(found)) = (reading.failures.last_mut(), found) {
            describe(failure, Some(found), None);
        }
    }
}

fn is_test(name: &str) -> bool {
    if name == "TestMain" {
        return false;
    }
    ["Test", "Fuzz", "Benchmark", "Example"]
        .iter()
        .any(|start| name.strip_prefix(start).is_some_and(|rest| !rest.starts_with(char::is_lowercase) && !rest.is_empty()))
}

fn without_elapsed(name: &str) -> &str {
    match name.rsplit_once(" (") {
        Some((rest, time)) if time.ends_with("s)") => rest,
        Some(_) | None => name,
    }
}

/// `a_test.go:3: message`, `b/a_test.go:3:33: message`.
fn located(text: &str) -> Option<(&str, u32, &str)> {
    let at = text.find(".go:")?;
    let (head, message) = text.split_once(": ").or_else(|| text.strip_suffix(':').map(|head| (head, "")))?;
    if at > head.len() || head.contains(' ') && !head.starts_with("vet") {
        return None;
    }
    let (file, line) = place(head)?;
    Some((file.strip_prefix("vet: ").unwrap_or(file), line, message))
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Event {
    action: String,
    #[serde(default)]
    package: String,
    #[serde(default)]
    import_path: String,
    #[serde(default)]
    test: String,
    #[serde(default)]
    output: String,
    #[serde(default)]
    failed_build: String,
}

/// The file, line and text of a test's log message.
type Log = (String, u32, String);

fn read_json(lines: &Lines<'_>) -> Option<Reading> {
    let mut reading = Reading::new(Framework::Go);
    let mut logs: HashMap<(String, String), Log> = HashMap::new();
    let mut packages = Packages::default();
    let (mut verdicts, mut last): (BTreeMap<String, Verdicts>, _) = (BTreeMap::new(), None);
    let mut failed_packages: HashSet<String> = HashSet::new();
    let mut builds: Vec<(String, String, u32, String)> = Vec::new();
    let mut failed_tests: Vec<((String, String), Option<Log>)> = Vec::new();
    let mut heading = None;
    for (at, line) in lines.iter().enumerate() {
        let Some(event) = line.starts_with('{').then(|| serde_json::from_str::<Event>(line).ok()).flatten() else {
            if let Some(name) = line.strip_prefix("# ") {
                heading = name.split(' ').next().map(|name| name.trim_matches(['[', ']']).to_owned());
            } else if let (Some(name), Some((file, number, message))) = (&heading, located(line)) {
                builds.push((name.clone(), file.to_owned(), number, message.to_owned()));
            } else if line.starts_with("FAIL\t") && line.contains(" failed]") {
                packages.failed += 1;
                packages.built_badly += 1;
                last = Some(at);
            }
            continue;
        };
        let key = (event.package.clone(), event.test.clone());
        if event.test.is_empty() && event.action == "pass" {
            // In a package that passed, apparent failures were printed by its tests.
            failed_tests.retain(|((package, _), _)| *package != event.package);
            if let Some(verdicts) = verdicts.get_mut(&event.package) {
                verdicts.ended.retain(|(_, end)| *end != End::Failed);
            }
        }
        let end = match event.action.as_str() {
            "pass" => Some(End::Passed),
            "fail" => Some(End::Failed),
            "skip" => Some(End::Skipped),
            _ => None,
        };
        if let Some(end) = end.filter(|_| !event.test.is_empty()) {
            verdicts.entry(event.package.clone()).or_default().add(&event.test, end);
        }
        match event.action.as_str() {
            "output" | "build-output" => {
                if let Some((file, number, message)) = located(event.output.trim()) {
                    if event.action == "build-output" {
                        let package = event.import_path.split(' ').next().unwrap_or_default().to_owned();
                        builds.push((package, file.to_owned(), number, message.to_owned()));
                    } else {
                        logs.entry(key).or_insert_with(|| (file.to_owned(), number, message.to_owned()));
                    }
                } else if event.output.contains("[no tests to run]") {
                    packages.without_tests += 1;
                } else if event.output.starts_with("FAIL\t") && event.output.contains(" failed]") {
                    packages.built_badly += 1;
                }
            }
            "fail" if event.test.is_empty() => {
                packages.failed += 1;
                failed_packages.insert(event.package.clone());
                packages.built_badly += usize::from(!event.failed_build.is_empty() && packages.built_badly < packages.failed);
                last = Some(at);
            }
            "fail" => {
                let log = logs.get(&key).cloned();
                failed_tests.push((key, log));
            }
            "pass" if event.test.is_empty() => (packages.ok, last) = (packages.ok + 1, Some(at)),
            "skip" if event.test.is_empty() => {
                (packages.ok, packages.without_tests, last) = (packages.ok + 1, packages.without_tests + 1, Some(at));
            }
            _ => {}
        }
    }
    for ((_, test), log) in &failed_tests {
        let (file, number) = log.as_ref().map(|(file, number, _)| (file.as_str(), *number)).unzip();
        reading.failures.add(test, file, number, log.as_ref().map_or("", |(_, _, message)| message));
    }
    reading.failures = std::mem::take(&mut reading.failures).without_groups('/');
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for (package, verdicts) in &mut verdicts {
        verdicts.end_package(package, failed_packages.contains(package), &mut reading.names);
        (passed, failed, skipped) = (passed + verdicts.passed, failed + verdicts.failed, skipped + verdicts.skipped);
    }
    for (package, file, number, message) in &builds {
        reading.failures.add(package, Some(file), Some(*number), message);
    }
    reading.concluded = last;
    // A package that did not build has no test events.
    let unseen = failed_packages.iter().filter(|package| !verdicts.contains_key(*package)).count();
    reading.count(passed, failed + unseen as u64, skipped);
    let nothing = packages.ok == packages.without_tests || passed == 0;
    reading.says = match packages.failed {
        0 if failed > 0 => Says::Failed,
        0 if nothing => Says::NothingRan,
        0 => Says::Passed,
        bad if bad == packages.built_badly => Says::Broken,
        _ => Says::Failed,
    };
    (last.is_some() || failed > 0).then_some(reading)
}

#[cfg(test)]
mod tests {
    use super::super::super::lines::split;
    use super::*;

    #[test]
    fn gotestsum_is_read_too() {
        let text = "∅  p\n✖  f (5ms)\n\n=== Failed\n=== FAIL: f TestA (0.00s)\n    a_test.go:3: got 2 want 3\n\nDONE 3 tests, 1 skipped, 1 failure in 0.5s\n";
        let reading = read(&split(text)).unwrap();
        assert_eq!((reading.says, reading.counts.passed, reading.counts.failed), (Says::Failed, Some(1), Some(1)));
        let failures = reading.failures.into_list();
        assert_eq!(
            (failures[0].name.as_str(), failures[0].line, failures[0].message.as_str()),
            ("TestA", Some(3), "got 2 want 3")
        );
    }

    #[test]
    fn what_a_test_prints_is_no_verdict() {
        let text = "=== RUN   TestA\nFAIL\n    --- FAIL: nope\n--- PASS: TestA (0.00s)\nPASS\nok  \texample.com/w\t0.004s\n";
        assert_eq!(read(&split(text)).unwrap().says, Says::Passed);
    }
}
