//! Runs checks and records the results: the only source of evidence.
//!
//! Stages run one after another. Gates of one stage run in parallel if the settings allow it; a story's own checks never do.

mod guarded;
mod outcome;
mod parallel;
mod reports;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use verdone_core::base::id::encode_component;
use verdone_core::base::redact::Redactor;
use verdone_core::base::sanitise::sanitise_line;
use verdone_core::check::{Check, CheckOrigin, CheckOutcome, CheckRun, CommandSpec, first_error, stages};
use verdone_core::verify::{CheckResult, TestNames};

use crate::launcher::Inside;
use crate::process::signal::Signals;
use crate::process::{self, Ended, EnvPlan, Exit, Moment, Spawn, SpawnError, Stdin};

pub use guarded::Guarded;
use reports::Reports;

/// How many bytes at the end of an output go into the journal.
const TAIL: usize = 4 * 1024;

/// State shared by all checks of one verification.
#[derive(Debug)]
pub struct CheckContext<'a> {
    pub cwd: &'a Path,
    /// Where to find files that checks write below `cwd`, if stored elsewhere: paths below it, each with its real folder.
    pub written: &'a [(PathBuf, PathBuf)],
    /// The workspace that the checks run in. `None`: the current directory tree, without a workspace.
    pub inside: Option<&'a Inside>,
    /// Gets `checks/<number>-<name>.txt`.
    pub run_dir: &'a Path,
    /// Number of the first check. Continue with `number + runs.len()`, so that file names are unique within a run.
    pub number: u32,
    pub env: EnvPlan,
    pub cap: u64,
    pub grace: Duration,
    pub redactor: &'a Redactor,
    pub ways: Scheduling,
}

/// How to schedule checks. Default: one after another.
#[derive(Debug, Clone, Copy, Default)]
pub struct Scheduling {
    /// How many gates of one stage run at the same time.
    pub parallel: usize,
    /// Run later stages even if one failed.
    pub keep_going: bool,
}

/// Progress reports from [`run_checks`].
#[derive(Debug)]
pub enum CheckMoment<'a> {
    Started(&'a Check),
    During(&'a Check, Moment<'a>),
    Ended(&'a CheckRun),
}

/// Runs a story's checks, then the gates stage by stage. If a stage does not pass, later
/// stages are skipped, but the stage itself is completed.
pub fn run_checks(
    checks: &[Check],
    context: &CheckContext<'_>,
    signals: &Signals,
    on: &mut dyn FnMut(CheckMoment<'_>),
) -> io::Result<Vec<CheckResult>> {
    let mut results: Vec<CheckResult> = Vec::new();
    for stage in stages(checks) {
        let number = context.number + results.len() as u32;
        let jobs: Vec<Job<'_>> = (number..).zip(stage).map(|(number, check)| Job { check, number }).collect();
        let done = run_stage(&jobs, context, signals, on)?;
        let interrupted = done.iter().any(is_interrupted);
        let failed = done.iter().any(|result| result.run.blocks());
        results.extend(done);
        if interrupted || (failed && !context.ways.keep_going) {
            break;
        }
    }
    Ok(results)
}

fn is_interrupted(result: &CheckResult) -> bool {
    result.run.outcome == CheckOutcome::Interrupted
}

/// Runs one check. Failures of the check become outcomes; only errors with our own files are returned as errors.
pub fn run_check(
    check: &Check,
    context: &CheckContext<'_>,
    signals: &Signals,
    on: &mut dyn FnMut(Moment<'_>),
) -> io::Result<CheckResult> {
    let alone = Worker { shared: &Shared::new(context), start: process::run };
    alone.work(&Job { check, number: context.number }, signals, on)
}

fn run_stage(
    jobs: &[Job<'_>],
    context: &CheckContext<'_>,
    signals: &Signals,
    on: &mut dyn FnMut(CheckMoment<'_>),
) -> io::Result<Vec<CheckResult>> {
    let parallel = context.ways.parallel.min(jobs.len());
    let own = jobs.iter().any(|job| job.check.origin == CheckOrigin::Story);
    if parallel > 1 && !own {
        return parallel::run(jobs, parallel, &Shared::new(context), signals, on);
    }
    let (shared, mut results) = (Shared::new(context), Vec::new());
    let worker = Worker { shared: &shared, start: process::run };
    for job in jobs {
        if results.last().is_some_and(is_interrupted) {
            break;
        }
        on(CheckMoment::Started(job.check));
        let result = worker.work(job, signals, &mut |moment| on(CheckMoment::During(job.check, moment)))?;
        on(CheckMoment::Ended(&result.run));
        results.push(result);
    }
    Ok(results)
}

/// One check and its number.
#[derive(Debug)]
struct Job<'a> {
    check: &'a Check,
    number: u32,
}

/// State shared by the threads of a stage.
#[derive(Debug)]
struct Shared<'a> {
    cwd: &'a Path,
    written: &'a [(PathBuf, PathBuf)],
    inside: Option<&'a Inside>,
    run_dir: &'a Path,
    env: &'a EnvPlan,
    cap: u64,
    grace: Duration,
    redactor: &'a Redactor,
}

impl<'a> Shared<'a> {
    fn new(context: &'a CheckContext<'_>) -> Self {
        let CheckContext { cwd, written, inside, run_dir, env, cap, grace, redactor, .. } = context;
        Self { cwd, written, inside: *inside, run_dir, env, cap: *cap, grace: *grace, redactor }
    }
}

type Start = fn(&Spawn<'_>, &Signals, &mut dyn FnMut(Moment<'_>)) -> Result<Ended, SpawnError>;

/// Runs one check after another.
struct Worker<'a> {
    shared: &'a Shared<'a>,
    start: Start,
}

impl Worker<'_> {
    /// Tries a check until it passes or its retries are used up.
    fn work(&self, job: &Job<'_>, signals: &Signals, on: &mut dyn FnMut(Moment<'_>)) -> io::Result<CheckResult> {
        let mut result = self.attempt(job, 1, signals, on)?;
        for attempt in 2..=job.check.terms.retries.saturating_add(1) {
            if !is_worth_a_retry(&result.run.outcome) || signals.requested().is_some() {
                break;
            }
            let before = result.run.duration_ms;
            result = self.attempt(job, attempt, signals, on)?;
            result.run.duration_ms += before;
            result.run.flaky = result.run.outcome.passed();
        }
        Ok(result)
    }

    fn attempt(&self, job: &Job<'_>, attempt: u32, signals: &Signals, on: &mut dyn FnMut(Moment<'_>)) -> io::Result<CheckResult> {
        let (check, redactor) = (job.check, self.shared.redactor);
        let mut run = CheckRun::pending(check);
        run.name = redactor.redact(&check.name).into_owned();
        run.command = redacted(&check.command, redactor);
        if check.command.is_empty() {
            run.outcome = CheckOutcome::Unknown { reason: "the command is empty".to_owned() };
            return Ok(run.into());
        }
        let again = if attempt > 1 { format!(".try-{attempt}") } else { String::new() };
        let file = format!("checks/{}-{}{again}.txt", job.number, encode_component(&run.name));
        let env = check.terms.env.iter().fold(self.shared.env.clone(), |env, (name, value)| env.with(name, value));
        let spawn = Spawn {
            inside: self.shared.inside.cloned(),
            argv: process::argv(&check.command),
            cwd: self.shared.cwd.to_owned(),
            env,
            stdin: Stdin::Null,
            wall: check.timeout.limit(),
            idle: None,
            grace: self.shared.grace,
            cap: self.shared.cap,
            keep: Some(self.shared.run_dir.join(&file)),
            redactor,
        };
        let here = [(PathBuf::new(), self.shared.cwd.to_owned())];
        let written = if self.shared.written.is_empty() { &here } else { self.shared.written };
        let before = Reports::snapshot(written, check.terms.junit.as_deref());
        let (mut names, mut some_tests_ran) = (None, false);
        match (self.start)(&spawn, signals, on) {
            Ok(ended) => {
                let judged = outcome::judge(check, ended.exit, &ended.output.text, &before.written_since());
                (run.outcome, run.tests, some_tests_ran) = (judged.outcome, judged.seen.count, judged.seen.some_ran);
                names = judged.seen.names.map(|names| redacted_names(names, redactor));
                run.duration_ms = ended.duration.as_millis() as u64;
                ended.output.tail(TAIL).clone_into(&mut run.tail);
                if !run.outcome.passed() {
                    run.first_error = first_error(&check.command, code_of(ended.exit), &ended.output.text);
                }
                // At the end, because feedback and reports show the end.
                run.tail.extend(judged.failed.map(|failed| format!("\n{}", redactor.redact(&sanitise_line(&failed)))));
                run.output_digest = ended.output.digest;
                run.output = spawn.keep.is_some_and(|path| path.exists()).then_some(file);
            }
            Err(SpawnError::Keep { source, .. }) => return Err(source),
            Err(error) => run.outcome = CheckOutcome::Unknown { reason: error.to_string() },
        }
        Ok(CheckResult { run, names, some_tests_ran })
    }
}

fn code_of(exit: Exit) -> Option<i32> {
    match exit {
        Exit::Code(code) => Some(code),
        Exit::Signal(_) | Exit::Wall | Exit::Idle | Exit::Terminal | Exit::Interrupted(_) => None,
    }
}

/// A report can contain secrets from the environment.
fn redacted_names(names: TestNames, redactor: &Redactor) -> TestNames {
    let clean = |names: BTreeSet<String>| names.iter().map(|name| redactor.redact(name).into_owned()).collect();
    TestNames { passed: clean(names.passed), failed: clean(names.failed), skipped: clean(names.skipped) }
}

/// Whether a retry could have a different result.
fn is_worth_a_retry(outcome: &CheckOutcome) -> bool {
    match outcome {
        CheckOutcome::Failed { .. } | CheckOutcome::Signalled { .. } | CheckOutcome::TimedOut { .. } => true,
        CheckOutcome::Passed | CheckOutcome::Unknown { .. } | CheckOutcome::Interrupted => false,
    }
}

/// The command as recorded, with secrets redacted.
pub(crate) fn redacted(command: &CommandSpec, redactor: &Redactor) -> CommandSpec {
    match command {
        CommandSpec::Shell(text) => CommandSpec::Shell(redactor.redact(text).into_owned()),
        CommandSpec::Argv(words) => CommandSpec::Argv(words.iter().map(|word| redactor.redact(word).into_owned()).collect()),
    }
}
