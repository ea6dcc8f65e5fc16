//! What checks show about their tests, from real commands, exit codes and outputs.
//!
//! Each fixture in `check_results` is one file: `$ command`, `exit code`, then the output. `expected.txt` next to them has one line for
//! each of them and for each fixture of the crate testlog: what it proves (green, red or nothing), tests (passed/failed/skipped), the names
//! if all are known, and the text for what is missing. Run with `VERDONE_BLESS=1` to rewrite it, and compare the difference with the
//! outputs.

#![expect(clippy::disallowed_methods, reason = "fixtures are files")]
#![expect(clippy::unwrap_used, reason = "a fixture that cannot be read is a failed test")]

use std::fs;
use std::path::PathBuf;

use verdone_core::check::{CommandSpec, TestsSeen, tests_seen};

struct Fixture {
    name: String,
    command: String,
    exit: i32,
    output: String,
}

impl Fixture {
    fn seen(&self) -> TestsSeen {
        self.seen_by(&self.command, self.exit)
    }

    fn seen_by(&self, command: &str, exit: i32) -> TestsSeen {
        tests_seen(&CommandSpec::Shell(command.to_owned()), exit, &self.output, &[])
    }
}

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// The names of the files in a folder with this ending, without the ending.
fn names(of: &str, ending: &str) -> Vec<String> {
    let files = fs::read_dir(folder(of)).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = files.filter_map(|name| name.strip_suffix(ending).map(str::to_owned)).collect();
    names.sort();
    names
}

fn text(of: &str, file: &str) -> String {
    String::from_utf8_lossy(&fs::read(folder(of).join(file)).unwrap()).into_owned()
}

fn captured() -> Vec<Fixture> {
    let names = names("check_results", ".txt").into_iter().filter(|name| name != "expected");
    let fixture = |name: String| {
        let text = text("check_results", &format!("{name}.txt"));
        let (command, rest) = text.strip_prefix("$ ").unwrap().split_once('\n').unwrap();
        let (exit, output) = rest.strip_prefix("exit ").unwrap().split_once('\n').unwrap();
        Fixture { name, command: command.to_owned(), exit: exit.parse().unwrap(), output: output.to_owned() }
    };
    names.map(fixture).collect()
}

fn older() -> Vec<Fixture> {
    let of = |name: &str, ending: &str| text("../../../testlog/tests/fixtures/outputs", &format!("{name}.{ending}"));
    let fixture = |name: String| Fixture {
        command: of(&name, "cmd").trim().to_owned(),
        exit: of(&name, "exit").trim().parse().unwrap(),
        output: of(&name, "txt"),
        name,
    };
    names("../../../testlog/tests/fixtures/outputs", ".cmd").into_iter().map(fixture).collect()
}

fn is_red(seen: &TestsSeen, exit: i32) -> bool {
    let failed = seen.count.is_some_and(|count| count.failed > 0);
    // A command that cannot be started proves nothing, whatever it printed.
    failed || !matches!(exit, 0 | 126 | 127) && !seen.nothing_ran && seen.absent.is_none()
}

fn describe(fixture: &Fixture) -> String {
    let seen = fixture.seen();
    let proves_nothing = matches!(fixture.exit, 126 | 127) || seen.nothing_ran || seen.no_summary || seen.absent.is_some();
    let state = match (is_red(&seen, fixture.exit), proves_nothing) {
        (true, _) => "red",
        (false, true) => "nothing",
        (false, false) => "green",
    };
    let tests = match (seen.count, seen.some_ran) {
        (Some(count), _) => format!("{}/{}/{}", count.passed, count.failed, count.skipped),
        (None, true) => "some".to_owned(),
        (None, false) => "-".to_owned(),
    };
    let names = seen.names.map_or("", |_| " named");
    let absent = seen.absent.map_or(String::new(), |words| format!(" | {words}"));
    format!("{}: {state} {tests}{names}{absent}\n", fixture.name)
}

#[test]
fn every_check_shows_what_was_checked_by_eye() {
    let found: String = captured().iter().chain(&older()).map(describe).collect();
    let path = folder("check_results").join("expected.txt");
    if std::env::var_os("VERDONE_BLESS").is_some() {
        fs::write(&path, &found).unwrap();
    }
    let expected = fs::read_to_string(path).unwrap();
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.lines().count(), expected.lines().count());
}

/// The names of fixtures say what happened: `_fail` failed, hidden or not, and `_pass` passed.
#[test]
fn no_failed_run_is_green_and_only_a_printed_summary_turns_a_good_one_red() {
    let printed = [
        "cargo_pass_prints_result",
        "jest28_pass_prints_report",
        "jest29_pass_npm_prints",
        "minitest_pass",
        "mocha9_pass_prints",
        "phpunit11_pass_prints",
        "pytest83_pass_prints_reports",
        "pytest9_pass_word",
        "vitest0_pass_prints",
        "vitest30_pass_prints",
    ];
    let mut red = Vec::new();
    for fixture in older().into_iter().filter(|fixture| !fixture.name.starts_with("nontest_")) {
        let seen = fixture.seen();
        let is_red = is_red(&seen, fixture.exit);
        let is_green = !is_red && !seen.nothing_ran && !seen.no_summary && seen.absent.is_none();
        assert!(!(is_green && fixture.name.contains("_fail")), "{}: {seen:?}", fixture.name);
        if is_red && fixture.exit == 0 && fixture.name.contains("_pass") {
            red.push(fixture.name);
        }
    }
    assert_eq!(red, printed);
}

/// `make` with `.ONESHELL`, `npm test || true`, a script without `set -e`.
#[test]
fn a_failure_that_is_counted_is_counted_whoever_ran_it_and_whatever_the_exit_code() {
    let (mut all, mut same, mut missed) = (0, 0, Vec::new());
    for fixture in captured().into_iter().chain(older()) {
        let Some(count) = fixture.seen().count.filter(|count| count.failed > 0 && fixture.exit != 0) else { continue };
        all += 1;
        let swallowed = fixture.seen_by("make test", 0).count;
        assert!(swallowed.is_some_and(|count| count.failed > 0), "{}: {swallowed:?}", fixture.name);
        let is_same = swallowed == Some(count);
        same += usize::from(is_same);
        missed.extend((!is_same).then_some(fixture.name));
    }
    assert!(all > 400 && same * 100 >= all * 99, "{same} of {all}: {missed:?}");
}

#[test]
fn two_runs_one_after_another_count_together() {
    let (mut all, mut doubled, mut missed) = (0, 0, Vec::new());
    for mut fixture in captured().into_iter().chain(older()) {
        let Some(once) = fixture.seen_by("make test", 1).count.filter(|count| count.ran > 0) else { continue };
        fixture.output = format!("{0}\nsome other line\n{0}", fixture.output);
        let twice = fixture.seen_by("make test", 1).count.unwrap_or_default();
        all += 1;
        let is_double = twice.passed == 2 * once.passed && twice.failed == 2 * once.failed && twice.skipped == 2 * once.skipped;
        doubled += usize::from(is_double);
        missed.extend((!is_double).then(|| format!("{} {once:?} {twice:?}", fixture.name)));
    }
    assert!(all > 500 && doubled * 100 >= all * 98, "{doubled} of {all}: {missed:#?}");
}

/// A script that continues after a failure, and a process that prints a good summary at its end.
#[test]
fn a_good_run_hides_no_bad_one_before_it() {
    let older = older();
    let runner = |name: &str| name.split('_').next().unwrap().to_owned();
    let mut pairs = 0;
    for bad in older.iter().filter(|fixture| fixture.name.ends_with("_fail")) {
        let same = |good: &&Fixture| good.name == format!("{}_pass", runner(&bad.name));
        let Some(good) = older.iter().find(same).filter(|_| bad.seen().count.is_some_and(|count| count.failed > 0)) else {
            continue;
        };
        let output = format!("{}\n{}", bad.output, good.output);
        for command in ["make test", &bad.command] {
            let both = Fixture { name: bad.name.clone(), command: command.to_owned(), exit: 0, output: output.clone() };
            assert!(both.seen().count.is_some_and(|count| count.failed > 0), "{} by {command}: {:?}", bad.name, both.seen());
        }
        pairs += 1;
    }
    assert!(pairs > 25, "{pairs}");
}

#[test]
fn programs_that_show_text_or_look_at_code_are_not_blamed_for_what_they_show() {
    for fixture in captured().into_iter().chain(older()) {
        for command in ["cat test.log", "git log"] {
            let seen = fixture.seen_by(command, 0);
            assert_eq!((seen.count, seen.nothing_ran, seen.absent), (None, false, None), "{command} over {}", fixture.name);
        }
    }
}

#[test]
fn tests_are_named_so_that_they_can_be_told_apart_on_another_tree() {
    let all = captured();
    let names = |name: &str| {
        let names = all.iter().find(|fixture| fixture.name == name).unwrap().seen().names.unwrap();
        let list = |names: &std::collections::BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>();
        (list(&names.passed), list(&names.failed), list(&names.skipped))
    };
    let (passed, failed, skipped) = names("cargo_counts");
    let flow = "flow tests/flow.rs adds";
    assert!(
        passed.contains(&flow.to_owned()) && passed.contains(&"shop unittests src/lib.rs tests::adds".to_owned()),
        "{passed:?}"
    );
    assert_eq!(
        (failed, skipped),
        (vec!["bad tests/bad.rs bad".to_owned()], vec!["shop unittests src/lib.rs tests::later".to_owned()])
    );
    let (_, failed, skipped) = names("go_verbose");
    assert_eq!(failed, ["example.com/shop/b TestBad", "example.com/shop/b TestTable/x"]);
    assert_eq!(skipped, ["example.com/shop/a TestLater", "example.com/shop/a TestTable/two"]);
    assert_eq!(names("go_verbose"), names("go_json"));
    let (passed, failed, skipped) = names("node_tap");
    assert_eq!(passed, ["adds", "deep > one", "deep > zero", "parent", "parent > child"]);
    assert_eq!(
        (failed, skipped),
        (vec!["bad".to_owned(), "deep > wrong".to_owned()], vec!["known".into(), "later".into(), "soon".into()])
    );
    let (passed, failed, skipped) = names("pytest_verbose");
    assert_eq!((passed.len(), failed.len(), passed[1].as_str()), (5, 0, "tests/test_calc.py::test_more[1]"));
    assert_eq!(skipped[2], "tests/test_calc.py::test_xpass", "a test that was expected to fail proves nothing when it passes");
    assert_eq!(names("pytest_xdist_verbose").1, ["tests/test_bad.py::Bad::test_bad"]);
    assert_eq!(names("unittest_discover").1, ["test_bad (tests.test_bad.Bad.test_bad)"]);
    assert_eq!(names("prove_swallowed"), (vec!["t/b.t good".to_owned()], vec!["t/b.t bad".to_owned()], Vec::new()));
}

#[test]
fn an_output_of_ten_megabytes_is_counted_in_bounded_work() {
    // No clock needed: a reader that is not linear would not finish within a test's time limit.
    for line in
        ["test a::b ... ok\n", "--- PASS: A/b/c (0.0s)\n", "1 tests, 1 failed\n", "    # Subtest: a\n", "a.py::b PASSED\n", "{\n"]
    {
        let output = line.repeat(10 * 1024 * 1024 / line.len());
        let seen = tests_seen(&CommandSpec::Shell("make test".to_owned()), 1, &output, &[]);
        assert!(seen.names.is_none(), "{line:?}");
    }
}
