//! Checks as real processes.

use std::path::Path;
use std::time::Duration;

use verdone_core::base::finish::StopSignal;
use verdone_core::base::redact::Redactor;
use verdone_core::base::span::Span;
use verdone_core::check::{Check, CheckOptions, CheckOrigin, CheckOutcome, CheckRun, CommandSpec, Stage, TestCount, ZeroTests};
use verdone_core::verify::TestNames;
use verdone_runtime::process::signal::Signals;
use verdone_runtime::process::{EnvPlan, Moment};
use verdone_runtime::verify::check_runner::{self, CheckContext, CheckMoment, Scheduling};

use crate::alone;

fn context<'a>(dir: &'a Path, redactor: &'a Redactor) -> CheckContext<'a> {
    CheckContext {
        written: &[],
        inside: None,
        cwd: dir,
        run_dir: dir,
        number: 7,
        env: EnvPlan::default().with("VERDONE_RUN", "r1"),
        cap: 100_000,
        grace: Duration::from_millis(500),
        redactor,
        ways: Scheduling::default(),
    }
}

fn check(name: &str, origin: CheckOrigin, command: &str) -> Check {
    let command = CommandSpec::Shell(command.to_owned());
    Check { name: name.to_owned(), origin, ..Check::own(command, Span::from_secs(60)) }
}

fn run(check: &Check) -> CheckRun {
    let (dir, redactor) = (tempfile::tempdir().unwrap(), Redactor::default());
    run_check(check, &context(dir.path(), &redactor))
}

fn run_check(check: &Check, context: &CheckContext<'_>) -> CheckRun {
    check_runner::run_check(check, context, &Signals::none(), &mut |_| ()).unwrap().run
}

fn run_checks(
    checks: &[Check],
    context: &CheckContext<'_>,
    signals: &Signals,
    on: &mut dyn FnMut(CheckMoment<'_>),
) -> Vec<CheckRun> {
    let results = check_runner::run_checks(checks, context, signals, on).unwrap();
    results.into_iter().map(|result| result.run).collect()
}

#[test]
fn exits_become_outcomes() {
    let _one = alone();
    let unknown = |reason: &str| CheckOutcome::Unknown { reason: reason.to_owned() };
    for (command, outcome) in [
        ("true", CheckOutcome::Passed),
        ("exit 1", CheckOutcome::Failed { code: 1 }),
        ("exit 5", CheckOutcome::Failed { code: 5 }),
        ("(exit 5) # pytest", CheckOutcome::Failed { code: 5 }),
        ("printf '#!/bin/sh\nexit 5' > pytest; chmod +x pytest; ./pytest", unknown("no tests were run")),
        ("make() { exit 2; }; make test", CheckOutcome::Failed { code: 2 }),
        (
            "make() { echo \"make: *** No rule to make target 'test'.  Stop.\"; exit 2; }; make test",
            unknown("what it should run does not exist: make: *** No rule to make target 'test'.  Stop."),
        ),
        (
            "cp /bin/true pytest && ./pytest",
            unknown("it ended without the test summary that its runner prints; do not silence its output"),
        ),
        ("cp /bin/echo pytest && ./pytest 1 passed in 0.01s", CheckOutcome::Passed),
        ("no-such-tool --x", unknown("command not found (exit code 127): no-such-tool")),
        ("/dev/null", unknown("command not executable (exit code 126): /dev/null")),
        ("kill -KILL $$", CheckOutcome::Signalled { signal: 9 }),
        ("kill -TTIN $$", unknown("it tried to use the terminal")),
        ("  ", unknown("the command is empty")),
    ] {
        assert_eq!(run(&check("c", CheckOrigin::Story, command)).outcome, outcome, "{command}");
    }
    let argv = CommandSpec::Argv(vec!["no-such-tool".to_owned()]);
    let absent = Check { command: argv, ..check("c", CheckOrigin::Story, "") };
    assert_eq!(run(&absent).outcome, unknown("no-such-tool: not found"));
}

#[test]
fn a_check_that_does_not_end_times_out() {
    let _one = alone();
    let slow = Check { timeout: Span::from_millis(200), ..check("slow", CheckOrigin::Story, "sleep 3600") };
    assert_eq!(run(&slow).outcome, CheckOutcome::TimedOut { after_ms: 200 });
}

#[test]
fn evidence_holds_the_digest_of_the_raw_and_the_end_of_the_redacted_output() {
    let (_one, dir) = (alone(), tempfile::tempdir().unwrap());
    let redactor = Redactor::new([("API_TOKEN".to_owned(), "sesame-sesame".to_owned())]);
    let hostile = check("../unit: a/b", CheckOrigin::Gate(Stage::Quality), "seq 2000; echo sesame-sesame $VERDONE_RUN");
    let run = run_check(&hostile, &context(dir.path(), &redactor));
    let numbers: Vec<String> = (1..=2000).map(|n| n.to_string()).collect();
    let raw = format!("{}\nsesame-sesame r1\n", numbers.join("\n"));
    assert_eq!(run.output_digest, verdone_core::base::id::digest(raw.as_bytes()));
    assert!(run.tail.ends_with("\n2000\n[redacted:API_TOKEN] r1\n") && run.tail.len() <= 4096, "{}", run.tail);
    let file = run.output.unwrap();
    assert_eq!(file, "checks/7-%2E%2E%2Funit%3A%20a%2Fb.txt");
    let kept = std::fs::read_to_string(dir.path().join(file)).unwrap();
    assert_eq!(kept, raw.replace("sesame-sesame", "[redacted:API_TOKEN]"));
}

#[test]
fn story_checks_come_first_and_a_failing_stage_stops_the_later_ones() {
    let (_one, dir, redactor) = (alone(), tempfile::tempdir().unwrap(), Redactor::default());
    let gate = |name: &str, stage, command: &str| check(name, CheckOrigin::Gate(stage), command);
    let checks = [
        gate("audit", Stage::Security, "true"),
        gate("lint", Stage::Quality, "false"),
        gate("fmt", Stage::Quality, "true"),
        gate("test", Stage::Correctness, "true"),
        check("own", CheckOrigin::Story, "true"),
    ];
    let mut heard = Vec::new();
    let runs = run_checks(&checks, &context(dir.path(), &redactor), &Signals::none(), &mut |moment| match moment {
        CheckMoment::Started(check) => heard.push(format!("start {}", check.name)),
        CheckMoment::During(..) => {}
        CheckMoment::Ended(run) => heard.push(format!("end {}", run.name)),
    });
    let seen: Vec<(&str, bool)> = runs.iter().map(|run| (run.name.as_str(), run.outcome.passed())).collect();
    assert_eq!(seen, [("own", true), ("test", true), ("lint", false), ("fmt", true)]);
    assert_eq!(heard.len(), 8);
    assert_eq!(runs[3].output.as_deref(), Some("checks/10-fmt.txt"));

    let own = [check("own", CheckOrigin::Story, "false"), checks[3].clone()];
    let runs = run_checks(&own, &context(dir.path(), &redactor), &Signals::none(), &mut |_| ());
    assert_eq!(runs.len(), 1, "gates say nothing more when the story's own check is red");
}

#[test]
fn a_stop_interrupts_the_check_and_starts_no_other() {
    let (_one, dir, redactor) = (alone(), tempfile::tempdir().unwrap(), Redactor::default());
    let checks = [check("a", CheckOrigin::Story, "echo up; exec sleep 3600"), check("b", CheckOrigin::Story, "true")];
    let signals = Signals::none();
    let runs = run_checks(&checks, &context(dir.path(), &redactor), &signals, &mut |moment| {
        if let CheckMoment::During(..) = moment
            && signals.requested().is_none()
        {
            signals.raise(StopSignal::Sigterm);
        }
    });
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0].outcome, CheckOutcome::Interrupted);
}

#[test]
fn a_secret_in_a_command_is_used_and_not_kept() {
    let _one = alone();
    let dir = tempfile::tempdir().unwrap();
    let redactor = Redactor::new([("MY_TOKEN".to_owned(), "open sesame".to_owned())]);
    let command = "test 'open sesame' = \"open sesame\"";
    let run = run_check(&check(command, CheckOrigin::Story, command), &context(dir.path(), &redactor));
    assert_eq!(run.outcome, CheckOutcome::Passed);
    assert!(!format!("{run:?}").contains("sesame"), "{run:?}");
}

fn gate(name: &str, stage: Stage, command: &str) -> Check {
    check(name, CheckOrigin::Gate(stage), command)
}

fn with(check: Check, terms: CheckOptions) -> Check {
    Check { terms, ..check }
}

/// Waits for a file that the other gate creates; the check's time limit ends a wait without result.
fn meets(mine: &str, other: &str) -> String {
    format!("echo {mine} says hello; touch {mine}; while ! test -e {other}; do sleep 0.02; done")
}

#[test]
fn gates_of_one_stage_run_at_the_same_time_and_keep_their_names_and_order() {
    let (_one, dir, redactor) = (alone(), tempfile::tempdir().unwrap(), Redactor::default());
    let checks = [
        gate("a", Stage::Quality, &meets("a", "b")),
        gate("b", Stage::Quality, &meets("b", "a")),
        gate("c", Stage::Quality, "false"),
    ];
    let context = CheckContext { ways: Scheduling { parallel: 3, ..Scheduling::default() }, ..context(dir.path(), &redactor) };
    let (mut said, mut started) = (Vec::new(), 0);
    let runs = run_checks(&checks, &context, &Signals::none(), &mut |moment| match moment {
        CheckMoment::Started(_) => started += 1,
        CheckMoment::During(check, Moment::Line { text, .. }) => said.push(format!("{}: {text}", check.name)),
        CheckMoment::During(_, Moment::Tick) | CheckMoment::Ended(_) => {}
    });
    let seen: Vec<(&str, bool)> = runs.iter().map(|run| (run.name.as_str(), run.outcome.passed())).collect();
    assert_eq!(seen, [("a", true), ("b", true), ("c", false)]);
    said.sort();
    assert_eq!((said, started), (vec!["a: a says hello".to_owned(), "b: b says hello".to_owned()], 3));
    assert_eq!(runs[1].output.as_deref(), Some("checks/8-b.txt"));
    assert_eq!(std::fs::read_to_string(dir.path().join("checks/8-b.txt")).unwrap(), "b says hello\n");
}

#[test]
fn one_after_another_means_that_a_gate_never_meets_the_next() {
    let (_one, dir, redactor) = (alone(), tempfile::tempdir().unwrap(), Redactor::default());
    let checks = [
        Check { timeout: Span::from_millis(300), ..gate("a", Stage::Quality, &meets("a", "b")) },
        gate("b", Stage::Quality, &meets("b", "a")),
    ];
    let context = CheckContext { ways: Scheduling { parallel: 1, ..Scheduling::default() }, ..context(dir.path(), &redactor) };
    let runs = run_checks(&checks, &context, &Signals::none(), &mut |_| ());
    assert_eq!(runs[0].outcome, CheckOutcome::TimedOut { after_ms: 300 });
    assert!(runs[1].outcome.passed());
}

#[test]
fn what_gates_leave_running_beside_each_other_is_ended_with_the_stage() {
    let (_one, dir, redactor) = (alone(), tempfile::tempdir().unwrap(), Redactor::default());
    let leaves = |name: &str| {
        format!(
            "setsid sh -c 'echo $$ > {name}.pid; exec sleep 3600' & sleep 3600 & while ! test -s {name}.pid; do sleep 0.02; done"
        )
    };
    let checks = [gate("a", Stage::Quality, &leaves("a")), gate("b", Stage::Quality, &leaves("b"))];
    let context = CheckContext { ways: Scheduling { parallel: 2, ..Scheduling::default() }, ..context(dir.path(), &redactor) };
    let runs = run_checks(&checks, &context, &Signals::none(), &mut |_| ());
    assert!(runs.iter().all(|run| run.outcome.passed()), "{runs:?}");
    for name in ["a.pid", "b.pid"] {
        let pid = std::fs::read_to_string(dir.path().join(name)).unwrap();
        assert!(!Path::new("/proc").join(pid.trim()).exists(), "{name}");
    }
}

#[test]
fn a_stop_ends_all_gates_that_run_beside_each_other() {
    let (_one, dir, redactor) = (alone(), tempfile::tempdir().unwrap(), Redactor::default());
    let checks: Vec<Check> = ["a", "b", "c"].map(|name| gate(name, Stage::Quality, "echo up; exec sleep 3600")).into();
    let context = CheckContext { ways: Scheduling { parallel: 2, ..Scheduling::default() }, ..context(dir.path(), &redactor) };
    let (signals, mut up) = (Signals::none(), 0);
    let runs = run_checks(&checks, &context, &signals, &mut |moment| {
        if let CheckMoment::During(_, Moment::Line { .. }) = moment {
            up += 1;
            if up == 2 {
                signals.raise(StopSignal::Sigterm);
            }
        }
    });
    assert_eq!(runs.len(), 3);
    assert!(runs.iter().all(|run| run.outcome == CheckOutcome::Interrupted), "{runs:?}");
    assert_eq!(runs[2].output, None, "the third was never begun");
}

#[test]
fn an_advisory_gate_is_recorded_and_stops_nothing() {
    let (_one, dir, redactor) = (alone(), tempfile::tempdir().unwrap(), Redactor::default());
    let advisory = CheckOptions { advisory: true, ..CheckOptions::default() };
    let checks = [with(gate("lint", Stage::Correctness, "false"), advisory), gate("test", Stage::Quality, "true")];
    let runs = run_checks(&checks, &context(dir.path(), &redactor), &Signals::none(), &mut |_| ());
    let seen: Vec<(bool, bool)> = runs.iter().map(|run| (run.outcome.passed(), run.blocks())).collect();
    assert_eq!(seen, [(false, false), (true, false)]);
}

#[test]
fn with_keep_going_a_failing_stage_stops_nothing() {
    let (_one, dir, redactor) = (alone(), tempfile::tempdir().unwrap(), Redactor::default());
    let checks = [gate("test", Stage::Correctness, "false"), gate("lint", Stage::Quality, "true")];
    let context =
        CheckContext { ways: Scheduling { keep_going: true, ..Scheduling::default() }, ..context(dir.path(), &redactor) };
    assert_eq!(run_checks(&checks, &context, &Signals::none(), &mut |_| ()).len(), 2);
}

#[test]
fn a_pass_after_a_retry_is_flaky_and_a_gate_that_always_fails_is_not() {
    let _one = alone();
    let retries = |retries| CheckOptions { retries, ..CheckOptions::default() };
    let second = "echo try; if test -e before; then exit 0; fi; touch before; exit 3";
    let flaky = run(&with(gate("e2e", Stage::Quality, second), retries(1)));
    assert!(flaky.outcome.passed() && flaky.flaky);
    assert_eq!(flaky.output.as_deref(), Some("checks/7-e2e.try-2.txt"));
    let red = run(&with(gate("e2e", Stage::Quality, "exit 3"), retries(2)));
    assert!(red.outcome == CheckOutcome::Failed { code: 3 } && !red.flaky);
    let missing = run(&with(gate("e2e", Stage::Quality, "no-such-tool"), retries(2)));
    assert_eq!(missing.output.as_deref(), Some("checks/7-e2e.txt"), "what is not there is not tried again");
}

#[test]
fn a_test_run_without_tests_is_unknown_unless_that_is_fine() {
    let _one = alone();
    let nothing = CheckOutcome::Unknown { reason: "no tests were run".to_owned() };
    // A function replaces the tool: only its name and its output matter.
    let tool = |said: &str| format!("cargo() {{ printf '{said}'; }}; cargo test");
    let result = |passed: u32| {
        format!(
            "running {passed} tests\\n\\ntest result: ok. {passed} passed; 0 failed; 0 ignored; 0 measured; 9 filtered out; finished in 0.00s\\n"
        )
    };
    let empty = tool(&result(0));
    assert_eq!(run(&gate("test", Stage::Correctness, &empty)).outcome, nothing);
    assert_eq!(run(&check("own", CheckOrigin::Story, &empty)).outcome, nothing);
    let fine = CheckOptions { zero_tests: Some(ZeroTests::Ok), ..CheckOptions::default() };
    assert!(run(&with(gate("test", Stage::Correctness, &empty), fine)).outcome.passed());
    let some = run(&gate("test", Stage::Correctness, &tool(&[result(0), result(4)].concat())));
    assert!(some.outcome.passed());
    assert_eq!(some.tests, Some(TestCount { ran: 4, passed: 4, failed: 0, skipped: 0 }));
}

#[test]
fn a_gate_that_says_it_has_tests_passes_only_where_some_are_counted() {
    let _one = alone();
    let strict = || CheckOptions { zero_tests: Some(ZeroTests::Fail), ..CheckOptions::default() };
    let judged = |command: &str| run(&with(gate("test", Stage::Correctness, command), strict())).outcome;
    assert!(judged("echo '12 tests passed'").passed());
    let CheckOutcome::Unknown { reason } = judged("echo fine") else { panic!("nothing was counted") };
    assert!(reason.starts_with("no test count was found in its output") && reason.contains("zero_tests = \"ok\""), "{reason}");
    assert!(run(&gate("test", Stage::Correctness, "echo fine")).outcome.passed(), "what is not set asks for nothing");
}

#[test]
fn test_reports_are_counted_and_believed_as_a_whole_or_not_at_all() {
    let (_one, dir, redactor) = (alone(), tempfile::tempdir().unwrap(), Redactor::default());
    let judged_with = |junit: &str, command: &str| {
        let terms = CheckOptions { junit: Some(junit.to_owned()), ..CheckOptions::default() };
        let check = with(gate("test", Stage::Correctness, command), terms);
        run_check(&check, &context(dir.path(), &redactor))
    };
    let judged = |command: &str| judged_with("out/*.xml", command);
    let why = |run: &CheckRun| match &run.outcome {
        CheckOutcome::Unknown { reason } => reason.clone(),
        other => panic!("{other:?}"),
    };
    let good = judged("mkdir -p out && echo '<testsuite><testcase name=\"a\"/></testsuite>' > out/r.xml");
    assert!(good.outcome.passed(), "{good:?}");
    assert_eq!(good.tests, Some(TestCount { ran: 1, passed: 1, failed: 0, skipped: 0 }));
    assert_eq!(why(&judged("true")), "the test report is from an earlier run; this run wrote none: out/*.xml");
    assert_eq!(why(&judged("rm out/r.xml")), "no test report was written: out/*.xml");

    let report = "<testsuite><testcase name=\"a\"/><testcase name=\"b\"><failure/></testcase></testsuite>";
    let bad = judged(&format!("echo '{report}' > out/r.xml; echo fine"));
    assert_eq!(bad.outcome, CheckOutcome::Failed { code: 0 });
    assert_eq!(bad.tests, Some(TestCount { ran: 2, passed: 1, failed: 1, skipped: 0 }));
    assert!(bad.tail.ends_with("1 test failed according to its test report: b"), "{}", bad.tail);

    assert_eq!(why(&judged("echo '<testsuite/>' > out/r.xml")), "no tests were run");
    let cut = judged("echo '<testsuite><testcase name=\"a\"/>' > out/r.xml");
    assert_eq!(why(&cut), "the test report out/r.xml cannot be trusted: it is truncated");
    let bomb = "<!DOCTYPE x [<!ENTITY a \"&b;&b;\">]><testsuite><testcase name=\"a\"/></testsuite>";
    assert!(why(&judged(&format!("echo '{bomb}' > out/r.xml"))).contains("which a test report does not need"));
    assert_eq!(why(&judged("rm out/r.xml; mkfifo out/r.xml")), "no test report was written: out/*.xml");
    assert_eq!(why(&judged_with("out/r.xml", "true")), "the test report is not a regular file: out/r.xml");
    let huge = judged("rm out/r.xml; truncate -s 65M out/r.xml");
    assert_eq!(why(&huge), "the test report out/r.xml cannot be read: larger than 67108864 bytes");

    let away = tempfile::tempdir().unwrap();
    std::fs::write(away.path().join("r.xml"), "<testsuite><testcase name=\"a\"/></testsuite>").unwrap();
    let link = format!("rm -r out; ln -s '{}' out", away.path().display());
    assert_eq!(why(&judged_with("out/r.xml", &link)), "the test report out/r.xml cannot be read: it is outside the tree");
}

#[test]
fn a_gate_sees_its_own_variables() {
    let _one = alone();
    let terms = CheckOptions { env: [("MODE".to_owned(), "strict".to_owned())].into(), ..CheckOptions::default() };
    assert!(run(&with(gate("test", Stage::Correctness, "test \"$MODE\" = strict"), terms)).outcome.passed());
}

#[test]
fn a_result_has_the_counts_and_the_names_of_its_tests() {
    let (_one, dir) = (alone(), tempfile::tempdir().unwrap());
    let redactor = Redactor::new([("API_TOKEN".to_owned(), "sesame-sesame".to_owned())]);
    let result =
        |check: &Check| check_runner::run_check(check, &context(dir.path(), &redactor), &Signals::none(), &mut |_| ()).unwrap();
    let set = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let listing = "printf 'a.py::test_a PASSED [ 50%%]\na.py::test_b SKIPPED [100%%]\n=== 1 passed, 1 skipped in 0.01s ===\n'";
    let listed = result(&check("own", CheckOrigin::Story, &format!("pytest() {{ {listing}; }}; pytest -v")));
    assert_eq!(listed.run.tests, Some(TestCount { ran: 1, passed: 1, failed: 0, skipped: 1 }));
    assert!(listed.some_tests_ran);
    let names = TestNames { passed: set(&["a.py::test_a"]), skipped: set(&["a.py::test_b"]), ..TestNames::default() };
    assert_eq!(listed.names, Some(names));

    let cases = "<testcase name=\"a sesame-sesame\"/><testcase name=\"b\"><failure/></testcase>";
    let writes = format!("echo '<testsuite>{cases}</testsuite>' > r.xml");
    let reported = result(&with(
        gate("unit", Stage::Quality, &writes),
        CheckOptions { junit: Some("r.xml".to_owned()), ..CheckOptions::default() },
    ));
    let names = TestNames { passed: set(&["a [redacted:API_TOKEN]"]), failed: set(&["b"]), ..TestNames::default() };
    assert_eq!(reported.names, Some(names));

    let quiet = result(&check("own", CheckOrigin::Story, "go() { printf 'ok  \\texample.com/a\\t0.003s\\n'; }; go test ./..."));
    assert!(quiet.run.outcome.passed() && quiet.some_tests_ran && quiet.run.tests.is_none() && quiet.names.is_none());
    assert!(!result(&check("own", CheckOrigin::Story, "true")).some_tests_ran);
}
