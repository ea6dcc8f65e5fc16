//! `verdone done`: each condition of a session with what proves it, why it is missing, and what to do.

use std::io;
use std::path::Path;

use serde_json::json;
use verdone_core::agent::client_variables::SESSION_VARIABLE;
use verdone_core::base::id::StoryId;
use verdone_core::done::{DoneState, JudgeRecord, complexity, judge};
use verdone_report::{cost, done_page};
use verdone_runtime::process::signal::Signals;
use verdone_runtime::project::config_file::Flags;
use verdone_runtime::project::ralph_state;
use verdone_runtime::session::done::{ConditionRequest, DoneError, Judging, ask, collect_facts, name_commands, project};
use verdone_runtime::store::sessions::{StoredSession, own_sessions, sessions};

use super::{Context, Outcome};
use crate::args::DoneArgs;
use crate::error::CliError;
use crate::terminal::{print, print_json, printable, say};

/// How many sessions a hint lists.
const MOST_NAMED: usize = 8;

pub(super) fn run(args: &DoneArgs, context: &Context) -> Outcome {
    let found = context.project()?;
    let config = context.settings(&found, &Flags::default())?.resolved.config;
    let session = session_of(args, &found.root, context)?;
    let (root, state_home) = (&found.root, ralph_state::home());
    let story = args.story.as_deref().map(StoryId::from);
    let about = ConditionRequest {
        root,
        session: &session,
        config: &config,
        checked: None,
        about: None,
        story: story.as_ref(),
        state_home,
    };
    let judging = if args.ask { ask(&about, &Signals::install()?)? } else { Judging::NotNeeded };
    let seen = collect_facts(&about)?;
    if let Some(judge) = &seen.judge {
        say(&printable(&told(judging, judge)));
    }
    let mut report = judge(&config.done, &seen.facts);
    let is_here = context.environment.get(SESSION_VARIABLE) == Some(&session);
    name_commands(&mut report, &seen, Some(session.as_str()).filter(|_| !is_here));
    let story = seen.story.as_ref().map(|story| story.id.as_str());
    let complexity = complexity(&config.done, &seen.facts).value;
    let task = seen.story.as_ref().map_or("", |story| &story.title);
    report_state_files(project(&about, task, &report));
    if args.json {
        print_json(&json!({
            "session": session,
            "story": story,
            "profile": config.done.profile,
            "complexity": complexity,
            "standing": report.standing(),
            "judge": seen.judge,
            "conditions": report.conditions,
        }))?;
    } else {
        print(&printable(&done_page(&report, &session, story, complexity)))?;
    }
    Ok(u8::from(report.standing() != DoneState::Done))
}

/// Reports files in other loops' state folder that were not written.
pub(super) fn report_state_files(written: io::Result<Vec<String>>) {
    match written {
        Ok(theirs) if theirs.is_empty() => {}
        Ok(theirs) => say(&printable(&format!("note: not changed, because another tool owns them: {}\n", theirs.join(", ")))),
        Err(error) => say(&printable(&format!("warning: ~/.ralph/state cannot be written: {error}\n"))),
    }
}

/// The result of asking a judge; empty if no judge had to be asked.
fn told(judging: Judging, judge: &JudgeRecord) -> String {
    let spent = judge.usage.cost_usd.map(|usd| format!(" ({} in total)", cost(usd))).unwrap_or_default();
    let again = match judging {
        Judging::NotNeeded => return String::new(),
        Judging::Asked => "",
        Judging::Stands => "; it was not asked again, because it already gave a clear answer about these files and this story",
    };
    format!("note: the judge, {}, {}{spent}{again}\n", judge.agent, judge.describe())
}

/// The named session, or else the surrounding one, or else the newest.
fn session_of(args: &DoneArgs, root: &Path, context: &Context) -> Result<String, CliError> {
    let around = context.environment.get(SESSION_VARIABLE).filter(|id| !id.is_empty());
    let known = sessions(&own_sessions(root))?;
    let Some(id) = &args.session else {
        // A session's name is its encoded id. Plain ids are encoded as themselves; other ids must be passed explicitly.
        let newest = known.into_iter().next().map(|session| session.name);
        return around.cloned().or(newest).ok_or_else(|| {
            CliError::usage("no session was recorded here")
                .hint("verdone install turns on recording; or name one with --session ID")
        });
    };
    let elsewhere = || ralph_state::home().is_some_and(|home| ralph_state::knows(&home, id));
    if known.iter().any(|session| session.is_named(id)) || around == Some(id) || elsewhere() {
        return Ok(id.clone());
    }
    Err(unknown_session(id, &known))
}

/// The error for a session that was not recorded; lists those that were.
fn unknown_session(id: &str, known: &[StoredSession]) -> CliError {
    let error = CliError::usage(format!("no session {id:?} was recorded here"));
    if known.is_empty() {
        return error.hint("no sessions are recorded yet: verdone install turns on recording");
    }
    let names: Vec<&str> = known.iter().take(MOST_NAMED).map(|session| session.name.as_str()).collect();
    let more = known.len() - names.len();
    let more = if more > 0 { format!(" and {more} more (verdone show --sessions)") } else { String::new() };
    error.hint(format!("known, newest first: {}{more}", names.join(", ")))
}

impl From<DoneError> for CliError {
    fn from(error: DoneError) -> Self {
        match error {
            DoneError::Project(error) => error.into(),
            DoneError::Approval(error) => error.into(),
            DoneError::NoStory { ref known, .. } => {
                let hint = format!("its stories: {}", known.join(", "));
                Self::usage(error.to_string()).hint(hint)
            }
            DoneError::NoPlan(_) => Self::usage(error.to_string()),
            DoneError::Session(_) => Self::error(error.to_string()),
            DoneError::NoSecret => {
                Self::error(error.to_string()).hint("set XDG_STATE_HOME, or HOME, to a folder outside the work tree")
            }
        }
    }
}
