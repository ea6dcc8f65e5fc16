//! One turn of an agent: starts it with the prompt, supervises it, stores prompt and output.
//!
//! The result says how the turn ended, never whether the story is done.

mod acp_check;
mod check;
mod claude;
mod command;
pub mod judge;
mod pipe;
pub(crate) mod read_only_session;
mod run_agent;
pub mod scripted;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use verdone_core::agent::tool_server::SOCKET_VARIABLE;
use verdone_core::agent::{AllowanceUse, Driver, SessionUse, TurnOutcome, Usage};
use verdone_core::base::id::RunId;
use verdone_core::base::redact::Redactor;
use verdone_core::base::sanitise::sanitise_line;
use verdone_core::config::{Agents, Limits};
use verdone_core::journal::event::Place;

use crate::base::fault::{self, Point};
use crate::git::reflog_mark;
use crate::launcher::Inside;
use crate::process::output::create_fresh;
use crate::process::signal::Signals;
use crate::process::{self, EnvPlan, Exit, HeldUp, Moment, Spawn, SpawnError, Stdin};

pub use check::check as check_agent;
pub(crate) use check::check_judge;
pub use claude::Claude;
use claude::VERSION_TIME;
pub use claude::check as check_claude;
pub(crate) use command::start as start_command;
pub use pipe::PipeAgent;
pub use run_agent::RunAgent;

/// How many bytes at the end of the output become the agent's claim.
const CLAIM: usize = 4 * 1024;

#[derive(Debug)]
pub struct TurnRequest<'a> {
    pub agent: &'a Agents,
    pub prompt: &'a str,
    pub cwd: &'a Path,
    /// The workspace that the agent works in. `None`: the current directory tree, without a workspace.
    pub inside: Option<&'a Inside>,
    /// Environment variables added by the workspace.
    pub env: &'a EnvPlan,
    /// Gets `turns/<number>-prompt.md` and `outputs/<number>.txt`.
    pub run_dir: &'a Path,
    /// Counts the turns of the run, so that file names are unique.
    pub number: u32,
    pub run: &'a RunId,
    pub place: &'a Place,
    pub iteration: u32,
    pub plan: &'a Path,
    /// The socket on which the run answers tool calls, as a path inside. `None`: the agent has no tools of ours.
    pub tools: Option<&'a Path>,
    pub limits: &'a Limits,
    /// Where the run excuses the agent for waiting.
    pub held_up: &'a HeldUp,
    pub redactor: &'a Redactor,
}

#[derive(Debug)]
pub struct TurnResult {
    pub outcome: TurnOutcome,
    pub usage: Usage,
    /// Of the agent's process, if it ended by itself.
    pub exit_code: Option<i32>,
    pub duration: Duration,
    /// Relative to the run's directory.
    pub prompt_file: Option<String>,
    /// Relative to the run's directory.
    pub output_file: Option<String>,
    pub leftovers: u32,
    /// The redacted output, capped. Hostile: not sanitised for a terminal.
    pub said: String,
    /// The redacted JSON answer, if a schema was requested and the agent answered in it. Hostile as well.
    pub structured: Option<String>,
    /// The agent's last words, redacted. Hostile as well.
    pub claim: String,
    pub session: Option<SessionUse>,
    pub allowance: Option<AllowanceUse>,
    /// A notice to the user about the session.
    pub notice: Option<String>,
}

impl TurnResult {
    fn empty() -> Self {
        Self {
            outcome: TurnOutcome::Ended,
            usage: Usage::default(),
            exit_code: None,
            duration: Duration::ZERO,
            prompt_file: None,
            output_file: None,
            leftovers: 0,
            said: String::new(),
            structured: None,
            claim: String::new(),
            session: None,
            allowance: None,
            notice: None,
        }
    }
}

/// Written to disk before the journal line that refers to it.
fn write_prompt(path: &Path, prompt: &str) -> io::Result<()> {
    let mut file = create_fresh(path)?;
    fault::write_torn(&mut file, prompt.as_bytes(), Point::PromptWrite)?;
    file.sync_all()
}

/// Runs one turn of a client that serves many turns.
pub(crate) fn run_client_turn(
    request: &TurnRequest<'_>,
    client: &mut Claude,
    budget: Option<f64>,
    signals: &Signals,
    on: &mut dyn FnMut(Moment<'_>),
) -> io::Result<TurnResult> {
    let prompt_file = format!("turns/{}-prompt.md", request.number);
    let prompt_path = request.run_dir.join(&prompt_file);
    write_prompt(&prompt_path, request.prompt)?;
    let result = client.turn(request, budget, signals, on)?;
    Ok(TurnResult { prompt_file: Some(prompt_file), ..result })
}

/// Runs one turn of a client that is driven over a pipe.
pub(crate) fn run_pipe_turn(
    request: &TurnRequest<'_>,
    client: &mut PipeAgent,
    signals: &Signals,
    on: &mut dyn FnMut(Moment<'_>),
) -> io::Result<TurnResult> {
    let prompt_file = format!("turns/{}-prompt.md", request.number);
    write_prompt(&request.run_dir.join(&prompt_file), request.prompt)?;
    let result = client.turn(request, signals, on)?;
    Ok(TurnResult { prompt_file: Some(prompt_file), ..result })
}

/// Runs one turn. Agent failures become outcomes; only errors with our own files are returned as errors.
pub fn run_turn(request: &TurnRequest<'_>, signals: &Signals, on: &mut dyn FnMut(Moment<'_>)) -> io::Result<TurnResult> {
    let prompt_file = format!("turns/{}-prompt.md", request.number);
    let output_file = format!("outputs/{}.txt", request.number);
    let prompt_path = request.run_dir.join(&prompt_file);
    write_prompt(&prompt_path, request.prompt)?;
    let mut result = TurnResult { prompt_file: Some(prompt_file), ..TurnResult::empty() };
    let (argv, stdin) = match start(request, &prompt_path) {
        Ok(start) => start,
        Err(reason) => {
            result.outcome = TurnOutcome::NotRunnable { reason };
            return Ok(result);
        }
    };
    let limits = request.limits;
    let spawn = Spawn {
        inside: request.inside.cloned(),
        argv,
        cwd: request.cwd.to_owned(),
        env: environment(request, &prompt_path),
        stdin,
        wall: limits.turn_time.limit(),
        idle: limits.idle_time.limit(),
        grace: limits.grace.duration(),
        cap: limits.output_bytes,
        keep: Some(request.run_dir.join(&output_file)),
        redactor: request.redactor,
    };
    match process::run_excusing(&spawn, signals, request.held_up, on) {
        Ok(ended) => {
            result.outcome = outcome(ended.exit, limits, ended.output.tail(300));
            result.exit_code = exit_code(ended.exit);
            result.duration = ended.duration;
            result.output_file = spawn.keep.is_some_and(|path| path.exists()).then_some(output_file);
            result.leftovers = ended.leftovers;
            ended.output.tail(CLAIM).clone_into(&mut result.claim);
            result.said = ended.output.text;
        }
        Err(SpawnError::Keep { source, .. }) => return Err(source),
        Err(error) => result.outcome = TurnOutcome::NotRunnable { reason: error.to_string() },
    }
    Ok(result)
}

fn start(request: &TurnRequest<'_>, prompt_path: &Path) -> Result<(Vec<std::ffi::OsString>, Stdin), String> {
    match request.agent.name.driver() {
        Driver::Command => {
            let command = request.agent.turn_command();
            let run = command.run.as_ref().filter(|run| !run.is_empty());
            let run = run.ok_or("no command: set agent.command.run in .verdone/config.toml, or pass --agent-command")?;
            Ok(command::start(run, command.prompt, request.prompt, prompt_path))
        }
        Driver::Scripted => {
            let script = request.agent.scripted.script.as_ref();
            let script = script.ok_or("no script: set agent.scripted.script in .verdone/config.toml")?;
            scripted::start(&request.cwd.join(script), request.prompt)
        }
        Driver::Claude | Driver::Pipe => Err("this client serves many turns and cannot be started for one".to_owned()),
    }
}

/// The environment of an agent that serves many turns: only variables that apply to all of them.
fn lasting_environment(request: &TurnRequest<'_>) -> EnvPlan {
    let env = match request.tools {
        Some(socket) => request.env.clone().with(SOCKET_VARIABLE, socket),
        None => request.env.clone(),
    };
    env.with(process::RUN_VARIABLE, request.run.as_str())
        .with("GIT_REFLOG_ACTION", format!("{} agent", reflog_mark(request.run.as_str())))
        .with("VERDONE_PLAN", absolute(request.plan, request.cwd))
}

fn environment(request: &TurnRequest<'_>, prompt_path: &Path) -> EnvPlan {
    let place = request.place;
    lasting_environment(request)
        .with("VERDONE_STORY", place.story.as_str().replace('\0', "\u{fffd}"))
        .with("VERDONE_ATTEMPT", place.attempt.to_string())
        .with("VERDONE_TURN", place.turn.to_string())
        .with("VERDONE_ITERATION", request.iteration.to_string())
        .with("VERDONE_PROMPT_FILE", absolute(prompt_path, request.cwd))
}

fn absolute(path: &Path, cwd: &Path) -> PathBuf {
    std::path::absolute(cwd.join(path)).unwrap_or_else(|_| path.to_owned())
}

/// As a shell reports it. `None` if we ended it.
fn exit_code(exit: Exit) -> Option<i32> {
    match exit {
        Exit::Code(code) => Some(code),
        Exit::Signal(signal) => Some(128 + signal),
        Exit::Wall | Exit::Idle | Exit::Terminal | Exit::Interrupted(_) => None,
    }
}

fn outcome(exit: Exit, limits: &Limits, tail: &str) -> TurnOutcome {
    let millis = |span: verdone_core::base::span::Span| span.duration().as_millis() as u64;
    let last = tail.lines().map(|line| sanitise_line(line.trim())).rfind(|line| !line.is_empty());
    let because = |what: String| last.as_ref().map_or_else(|| what.clone(), |line| format!("{what}: {line}"));
    match exit {
        Exit::Code(0) => TurnOutcome::Ended,
        Exit::Code(127) => TurnOutcome::NotRunnable { reason: because("not found (exit code 127)".to_owned()) },
        Exit::Code(126) => TurnOutcome::NotRunnable { reason: because("not executable (exit code 126)".to_owned()) },
        Exit::Code(code) => TurnOutcome::Crashed { reason: because(format!("exit code {code}")) },
        Exit::Signal(signal) => TurnOutcome::Crashed { reason: because(format!("signal {signal}")) },
        Exit::Wall => TurnOutcome::TimedOut { after_ms: millis(limits.turn_time) },
        Exit::Idle => TurnOutcome::Idle { after_ms: millis(limits.idle_time) },
        Exit::Terminal => TurnOutcome::Crashed { reason: "it tried to use the terminal; run it non-interactively".to_owned() },
        Exit::Interrupted(_) => TurnOutcome::Interrupted,
    }
}
