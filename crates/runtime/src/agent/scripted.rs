//! The `scripted` agent: plays a script as a real child process, for demos, tests and trying out a config.
//!
//! The binary starts itself with [`ARGUMENT`], and its command line passes the remaining arguments to [`main`]. This agent misbehaves as
//! its script says. It therefore runs `git` directly, as an agent would, and not through our git module.

mod script;
mod step;

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use crate::process::{SHELL, Stdin, own_program};

pub use script::{Script, ScriptError};

/// The hidden first argument of the binary.
pub const ARGUMENT: &str = "scripted-agent";
/// Runs the command that follows in a new process session.
const DAEMON: &str = "--daemon";

/// The position of a turn, for the filters of a script.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Whereabouts {
    pub story: String,
    pub attempt: u32,
    pub turn: u32,
}

impl Whereabouts {
    pub fn from_environment() -> Self {
        let text = |name: &str| std::env::var(name).unwrap_or_default();
        let number = |name: &str| text(name).parse().unwrap_or(0);
        Self { story: text("VERDONE_STORY"), attempt: number("VERDONE_ATTEMPT"), turn: number("VERDONE_TURN") }
    }
}

/// The entry point if the first argument is [`ARGUMENT`]. Gets the arguments after it.
pub fn main(arguments: &[OsString]) -> ExitCode {
    match arguments {
        [flag, command] if flag == DAEMON => daemon(command),
        [script] => play(Path::new(script), &Whereabouts::from_environment()),
        _ => fail("expected one argument, the script"),
    }
}

/// Plays the first turn that matches.
pub fn play(script: &Path, place: &Whereabouts) -> ExitCode {
    let text = match std::fs::read_to_string(script) {
        Ok(text) => text,
        Err(error) => return fail(&format!("{}: {error}", script.display())),
    };
    let script = match text.parse::<Script>() {
        Ok(script) => script,
        Err(error) => return fail(&format!("{}:{error}", script.display())),
    };
    let Some(turn) = script.turn(place) else {
        say(&format!("the script has no turn for story {}, attempt {}, turn {}", place.story, place.attempt, place.turn));
        return ExitCode::SUCCESS;
    };
    for step in &turn.steps {
        match step::perform(step) {
            Ok(step::Next::Step) => {}
            Ok(step::Next::Exit(code)) => return ExitCode::from(code),
            Err(problem) => {
                say(&format!("could not {problem}"));
                return ExitCode::from(1);
            }
        }
    }
    ExitCode::SUCCESS
}

pub(super) fn start(script: &Path, prompt: &str) -> Result<(Vec<OsString>, Stdin), String> {
    let exe = own_program().map_err(|error| format!("cannot find this program's executable: {error}"))?;
    Ok((vec![exe.into(), ARGUMENT.into(), script.into()], Stdin::Bytes(prompt.as_bytes().to_vec())))
}

/// Starts a new process session, as agents' background servers do.
fn daemon(command: &OsString) -> ExitCode {
    let _ = rustix::process::setsid();
    fail(&Command::new(SHELL).arg("-c").arg(command).exec().to_string())
}

fn fail(message: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "scripted agent: {message}");
    ExitCode::from(2)
}

/// Flushes after every line. Ignores errors if no one reads the output.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}
