//! Provers that have to be asked: a second agent that tries to refute the work, and a command that knows what CI said.
//!
//! Each is a child with a deadline; what it says is data, and what cannot be understood is unknown. The judge gets a fresh context
//! and no leave to change anything: who asks it looks at the files afterwards.

use std::io::{self, Write as _};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use verdone_core::check::CommandSpec;
use verdone_core::config::Config;
use verdone_core::done::{CiFact, CiSettings, JudgeFact, judge_answer};
use verdone_core::id::Oid;
use verdone_core::redact::Redactor;
use verdone_core::sanitise::sanitise_line;

use crate::agent::start_command;
use crate::output::create_fresh;
use crate::process::{self, EnvPlan, Exit, Moment, Spawn, Stdin};
use crate::signal::Signals;

/// What asks CI says by this: not known yet.
const NOT_YET: i32 = 75;
/// How often a wait looks whether the run is to stop.
const LOOK: Duration = Duration::from_millis(100);
/// One question to CI.
const ONE_QUESTION: Duration = Duration::from_mins(1);
const LONGEST_WORDS: usize = 300;

/// Where children work and what they are given.
#[derive(Debug)]
pub struct Court<'a> {
    pub root: &'a Path,
    /// Gets the prompt and what was said.
    pub dir: &'a Path,
    pub env: EnvPlan,
    pub redactor: &'a Redactor,
    pub grace: Duration,
}

/// Asks a second agent to refute the work.
pub fn ask_judge(
    config: &Config,
    prompt: &str,
    court: &Court<'_>,
    signals: &Signals,
    on: &mut dyn FnMut(Moment<'_>),
) -> io::Result<JudgeFact> {
    let settings = &config.done.judge;
    let own = settings.command.as_ref().map(|command| (command, settings.prompt));
    let agents = || {
        let agent = &config.agent;
        agent.command.run.as_ref().filter(|_| agent.name == "command").map(|command| (command, agent.command.prompt))
    };
    let Some((command, via)) = own.or_else(agents).filter(|(command, _)| !command.is_empty()) else {
        let why = format!("the agent {:?} cannot judge here: set `command` in [done.judge]", config.agent.name);
        return Ok(JudgeFact::Unknown { why });
    };
    let prompt_file = court.dir.join("judge-prompt.md");
    create_fresh(&prompt_file)?.write_all(prompt.as_bytes())?;
    let (argv, stdin) = start_command(command, via, prompt, &prompt_file);
    let spawn = Spawn {
        argv,
        cwd: court.root.to_owned(),
        env: court.env.clone().with("VERDONE_PROMPT_FILE", &prompt_file),
        stdin,
        wall: settings.timeout.limit(),
        idle: None,
        grace: court.grace,
        cap: config.limits.output_bytes,
        keep: Some(court.dir.join("judge-output.txt")),
        redactor: court.redactor,
    };
    let ended = match process::run(&spawn, signals, on) {
        Ok(ended) => ended,
        Err(error) => return Ok(JudgeFact::Unknown { why: format!("the judge could not be asked: {error}") }),
    };
    Ok(match ended.exit {
        Exit::Code(0) => judge_answer(&ended.output.text),
        Exit::Code(code) => JudgeFact::Unknown { why: format!("the judge failed with exit code {code}") },
        Exit::Signal(signal) => JudgeFact::Unknown { why: format!("the judge was ended by signal {signal}") },
        Exit::Wall | Exit::Idle => JudgeFact::Unknown { why: format!("the judge did not answer within {}", settings.timeout) },
        Exit::Terminal => JudgeFact::Unknown { why: "the judge wanted to use the terminal".to_owned() },
        Exit::Interrupted(_) => JudgeFact::Unknown { why: "the judge was interrupted".to_owned() },
    })
}

/// Asks CI about a commit, until it knows or the time is over.
pub fn ask_ci(settings: &CiSettings, commit: &Oid, court: &Court<'_>, signals: &Signals) -> CiFact {
    let Some(command) = &settings.command else { return CiFact::Off };
    let begun = Instant::now();
    let left = || settings.timeout.limit().unwrap_or_default().saturating_sub(begun.elapsed());
    loop {
        match one_question(command, commit, court, left().min(ONE_QUESTION), signals) {
            Some(answer) => return answer,
            None if left() <= settings.interval.duration() => {
                let why = format!("CI knew nothing of {} within {}", commit.short(), settings.timeout);
                return CiFact::Unknown { why };
            }
            None => {}
        }
        let until = Instant::now() + settings.interval.duration();
        while Instant::now() < until {
            if signals.requested().is_some() {
                return CiFact::Unknown { why: "the question to CI was interrupted".to_owned() };
            }
            thread::sleep(LOOK.min(until.saturating_duration_since(Instant::now())));
        }
    }
}

/// Nothing where CI does not know yet.
fn one_question(command: &CommandSpec, commit: &Oid, court: &Court<'_>, wall: Duration, signals: &Signals) -> Option<CiFact> {
    let spawn = Spawn {
        argv: process::argv(command),
        cwd: court.root.to_owned(),
        env: court.env.clone().with("VERDONE_COMMIT", commit.as_str()),
        stdin: Stdin::Null,
        wall: Some(wall.max(Duration::from_millis(1))),
        idle: None,
        grace: court.grace,
        cap: 64 * 1024,
        keep: None,
        redactor: court.redactor,
    };
    let ended = match process::run(&spawn, signals, &mut |_: Moment<'_>| {}) {
        Ok(ended) => ended,
        Err(error) => return Some(CiFact::Unknown { why: format!("CI could not be asked: {error}") }),
    };
    let said = ended.output.text.lines().rev().map(|line| sanitise_line(line.trim()).into_owned()).find(|line| !line.is_empty());
    let said = said.map(|line| line[..line.floor_char_boundary(LONGEST_WORDS)].to_owned()).unwrap_or_default();
    let name = commit.short().to_owned();
    match ended.exit {
        Exit::Code(0) => Some(CiFact::Green { commit: name }),
        Exit::Code(NOT_YET) | Exit::Wall | Exit::Idle => None,
        Exit::Code(126 | 127) => Some(CiFact::Unknown { why: format!("the command that asks CI cannot be run: {said}") }),
        Exit::Code(_) => Some(CiFact::Red { commit: name, said }),
        Exit::Signal(signal) => Some(CiFact::Unknown { why: format!("the command that asks CI was ended by signal {signal}") }),
        Exit::Terminal => Some(CiFact::Unknown { why: "the command that asks CI wanted to use the terminal".to_owned() }),
        Exit::Interrupted(_) => Some(CiFact::Unknown { why: "the question to CI was interrupted".to_owned() }),
    }
}
