//! `verdone hook`: one event of an agent's client on standard input, at most one JSON object on standard output, nothing else.
//!
//! Started for every tool call, so it does nothing that the event does not need. It never writes git or a journal; it appends to
//! its session's own files. What it cannot judge it denies in a run, and leaves alone in a user's own session.

mod after_tool;
mod attempt;
mod court;
mod facts;
mod guard;
mod home;
mod look;
mod session;
mod speaker;
mod stdin;
mod story;
mod transcript;

use std::ffi::OsString;

use verdone_core::hook::{HookEvent, HookInput, Response, Role, event_in};
use verdone_core::policy::{Looking, Mode, look_only};

use crate::base::fault;
use crate::process::RUN_VARIABLE;
use crate::process::signal::Signals;
use crate::session::judges_alone;

use after_tool::Company;
use court::{Answered, Court};
use home::{FileSettings, Home};
use speaker::Speaker;

pub use attempt::{TurnOf, turn_tests};
pub use facts::{Asked, facts};
pub use guard::{Guard, Judgement, Pending};
pub(crate) use home::lessons;
pub use home::{PolicyInForce, SESSIONS, policy_of};
pub(crate) use session::{append_in, make_sessions};
pub use story::StoryFile;
pub(crate) use story::tell;

/// The first argument of the binary.
pub const ARGUMENT: &str = "hook";
/// The hook of a session that nobody watches. Without it, a hook is the user's own, and silent beside a run.
const RUN: &str = "--run";
/// Set for a client that may only look, with what it looks for: its hooks let it do nothing else.
pub(crate) const LOOKING: &str = "VERDONE_LOOKING";
/// What tests put into [`fault::VARIABLE`] to see that a panic denies.
const PANIC: &str = "hook-panic";

/// Why an event could not be judged; the text goes to the agent and into the records.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error(transparent)]
    Stdin(#[from] stdin::StdinError),
    #[error(transparent)]
    Input(#[from] verdone_core::hook::InputError),
    #[error(transparent)]
    Settings(#[from] crate::project::config_file::SettingsError),
    #[error("{what}: {source}")]
    Files { what: &'static str, source: std::io::Error },
    #[error("the run's {0}")]
    Story(String),
    #[error("unknown argument {0:?}")]
    Argument(String),
    #[error("it was started for {asked}, and the input is about {given:?}")]
    Event { asked: String, given: String },
    #[error("the project was not found")]
    NoProject,
    #[error("the Stop gate: {0}")]
    Stop(#[from] crate::session::StopError),
}

/// What the binary does when its first argument is [`ARGUMENT`]; gets the arguments after it, and answers with the exit code.
pub fn main(arguments: &[OsString]) -> u8 {
    let mode = if arguments.iter().any(|argument| argument == RUN) { Mode::Run } else { Mode::Interactive };
    let mut others = arguments.iter().filter(|argument| *argument != RUN).map(|argument| argument.to_string_lossy());
    let (event, extra) = (others.next(), others.next());
    let (option, event) =
        event.map_or((None, None), |word| if word.starts_with('-') { (Some(word), None) } else { (None, Some(word)) });
    let speaker = Speaker::start(mode, event.as_deref());
    let read = stdin::read_value(&mut std::io::stdin().lock());
    // A run has hooks of its own; the one that the user installed would judge everything a second time.
    if mode == Mode::Interactive && std::env::var_os(RUN_VARIABLE).is_some_and(|run| !run.is_empty()) {
        return 0;
    }
    let judged = match (Home::find(mode), mode) {
        (None, Mode::Interactive) => return 0,
        (None, Mode::Run) => Err(Fault::NoProject),
        (Some(home), _) => {
            speaker.records_at(&home);
            match extra.or(option) {
                Some(argument) => {
                    speaker.is_about(read.as_ref().map_or_else(stdin::StdinError::event, |bytes| event_in(bytes)));
                    Err(Fault::Argument(argument.into_owned()))
                }
                None => judge(&home, mode, event.as_deref(), read, &speaker),
            }
        }
    };
    match judged {
        Ok(response) => speaker.say(&response.answer),
        Err(fault) => speaker.fail(&fault.to_string()),
    }
}

fn judge(
    home: &Home,
    mode: Mode,
    event: Option<&str>,
    read: Result<Vec<u8>, stdin::StdinError>,
    speaker: &Speaker,
) -> Result<Response, Fault> {
    let settings = home.settings();
    if let Ok(settings) = &settings {
        speaker.fails_by(settings.config.policy.on_failure);
    }
    let bytes = match read {
        Ok(bytes) => bytes,
        Err(error) => {
            speaker.is_about(error.event());
            return Err(error.into());
        }
    };
    let input = HookInput::parse(&bytes).inspect_err(|_| speaker.is_about(event_in(&bytes)))?;
    speaker.is_about(Some(input.common.event_name.to_string()));
    if let Some(event) = event.filter(|event| Role::of(event) == Role::Guard && *event != input.common.event_name) {
        return Err(Fault::Event { asked: event.to_owned(), given: input.common.event_name.chars().take(64).collect() });
    }
    if mode == Mode::Interactive
        && let HookEvent::Stop { active, .. } = input.event
    {
        speaker.gates(home, &input.common.session, active);
    }
    let panics = std::env::var_os(fault::VARIABLE).is_some_and(|fault| fault == PANIC);
    assert!(!panics, "asked for by a test");
    let (settings, unreadable) = match settings {
        Ok(settings) => (settings, None),
        Err(error) if mode == Mode::Interactive && judges_alone(&home.root, &input) => {
            (FileSettings::default(), Some(error.to_string()))
        }
        Err(error) => return Err(error.into()),
    };
    let mut rules = settings.rules();
    if let Some(name) = std::env::var_os(LOOKING).filter(|_| mode == Mode::Run) {
        rules.insert(0, look_only(Looking::of(&name.to_string_lossy())));
    }
    let story = StoryFile::of(&home.root, mode);
    // What comes of a tool is counted for the turn; for everything else the story need not be read.
    let home = &home.in_turn(if court::is_after(&input.event) { story.turn() } else { None });
    let unreadable = unreadable.as_deref();
    let court = Court { home, mode, config: &settings.config, unreadable, rules: &rules, story: &story };
    let mut judging = || {
        speaker.has_judged();
        // A client that loses patience ends us by a signal: then the command has to end, too.
        Signals::install().unwrap_or_else(|_| Signals::none())
    };
    match court.answer(&input, &mut judging)? {
        Answered::Now(response) => Ok(*response),
        Answered::After(errand) => errand.run(&judging(), Company::Alone),
    }
}
