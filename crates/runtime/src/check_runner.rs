//! Runs checks and records what was seen: the only source of evidence.

use std::io;
use std::path::Path;
use std::time::Duration;

use verdone_core::check::{Check, CheckOrigin, CheckOutcome, CheckRun, CommandSpec};
use verdone_core::id::encode_component;
use verdone_core::redact::Redactor;

use crate::process::{self, EnvPlan, Exit, Moment, Spawn, SpawnError, Stdin, check_program};
use crate::signal::Signals;

/// Bytes of the end of an output that go into the journal.
const TAIL: usize = 4 * 1024;

/// What all checks of one verification share.
#[derive(Debug)]
pub struct CheckContext<'a> {
    pub cwd: &'a Path,
    /// Gets `checks/<number>-<name>.txt`.
    pub run_dir: &'a Path,
    /// Number of the first check; go on with `number + runs.len()`, so that no file is written twice in a run.
    pub number: u32,
    pub env: EnvPlan,
    pub cap: u64,
    pub grace: Duration,
    pub redactor: &'a Redactor,
}

/// What the caller of [`run_checks`] hears.
#[derive(Debug)]
pub enum CheckMoment<'a> {
    Started(&'a Check),
    During(&'a Check, Moment<'a>),
    Ended(&'a CheckRun),
}

/// Runs a story's checks, then gates stage by stage. A stage that does not pass stops the later ones, but not its own.
pub fn run_checks(
    checks: &[Check],
    context: &CheckContext<'_>,
    signals: &Signals,
    on: &mut dyn FnMut(CheckMoment<'_>),
) -> io::Result<Vec<CheckRun>> {
    let mut order: Vec<&Check> = checks.iter().collect();
    order.sort_by_key(|check| step(check));
    let mut runs: Vec<CheckRun> = Vec::new();
    for (done, check) in (0..).zip(&order) {
        let before = &order[..runs.len()];
        let blocked = before.iter().zip(&runs).any(|(earlier, run)| step(earlier) < step(check) && !run.outcome.passed());
        let interrupted = runs.last().is_some_and(|run| run.outcome == CheckOutcome::Interrupted);
        if blocked || interrupted {
            break;
        }
        on(CheckMoment::Started(check));
        let number = context.number + done;
        let run = run_numbered(check, number, context, signals, &mut |moment| on(CheckMoment::During(check, moment)))?;
        on(CheckMoment::Ended(&run));
        runs.push(run);
    }
    Ok(runs)
}

/// Runs one check. Whatever goes wrong with it is an outcome; only our own files fail.
pub fn run_check(
    check: &Check,
    context: &CheckContext<'_>,
    signals: &Signals,
    on: &mut dyn FnMut(Moment<'_>),
) -> io::Result<CheckRun> {
    run_numbered(check, context.number, context, signals, on)
}

/// The story's own checks come before every stage.
fn step(check: &Check) -> Option<verdone_core::check::Stage> {
    match check.origin {
        CheckOrigin::Story | CheckOrigin::AgentTest => None,
        CheckOrigin::Gate(stage) => Some(stage),
    }
}

fn run_numbered(
    check: &Check,
    number: u32,
    context: &CheckContext<'_>,
    signals: &Signals,
    on: &mut dyn FnMut(Moment<'_>),
) -> io::Result<CheckRun> {
    let file = format!("checks/{number}-{}.txt", encode_component(&context.redactor.redact(&check.name)));
    let spawn = Spawn {
        argv: process::argv(&check.command),
        cwd: context.cwd.to_owned(),
        env: context.env.clone(),
        stdin: Stdin::Null,
        wall: check.timeout.limit(),
        idle: None,
        grace: context.grace,
        cap: context.cap,
        keep: Some(context.run_dir.join(&file)),
        redactor: context.redactor,
    };
    let mut run = CheckRun {
        name: context.redactor.redact(&check.name).into_owned(),
        origin: check.origin.clone(),
        command: redacted(&check.command, context.redactor),
        outcome: CheckOutcome::Interrupted,
        duration_ms: 0,
        output_digest: verdone_core::id::digest(b""),
        output: None,
        tail: String::new(),
    };
    if check.command.is_empty() {
        run.outcome = CheckOutcome::Unknown { reason: "the command is empty".to_owned() };
        return Ok(run);
    }
    match process::run(&spawn, signals, on) {
        Ok(ended) => {
            run.outcome = outcome(check, ended.exit);
            run.duration_ms = ended.duration.as_millis() as u64;
            ended.output.tail(TAIL).clone_into(&mut run.tail);
            run.output_digest = ended.output.digest;
            run.output = spawn.keep.is_some_and(|path| path.exists()).then_some(file);
        }
        Err(SpawnError::Keep { source, .. }) => return Err(source),
        Err(error) => run.outcome = CheckOutcome::Unknown { reason: error.to_string() },
    }
    Ok(run)
}

/// What is kept of a command; a secret may stand in it.
fn redacted(command: &CommandSpec, redactor: &Redactor) -> CommandSpec {
    match command {
        CommandSpec::Shell(text) => CommandSpec::Shell(redactor.redact(text).into_owned()),
        CommandSpec::Argv(words) => CommandSpec::Argv(words.iter().map(|word| redactor.redact(word).into_owned()).collect()),
    }
}

fn outcome(check: &Check, exit: Exit) -> CheckOutcome {
    let named = |what: &str| match check_program(&check.command) {
        Some(program) => format!("{what}: {program}"),
        None => what.to_owned(),
    };
    match exit {
        Exit::Code(0) => CheckOutcome::Passed,
        Exit::Code(127) => CheckOutcome::Unknown { reason: named("command not found (exit code 127)") },
        Exit::Code(126) => CheckOutcome::Unknown { reason: named("command not executable (exit code 126)") },
        // The exit code that pytest reserves for this.
        Exit::Code(5) if check.command.display().contains("pytest") => {
            CheckOutcome::Unknown { reason: "no tests were collected (pytest exit code 5)".to_owned() }
        }
        Exit::Code(code) => CheckOutcome::Failed { code },
        Exit::Signal(signal) => CheckOutcome::Signalled { signal },
        Exit::Wall | Exit::Idle => CheckOutcome::TimedOut { after_ms: check.timeout.duration().as_millis() as u64 },
        Exit::Terminal => CheckOutcome::Unknown { reason: "it wanted to use the terminal".to_owned() },
        Exit::Interrupted(_) => CheckOutcome::Interrupted,
    }
}
