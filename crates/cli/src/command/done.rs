//! `verdone done`: each condition of a session, held by what, missing why, and what to do.

use std::path::Path;

use serde_json::json;
use verdone_core::done::{Standing, complexity, judge};
use verdone_report::{cost, done_page};
use verdone_runtime::config_file::Flags;
use verdone_runtime::done::{Ask, DoneError, ask, look, project};
use verdone_runtime::ralph_state;
use verdone_runtime::sessions::{own_sessions, sessions};
use verdone_runtime::signal::Signals;

use super::{Context, Outcome};
use crate::args::DoneArgs;
use crate::error::CliError;
use crate::terminal::{print, print_json, printable, say};

/// What a client tells the commands of its session.
const SESSION_VARIABLE: &str = "CLAUDE_CODE_SESSION_ID";

pub(super) fn run(args: &DoneArgs, context: &Context) -> Outcome {
    let found = context.project()?;
    let config = context.settings(&found, &Flags::default())?.resolved.config;
    let session = session_of(args, &found.root, context)?;
    let (root, state_home) = (&found.root, ralph_state::home());
    let about = Ask { root, session: &session, config: &config, checked: None, about: None, state_home };
    if args.ask {
        ask(&about, &Signals::install()?)?;
    }
    let seen = look(&about)?;
    if let Some(judge) = seen.judge.as_ref().filter(|_| args.ask) {
        let spent = judge.usage.cost_usd.map(|usd| format!(" ({})", cost(usd))).unwrap_or_default();
        say(&printable(&format!("note: the judge, {}, {}{spent}\n", judge.agent, judge.words())));
    }
    let report = judge(&config.done, &seen.facts);
    let complexity = complexity(&config.done, &seen.facts).value;
    let task = seen.story.as_ref().map_or("", |story| &story.title);
    match project(&about, task, &report) {
        Ok(theirs) if theirs.is_empty() => {}
        Ok(theirs) => say(&printable(&format!("note: another tool's, left as they are: {}\n", theirs.join(", ")))),
        Err(error) => say(&printable(&format!("warning: ~/.ralph/state cannot be written: {error}\n"))),
    }
    if args.json {
        print_json(&json!({
            "session": session,
            "profile": config.done.profile,
            "complexity": complexity,
            "standing": report.standing(),
            "judge": seen.judge,
            "conditions": report.conditions,
        }))?;
    } else {
        print(&printable(&done_page(&report, &session, complexity)))?;
    }
    Ok(u8::from(report.standing() != Standing::Done))
}

/// The one that is named, else the one around us, else the newest.
fn session_of(args: &DoneArgs, root: &Path, context: &Context) -> Result<String, CliError> {
    let around = || context.environment.get(SESSION_VARIABLE).filter(|id| !id.is_empty()).cloned();
    if let Some(id) = args.session.clone().or_else(around) {
        return Ok(id);
    }
    let newest = sessions(&own_sessions(root))?.into_iter().next();
    // Its name is the id, encoded; plain ids are the same, and others have to be named.
    newest.map(|session| session.name).ok_or_else(|| {
        CliError::usage("no session was recorded here")
            .hint("verdone install lets sessions be recorded; or name one with --session ID")
    })
}

impl From<DoneError> for CliError {
    fn from(error: DoneError) -> Self {
        match error {
            DoneError::Settings(error) => error.into(),
            DoneError::Project(error) => error.into(),
            DoneError::Approval(error) => error.into(),
            DoneError::Session(_) => Self::error(error.to_string()),
            DoneError::NoSecret => {
                Self::error(error.to_string()).hint("set XDG_STATE_HOME, or HOME, to a folder outside of the work tree")
            }
        }
    }
}
