//! `verdone hook`: reads one event of an agent's client from standard input and prints at most one JSON object.
//!
//! It starts for every tool call, so it does only what the event needs. It never writes to git or a journal; it only appends to the files
//! of its session. Events that it cannot judge are denied in a run and let through in a user's own session.

mod responder;
mod stdin;

use std::ffi::OsString;

use verdone_core::hook::{HookEvent, HookInput, Response, Role, event_in};
use verdone_core::policy::{Mode, ReadOnlyReason, read_only_rule};

use crate::base::fault;
use crate::guard::{self, Answered, Concurrency, EventJudge, Fault, FileSettings, HookProject, LOOKING, SessionGate, StoryFile};
use crate::process::RUN_VARIABLE;
use crate::process::signal::Signals;
use crate::session::{Gate, must_answer_without_settings, root_of_held_loop};

use responder::Responder;

/// The first argument of the binary.
pub const ARGUMENT: &str = "hook";
/// Marks the hook of an unattended session. A hook without it was installed by the user and stays silent during a run.
const RUN: &str = "--run";
/// A value for [`fault::VARIABLE`] with which tests check that a panic denies.
const PANIC: &str = "hook-panic";

/// The entry point if the first argument is [`ARGUMENT`]. Gets the arguments after it and returns the exit code.
pub fn main(arguments: &[OsString]) -> u8 {
    let mode = if arguments.iter().any(|argument| argument == RUN) { Mode::Run } else { Mode::Interactive };
    let mut others = arguments.iter().filter(|argument| *argument != RUN).map(|argument| argument.to_string_lossy());
    let (event, extra) = (others.next(), others.next());
    let (option, event) =
        event.map_or((None, None), |word| if word.starts_with('-') { (Some(word), None) } else { (None, Some(word)) });
    let responder = Responder::start(mode, event.as_deref());
    let read = stdin::read_value(&mut std::io::stdin().lock());
    // A run has its own hooks; the user's hook would judge every call a second time.
    if mode == Mode::Interactive && std::env::var_os(RUN_VARIABLE).is_some_and(|run| !run.is_empty()) {
        return 0;
    }
    let judged = match (HookProject::find(mode, root_of_held_loop), mode) {
        (None, Mode::Interactive) => return 0,
        (None, Mode::Run) => Err(Fault::NoProject),
        (Some(home), _) => {
            responder.records_at(&home);
            match extra.or(option) {
                Some(argument) => {
                    responder.is_about(read.as_ref().map_or_else(stdin::StdinError::event, |bytes| event_in(bytes)));
                    Err(Fault::Argument(argument.into_owned()))
                }
                None => judge(&home, mode, event.as_deref(), read, &responder),
            }
        }
    };
    match judged {
        Ok(response) => responder.say(&response.answer),
        Err(fault) => responder.fail(&fault.to_string()),
    }
}

fn judge(
    home: &HookProject,
    mode: Mode,
    event: Option<&str>,
    read: Result<Vec<u8>, stdin::StdinError>,
    responder: &Responder,
) -> Result<Response, Fault> {
    let settings = home.settings();
    if let Ok(settings) = &settings {
        responder.fails_by(settings.config.policy.on_failure);
    }
    let bytes = match read {
        Ok(bytes) => bytes,
        Err(error) => {
            responder.is_about(error.event());
            return Err(Fault::Stdin(error.to_string()));
        }
    };
    let input = HookInput::parse(&bytes).inspect_err(|_| responder.is_about(event_in(&bytes)))?;
    responder.is_about(Some(input.common.event_name.to_string()));
    if let Some(event) = event.filter(|event| Role::from_event(event) == Role::Guard && *event != input.common.event_name) {
        return Err(Fault::Event { asked: event.to_owned(), given: input.common.event_name.chars().take(64).collect() });
    }
    if mode == Mode::Interactive
        && let HookEvent::Stop { active, .. } = input.event
    {
        responder.gates(home, &input.common.session, active);
    }
    let panics = std::env::var_os(fault::VARIABLE).is_some_and(|fault| fault == PANIC);
    assert!(!panics, "asked for by a test");
    let (settings, unreadable) = match settings {
        Ok(settings) => (settings, None),
        Err(error) if mode == Mode::Interactive && must_answer_without_settings(&home.root, &input) => {
            (FileSettings::default(), Some(error.to_string()))
        }
        Err(error) => return Err(error.into()),
    };
    let mut rules = settings.rules();
    if let Some(name) = std::env::var_os(LOOKING).filter(|_| mode == Mode::Run) {
        rules.insert(0, read_only_rule(ReadOnlyReason::from_name(&name.to_string_lossy())));
    }
    let story = StoryFile::open(&home.root, mode);
    // Only tool results are counted per turn. Other events do not need the story.
    let home = &home.in_turn(if guard::is_after(&input.event) { story.turn() } else { None });
    let unreadable = unreadable.as_deref();
    // Runs need no Stop gate: the driver verifies their work.
    let gate = (mode == Mode::Interactive)
        .then(|| Gate::new(&home.root, &home.top, &settings.config, unreadable, &input.common.session));
    let gate = gate.as_ref().map(|gate| gate as &dyn SessionGate);
    let court = EventJudge { home, mode, config: &settings.config, rules: &rules, story: &story, gate };
    let mut judging = || {
        responder.has_judged();
        // If the client runs out of patience, it ends us with a signal; then the command must end, too.
        Signals::install().unwrap_or_else(|_| Signals::none())
    };
    match court.answer(&input, &mut judging)? {
        Answered::Now(response) => Ok(*response),
        Answered::After(job) => job.run(&judging(), Concurrency::Alone),
    }
}
