//! Runs the `[[after_tool]]` commands one after another. Each has a deadline, and there is one for all of them together.

use std::ffi::OsString;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use verdone_core::base::redact::Redactor;
use verdone_core::check::CommandSpec;
use verdone_core::hook::{AfterCommand, CommandEnd, CommandExit, MOST_TIME};

use super::run_dirs::HookProject;
use crate::process::signal::Signals;
use crate::process::{self, Ended, EnvPlan, Exit, RUN_VARIABLE, SHELL, Spawn, SpawnError, Stdin};

/// The file that the tool worked on.
const FILE_VARIABLE: &str = "VERDONE_FILE";
const TOOL_VARIABLE: &str = "VERDONE_TOOL";
/// The time between TERM and KILL.
const GRACE: Duration = Duration::from_millis(500);
/// The agent is shown far less than this.
const OUTPUT_BYTES: u64 = 64 * 1024;

/// Counts commands that run next to others, to give each a unique mark.
static STARTED: AtomicU64 = AtomicU64::new(0);
/// Marks a command that runs next to others, so that its leftover processes can be found.
const MARK: &str = "VERDONE_AFTER_TOOL";

/// Whether other threads of this process start child processes as well.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Concurrency {
    Alone,
    Others,
}

pub(crate) fn run(
    commands: &[AfterCommand],
    home: &HookProject,
    redactor: &Redactor,
    signals: &Signals,
    company: Concurrency,
) -> Vec<CommandEnd> {
    let began = Instant::now();
    let one = |command: &AfterCommand| {
        let left = MOST_TIME.saturating_sub(began.elapsed());
        if left.is_zero() || signals.requested().is_some() {
            return CommandEnd { exit: CommandExit::NotStarted, output: String::new(), duration_ms: 0 };
        }
        let mut spawn = Spawn {
            inside: home.inside.clone(),
            argv: argv(command),
            cwd: home.root.clone(),
            env: environment(command, home),
            stdin: Stdin::Null,
            wall: Some(command.timeout.min(left)),
            idle: None,
            grace: GRACE,
            cap: OUTPUT_BYTES,
            keep: None,
            redactor,
        };
        let ended = match company {
            Concurrency::Alone => process::run(&spawn, signals, &mut |_| {}),
            Concurrency::Others => {
                let mark = format!("{}-{}", std::process::id(), STARTED.fetch_add(1, Ordering::Relaxed));
                spawn.env = spawn.env.with(MARK, &mark);
                process::run_and_end_marked(&spawn, (MARK, &mark), signals)
            }
        };
        told(ended, command.timeout.min(left))
    };
    commands.iter().map(one).collect()
}

fn told(ended: Result<Ended, SpawnError>, wall: Duration) -> CommandEnd {
    match ended {
        Ok(ended) => CommandEnd {
            exit: match ended.exit {
                Exit::Code(code) => CommandExit::Code(code),
                Exit::Signal(signal) => CommandExit::Signal(signal),
                Exit::Wall | Exit::Idle => CommandExit::TimedOut { after: wall },
                Exit::Terminal => CommandExit::NotRunnable { reason: "it tried to use the terminal".to_owned() },
                Exit::Interrupted(_) => CommandExit::NotStarted,
            },
            output: ended.output.text,
            duration_ms: ended.duration.as_millis() as u64,
        },
        Err(error) => {
            let exit = CommandExit::NotRunnable { reason: error.to_string() };
            CommandEnd { exit, output: String::new(), duration_ms: 0 }
        }
    }
}

/// The path is passed as an argument or a variable, so that no shell interprets it.
fn argv(command: &AfterCommand) -> Vec<OsString> {
    match (&command.run, command.describe()) {
        (_, Some(words)) => words.into_iter().map(Into::into).collect(),
        (CommandSpec::Shell(text), None) => {
            let file = command.file.iter().map(OsString::from);
            [SHELL, "-c", text, "verdone"].into_iter().map(OsString::from).chain(file).collect()
        }
        (CommandSpec::Argv(_), None) => process::argv(&command.run),
    }
}

fn environment(command: &AfterCommand, home: &HookProject) -> EnvPlan {
    let env = EnvPlan::default().with(TOOL_VARIABLE, &command.tool);
    let env = match &command.file {
        Some(file) => env.with(FILE_VARIABLE, file),
        None => env.without(FILE_VARIABLE),
    };
    // With this variable, the run finds processes that outlive a killed hook.
    match home.run() {
        Some(run) => env.with(RUN_VARIABLE, run),
        None => env,
    }
}
