//! External provers: a second agent that tries to refute the work, and a command that knows the result of CI.
//!
//! Each runs as a child process with a deadline. Its output is data; anything unintelligible
//! counts as unknown. The judge is a command, or Claude Code in a separate read-only session. It
//! gets a fresh context and may not change anything, so callers compare the files afterwards.

use std::io::{self, Write as _};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use verdone_core::agent::{PromptVia, TurnOutcome};
use verdone_core::base::id::{Oid, RunId};
use verdone_core::base::redact::Redactor;
use verdone_core::base::sanitise::sanitise_line;
use verdone_core::check::CommandSpec;
use verdone_core::config::{Config, Limits};
use verdone_core::done::{Answer, CiFact, CiSettings, JudgeChoice, JudgeRecord, answer_schema, judge_answer, only_answer};
use verdone_core::journal::event::Place;
use verdone_core::policy::ReadOnlyReason;

use crate::agent::read_only_session::{LookError, Question, ReadOnlyAnswer};
use crate::agent::{TurnRequest, start_command};
use crate::base::active_clock::Stopwatch;
use crate::launcher::Inside;
use crate::process::output::create_fresh;
use crate::process::signal::Signals;
use crate::process::{self, EnvPlan, Exit, HeldUp, Moment, Spawn, Stdin};

/// Exit code of the CI command for "not known yet".
const NOT_YET: i32 = 75;
/// How often a wait checks whether the run should stop.
const LOOK: Duration = Duration::from_millis(100);
/// The time limit for one query of CI.
const ONE_QUESTION: Duration = Duration::from_mins(1);
const LONGEST_WORDS: usize = 300;

/// The context in which the child processes run.
#[derive(Debug)]
pub struct ProverContext<'a> {
    pub root: &'a Path,
    /// The workspace that they run in. `None`: the current directory tree, without a workspace.
    pub inside: Option<&'a Inside>,
    /// The folder for the prompt and the answer.
    pub dir: &'a Path,
    pub env: EnvPlan,
    pub redactor: &'a Redactor,
    /// The turn limit also limits the answer.
    pub limits: &'a Limits,
    /// What a client needs in addition. If `None`, no client is asked.
    pub seat: Option<ClientContext<'a>>,
}

/// The run on whose behalf a client is asked.
#[derive(Debug)]
pub struct ClientContext<'a> {
    pub run: &'a RunId,
    pub run_dir: &'a Path,
    /// The top of the work tree.
    pub top: &'a Path,
    pub plan: &'a Path,
    pub place: &'a Place,
    /// The remaining budget, if there is a limit.
    pub left_usd: Option<f64>,
}

/// A run's limits, adapted for a judge.
pub fn limits_of(config: &Config) -> Limits {
    Limits { turn_time: config.done.judge.timeout, ..config.limits.clone() }
}

/// Asks a second agent to refute the work. Its failures count as no answer; only errors with our own files are returned as errors.
pub fn ask_judge(
    config: &Config,
    prompt: &str,
    court: &ProverContext<'_>,
    signals: &Signals,
    on: &mut dyn FnMut(Moment<'_>),
) -> io::Result<JudgeRecord> {
    let judge = JudgeChoice::from_settings(&config.done.judge, &config.agent);
    let record = JudgeRecord::new(judge.name());
    let prompt = &*court.redactor.redact(prompt);
    match (judge, &court.seat) {
        (JudgeChoice::Nobody { why }, _) => Ok(record.void(why)),
        (JudgeChoice::Command { command, prompt: via }, _) => by_command(record, command, via, prompt, court, signals, on),
        (JudgeChoice::Client(_), Some(seat)) => by_client(record, config, seat, prompt, court, signals, on),
        (JudgeChoice::Client(kind), None) => Ok(record.void(format!("{} cannot be used as the judge here", kind.title()))),
    }
}

fn by_command(
    record: JudgeRecord,
    command: &CommandSpec,
    via: PromptVia,
    prompt: &str,
    court: &ProverContext<'_>,
    signals: &Signals,
    on: &mut dyn FnMut(Moment<'_>),
) -> io::Result<JudgeRecord> {
    let prompt_file = court.dir.join("judge-prompt.md");
    create_fresh(&prompt_file)?.write_all(prompt.as_bytes())?;
    let (argv, stdin) = start_command(command, via, prompt, &prompt_file);
    let limits = court.limits;
    let spawn = Spawn {
        inside: court.inside.cloned(),
        argv,
        cwd: court.root.to_owned(),
        env: court.env.clone().with("VERDONE_PROMPT_FILE", &prompt_file),
        stdin,
        wall: limits.turn_time.limit(),
        idle: None,
        grace: limits.grace.duration(),
        cap: limits.output_bytes,
        keep: Some(court.dir.join("judge-output.txt")),
        redactor: court.redactor,
    };
    let ended = match process::run(&spawn, signals, on) {
        Ok(ended) => ended,
        Err(error) => return Ok(record.void(format!("the judge could not be asked: {error}"))),
    };
    let record = JudgeRecord { duration_ms: ended.duration.as_millis() as u64, ..record };
    Ok(match ended.exit {
        Exit::Code(0) => {
            let Answer { fact: said, checked } = judge_answer(&ended.output.text);
            JudgeRecord { said, checked, ..record }
        }
        Exit::Code(code) => record.void(format!("the judge failed with exit code {code}")),
        Exit::Signal(signal) => record.void(format!("the judge was killed by signal {signal}")),
        Exit::Wall | Exit::Idle => record.void(format!("the judge did not answer within {}", limits.turn_time)),
        Exit::Terminal => record.void("the judge tried to use the terminal"),
        Exit::Interrupted(_) => record.void("the judge was interrupted"),
    })
}

/// Claude Code in a separate session that is read-only and must answer in the given schema.
fn by_client(
    record: JudgeRecord,
    config: &Config,
    seat: &ClientContext<'_>,
    prompt: &str,
    court: &ProverContext<'_>,
    signals: &Signals,
    on: &mut dyn FnMut(Moment<'_>),
) -> io::Result<JudgeRecord> {
    let settings = &config.done.judge;
    let budget = match (settings.cost_usd.limit(), seat.left_usd) {
        (Some(own), Some(left)) => Some(own.min(left)),
        (own, left) => own.or(left),
    };
    if budget.is_some_and(|budget| budget <= 0.0) {
        return Ok(record.void("limits.cost_usd leaves no budget for the judge"));
    }
    let mut agent = config.agent.clone();
    agent.claude.model = settings.model.clone().or(agent.claude.model);
    let turn = TurnRequest {
        agent: &agent,
        prompt,
        cwd: court.root,
        inside: court.inside,
        env: &court.env,
        run_dir: court.dir,
        number: 1,
        run: seat.run,
        place: seat.place,
        iteration: 0,
        plan: seat.plan,
        tools: None,
        limits: court.limits,
        held_up: &HeldUp::default(),
        redactor: court.redactor,
    };
    let schema = answer_schema();
    let question =
        Question { turn, top: seat.top, home: seat.run_dir, looking: ReadOnlyReason::Judging, schema: Some(&schema), budget };
    let ReadOnlyAnswer { result, denied, writes } = match question.ask(signals, on) {
        Ok(looked) => looked,
        Err(LookError::Settings(error)) => return Ok(record.void(format!("the judge could not be asked: {error}"))),
        Err(LookError::Io(error)) => return Err(error),
    };
    let record = JudgeRecord {
        session: result.session.map(|session| session.id),
        usage: result.usage,
        duration_ms: result.duration.as_millis() as u64,
        denied,
        ..record
    };
    if result.outcome != TurnOutcome::Ended {
        return Ok(record.void(format!("the judge {}", result.outcome.describe())));
    }
    let Answer { fact: said, checked } = only_answer(result.structured.as_deref().unwrap_or(&result.said));
    let record = JudgeRecord { said, checked, ..record };
    if writes.is_empty() {
        return Ok(record);
    }
    // A judge that tries to write, though told only to read, is following someone else's instructions.
    Ok(record.doubted(format!("the judge tried to write ({}), so its answer is ignored", writes.join(", "))))
}

/// Polls CI about a commit until it has a result or time runs out.
pub fn ask_ci(
    settings: &CiSettings,
    commit: &Oid,
    court: &ProverContext<'_>,
    signals: &Signals,
    on: &mut dyn FnMut(Moment<'_>),
) -> CiFact {
    let Some(command) = &settings.command else { return CiFact::Off };
    let clock = Stopwatch::start();
    let left = || settings.timeout.limit().unwrap_or_default().saturating_sub(clock.elapsed());
    loop {
        match one_question(command, commit, court, left().min(ONE_QUESTION), signals, on) {
            Some(answer) => return answer,
            None if left() <= settings.interval.duration() => {
                let why = format!("CI had no result for {} within {}", commit.short(), settings.timeout);
                return CiFact::Unknown { why };
            }
            None => {}
        }
        let until = Instant::now() + settings.interval.duration();
        while Instant::now() < until {
            if signals.requested().is_some() {
                return CiFact::Unknown { why: "the CI query was interrupted".to_owned() };
            }
            on(Moment::Tick);
            thread::sleep(LOOK.min(until.saturating_duration_since(Instant::now())));
        }
    }
}

/// `None` if CI has no result yet.
fn one_question(
    command: &CommandSpec,
    commit: &Oid,
    court: &ProverContext<'_>,
    wall: Duration,
    signals: &Signals,
    on: &mut dyn FnMut(Moment<'_>),
) -> Option<CiFact> {
    let spawn = Spawn {
        inside: None,
        argv: process::argv(command),
        cwd: court.root.to_owned(),
        env: court.env.clone().with("VERDONE_COMMIT", commit.as_str()),
        stdin: Stdin::Null,
        wall: Some(wall.max(Duration::from_millis(1))),
        idle: None,
        grace: court.limits.grace.duration(),
        cap: 64 * 1024,
        keep: None,
        redactor: court.redactor,
    };
    let ended = match process::run(&spawn, signals, on) {
        Ok(ended) => ended,
        Err(error) => return Some(CiFact::Unknown { why: format!("CI could not be asked: {error}") }),
    };
    let said = ended.output.text.lines().rev().map(|line| sanitise_line(line.trim()).into_owned()).find(|line| !line.is_empty());
    let said = said.map(|line| line[..line.floor_char_boundary(LONGEST_WORDS)].to_owned()).unwrap_or_default();
    let name = commit.short().to_owned();
    match ended.exit {
        Exit::Code(0) => Some(CiFact::Green { commit: name }),
        Exit::Code(NOT_YET) | Exit::Wall | Exit::Idle => None,
        Exit::Code(126 | 127) => Some(CiFact::Unknown { why: format!("the CI command cannot be run: {said}") }),
        Exit::Code(_) => Some(CiFact::Red { commit: name, said }),
        Exit::Signal(signal) => Some(CiFact::Unknown { why: format!("the CI command was killed by signal {signal}") }),
        Exit::Terminal => Some(CiFact::Unknown { why: "the CI command tried to use the terminal".to_owned() }),
        Exit::Interrupted(_) => Some(CiFact::Unknown { why: "the CI query was interrupted".to_owned() }),
    }
}
