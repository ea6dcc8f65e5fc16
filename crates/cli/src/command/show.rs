//! `verdone show`: the stories of a run, one of them, or what hooks recorded in sessions.

mod sessions;

use jiff::tz::TimeZone;
use verdone_core::base::id::StoryId;
use verdone_core::journal::view::RunView;
use verdone_report::{SessionOf, session_lines};
use verdone_runtime::store::StoredRun;

use super::chosen_run::{chosen_with, view};
use super::{Context, Outcome};
use crate::args::ShowArgs;
use crate::error::{CliError, Kind};
use crate::terminal::{print, print_json, printable_line};

pub(super) use sessions::own_faults;

pub(super) fn run(args: &ShowArgs, context: &Context) -> Outcome {
    match (&args.story, &args.session) {
        (_, Some(id)) => sessions::one(id, args.json, context),
        (Some(id), None) => story(id, args, context),
        (None, None) if args.sessions => sessions::all(args.json, context),
        (None, None) => stories(args, context),
    }
}

/// Every story of a run, with its result and the reasons.
fn stories(args: &ShowArgs, context: &Context) -> Outcome {
    let (_, stored) = chosen_with(&args.run, context, |view| !view.touched.is_empty())?;
    let view = view(&stored)?;
    if args.json {
        print_json(&serde_json::json!({ "run": view.run, "stories": view.touched }))?;
        return Ok(0);
    }
    print(&verdone_report::stories(&view, &context.terminal.report_style()))?;
    Ok(0)
}

fn story(id: &str, args: &ShowArgs, context: &Context) -> Outcome {
    let asked = StoryId::from(id);
    let meant = |view: &RunView| asked.meant_among(view.touched.iter().map(|story| &story.id)).cloned();
    let (project, stored) = chosen_with(&args.run, context, |view| meant(view).is_some())?;
    let view = view(&stored)?;
    let story = meant(&view).and_then(|id| view.story(&id)).ok_or_else(|| unknown(id, &view))?;
    let sessions = of_story(&stored, story)?;
    if args.json {
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

fn unknown(story: &str, view: &RunView) -> CliError {
    let known: Vec<&str> = view.touched.iter().map(|story| story.id.as_str()).take(20).collect();
    let error = CliError::new(Kind::Usage, format!("no run here worked on a story {story:?}"));
    if known.is_empty() { error } else { error.hint(format!("the last run worked on: {}", known.join(", "))) }
}
