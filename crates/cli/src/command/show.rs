//! `verdone show`: a story of the last run, or what hooks recorded in sessions.

mod sessions;

use jiff::tz::TimeZone;
use verdone_core::base::id::StoryId;
use verdone_report::{SessionOf, session_lines};
use verdone_runtime::store::StoredRun;

use super::latest::{latest, view};
use super::{Context, Outcome};
use crate::args::ShowArgs;
use crate::error::{CliError, Kind};
use crate::terminal::{print, print_json, printable_line};

pub(super) use sessions::own_faults;

pub(super) fn run(args: &ShowArgs, context: &Context) -> Outcome {
    match (&args.story, &args.session) {
        (_, Some(id)) => sessions::one(id, args.json, context),
        (Some(id), None) => story(id, args.json, context),
        (None, None) => sessions::all(args.json, context),
    }
}

fn story(id: &str, json: bool, context: &Context) -> Outcome {
    let (project, stored) = latest(context)?;
    let view = view(&stored)?;
    let meant = StoryId::from(id).meant_among(view.touched.iter().map(|story| &story.id)).cloned();
    let story = meant.and_then(|id| view.story(&id)).ok_or_else(|| unknown(id, &view))?;
    let sessions = of_story(&stored, story)?;
    if json {
        let mut value = serde_json::json!(story);
        value["sessions"] = serde_json::json!(sessions);
        print_json(&value)?;
        return Ok(0);
    }
    let style = context.terminal.report_style();
    let mut text = verdone_report::story(&view, &story.id, &style).ok_or_else(|| unknown(id, &view))?;
    if !sessions.is_empty() {
        text.push_str("\nAgent sessions in that time\n");
        text.extend(sessions.iter().map(|found| session_lines(found, &TimeZone::system(), &style)));
    }
    let dir = stored.dir.strip_prefix(&project.root).unwrap_or(&stored.dir).display();
    print(&format!("{text}\n  Prompts and outputs are in {}\n", printable_line(&dir.to_string())))?;
    Ok(0)
}

/// Hooks do not know about stories, so this selects the sessions recorded while the story was being worked on.
fn of_story(stored: &StoredRun, story: &verdone_core::journal::view::StoryView) -> Result<Vec<SessionOf>, CliError> {
    let in_work = |found: &SessionOf| matches!((found.tally.first, found.tally.last), (Some(first), Some(last)) if story.was_in_work(first, last));
    Ok(sessions::of_run(stored)?.into_iter().filter(in_work).collect())
}

fn unknown(story: &str, view: &verdone_core::journal::view::RunView) -> CliError {
    let known: Vec<&str> = view.touched.iter().map(|story| story.id.as_str()).take(20).collect();
    let error = CliError::new(Kind::Usage, format!("the last run did not work on a story {story:?}"));
    if known.is_empty() { error } else { error.hint(format!("it worked on: {}", known.join(", "))) }
}
