//! `verdone hook`: one event of an agent's client on standard input, at most one JSON object on standard output, nothing else.
//!
//! Started for every tool call, so it does nothing that the event does not need. It never writes git or a journal; it appends to
//! its session's own files. What it cannot judge it denies in a run, and leaves alone in a user's own session.

mod facts;
mod home;
mod session;
mod speaker;
mod stdin;
mod transcript;

use std::ffi::OsString;
use std::process::ExitCode;

use verdone_core::hook::{HookEvent, HookInput, Response, Situation, Target, event_in, respond, target};
use verdone_core::policy::{Mode, ToolCall, rules};

use crate::fault;
use crate::process::RUN_VARIABLE;

use home::Home;
use session::Session;
use speaker::Speaker;

pub use facts::{Asked, facts};
pub use home::{PolicyInForce, policy_of};

/// The first argument of the binary.
pub const ARGUMENT: &str = "hook";
/// The hook of a session that nobody watches. Without it, a hook is the user's own, and silent beside a run.
const RUN: &str = "--run";
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
    Settings(#[from] crate::config_file::SettingsError),
    #[error("{what}: {source}")]
    Files { what: &'static str, source: std::io::Error },
    #[error("unknown argument {0:?}")]
    Argument(String),
    #[error("the project was not found")]
    NoProject,
}

/// What the binary does when its first argument is [`ARGUMENT`]; gets the arguments after it.
pub fn main(arguments: &[OsString]) -> ExitCode {
    let mode = if arguments.iter().any(|argument| argument == RUN) { Mode::Run } else { Mode::Interactive };
    let mut others = arguments.iter().filter(|argument| *argument != RUN).map(|argument| argument.to_string_lossy());
    let (event, extra) = (others.next(), others.next());
    let (option, event) =
        event.map_or((None, None), |word| if word.starts_with('-') { (Some(word), None) } else { (None, Some(word)) });
    let speaker = Speaker::start(mode, event.as_deref());
    let read = stdin::read_value(&mut std::io::stdin().lock());
    // A run has hooks of its own; the one that the user installed would judge everything a second time.
    if mode == Mode::Interactive && std::env::var_os(RUN_VARIABLE).is_some_and(|run| !run.is_empty()) {
        return ExitCode::SUCCESS;
    }
    let judged = match (Home::find(mode), mode) {
        (None, Mode::Interactive) => return ExitCode::SUCCESS,
        (None, Mode::Run) => Err(Fault::NoProject),
        (Some(home), _) => {
            speaker.records_at(&home);
            match extra.or(option) {
                Some(argument) => {
                    speaker.is_about(read.as_ref().map_or_else(stdin::StdinError::event, |bytes| event_in(bytes)));
                    Err(Fault::Argument(argument.into_owned()))
                }
                None => judge(&home, mode, read, &speaker),
            }
        }
    };
    match judged {
        Ok(response) => speaker.say(&response.answer),
        Err(fault) => speaker.fail(&fault.to_string()),
    }
    ExitCode::SUCCESS
}

fn judge(home: &Home, mode: Mode, read: Result<Vec<u8>, stdin::StdinError>, speaker: &Speaker) -> Result<Response, Fault> {
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
    let panics = std::env::var_os(fault::VARIABLE).is_some_and(|fault| fault == PANIC);
    assert!(!panics, "asked for by a test");
    let settings = settings?;
    let policy = &settings.config.policy;
    let (rules, _) = rules(policy, &settings.name, |n| settings.rule_lines.get(n).copied().unwrap_or_default());
    let call = input.call().map(|call| call.for_policy(&input.common.event_name)).transpose();
    // What has run already can be looked at in part; what is to run cannot.
    let call = if is_guard(&input.event) { call? } else { call.unwrap_or_default() };
    let asked = Asked { mode, cwd: &input.common.cwd, call: call.as_ref() };
    let context = facts(home, &settings.config, &asked);
    let session = Session::of(home, &input.common.session);
    let target = match &call {
        Some(call) if policy.read_before_edit() && is_guard(&input.event) => look(call, &context, &session)?,
        Some(_) | None => None,
    };
    let briefing = matches!(input.event, HookEvent::SessionStart { .. }).then(|| home.briefing(mode)).flatten();
    let situation = Situation {
        rules: &rules,
        context: &context,
        call: call.as_ref(),
        target: target.as_ref(),
        briefing: briefing.as_deref(),
    };
    let mut response = respond(&input, &situation);
    response.records.splice(0..0, transcript::spent(&input));
    session.keep(&input, &response).map_err(|source| Fault::Files { what: "the session's files", source })?;
    Ok(response)
}

fn is_guard(event: &HookEvent<'_>) -> bool {
    matches!(event, HookEvent::PreToolUse(_) | HookEvent::PermissionRequest(_))
}

/// What the session knows of the file that a call would change.
fn look(call: &ToolCall, context: &verdone_core::policy::PolicyContext, session: &Session) -> Result<Option<Target>, Fault> {
    let Some(path) = target(call, context) else { return Ok(None) };
    // A folder or a device is no file to read first; the tool refuses it by itself.
    let exists = std::fs::metadata(&path).is_ok_and(|meta| meta.is_file());
    let known = exists && session.knows(&path).map_err(|source| Fault::Files { what: "the session's memory", source })?;
    Ok(Some(Target { path, exists, known }))
}
