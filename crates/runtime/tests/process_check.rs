//! Checks as real processes. One at a time, because a sweep ends every descendant.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use verdone_core::check::{Check, CheckOrigin, CheckOutcome, CheckRun, CommandSpec, Stage};
use verdone_core::finish::StopSignal;
use verdone_core::redact::Redactor;
use verdone_core::span::Span;
use verdone_runtime::check_runner::{CheckContext, CheckMoment, run_check, run_checks};
use verdone_runtime::process::EnvPlan;
use verdone_runtime::signal::Signals;

fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn context<'a>(dir: &'a Path, redactor: &'a Redactor) -> CheckContext<'a> {
    CheckContext {
        cwd: dir,
        run_dir: dir,
        number: 7,
        env: EnvPlan::default().with("VERDONE_RUN", "r1"),
        cap: 100_000,
        grace: Duration::from_millis(500),
        redactor,
    }
}

fn check(name: &str, origin: CheckOrigin, command: &str) -> Check {
    Check { name: name.to_owned(), origin, command: CommandSpec::Shell(command.to_owned()), timeout: Span::from_secs(60) }
}

fn run(check: &Check) -> CheckRun {
    let (dir, redactor) = (tempfile::tempdir().unwrap(), Redactor::default());
    run_check(check, &context(dir.path(), &redactor), &Signals::none(), &mut |_| ()).unwrap()
}

#[test]
fn exits_become_outcomes() {
    let _one = alone();
    let unknown = |reason: &str| CheckOutcome::Unknown { reason: reason.to_owned() };
    for (command, outcome) in [
        ("true", CheckOutcome::Passed),
        ("exit 1", CheckOutcome::Failed { code: 1 }),
        ("exit 5", CheckOutcome::Failed { code: 5 }),
        ("(exit 5) # pytest", unknown("no tests were collected (pytest exit code 5)")),
        ("no-such-tool --x", unknown("command not found (exit code 127): no-such-tool")),
        ("/dev/null", unknown("command not executable (exit code 126): /dev/null")),
        ("kill -KILL $$", CheckOutcome::Signalled { signal: 9 }),
        ("kill -TTIN $$", unknown("it wanted to use the terminal")),
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
    let run = run_check(&hostile, &context(dir.path(), &redactor), &Signals::none(), &mut |_| ()).unwrap();
    let numbers: Vec<String> = (1..=2000).map(|n| n.to_string()).collect();
    let raw = format!("{}\nsesame-sesame r1\n", numbers.join("\n"));
    assert_eq!(run.output_digest, verdone_core::id::digest(raw.as_bytes()));
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
    })
    .unwrap();
    let seen: Vec<(&str, bool)> = runs.iter().map(|run| (run.name.as_str(), run.outcome.passed())).collect();
    assert_eq!(seen, [("own", true), ("test", true), ("lint", false), ("fmt", true)]);
    assert_eq!(heard.len(), 8);
    assert_eq!(runs[3].output.as_deref(), Some("checks/10-fmt.txt"));

    let own = [check("own", CheckOrigin::Story, "false"), checks[3].clone()];
    let runs = run_checks(&own, &context(dir.path(), &redactor), &Signals::none(), &mut |_| ()).unwrap();
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
    })
    .unwrap();
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0].outcome, CheckOutcome::Interrupted);
}

#[test]
fn a_secret_in_a_command_is_used_and_not_kept() {
    let _one = alone();
    let dir = tempfile::tempdir().unwrap();
    let redactor = Redactor::new([("MY_TOKEN".to_owned(), "open sesame".to_owned())]);
    let command = "test 'open sesame' = \"open sesame\"";
    let run =
        run_check(&check(command, CheckOrigin::Story, command), &context(dir.path(), &redactor), &Signals::none(), &mut |_| ());
    let run = run.unwrap();
    assert_eq!(run.outcome, CheckOutcome::Passed);
    assert!(!format!("{run:?}").contains("sesame"), "{run:?}");
}
