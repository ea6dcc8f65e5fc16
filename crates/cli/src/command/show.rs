//! `verdone show STORY`.

use verdone_core::id::StoryId;

use super::latest::{latest, view};
use super::{Context, Outcome};
use crate::args::ShowArgs;
use crate::error::{CliError, Kind};
use crate::terminal::{print, print_json, printable_line};

pub(super) fn run(args: &ShowArgs, context: &Context) -> Outcome {
    let (project, stored) = latest(context)?;
    let view = view(&stored)?;
    let id = StoryId::from(args.story.as_str());
    if args.json {
        let Some(story) = view.story(&id) else { return Err(unknown(args, &view)) };
        print_json(&serde_json::json!(story))?;
        return Ok(0);
    }
    match verdone_report::story(&view, &id, &context.terminal.report_style()) {
        Some(text) => {
            let dir = stored.dir.strip_prefix(&project.root).unwrap_or(&stored.dir).display();
            print(&format!("{text}\n  Prompts and outputs are in {}\n", printable_line(&dir.to_string())))?;
        }
        None => return Err(unknown(args, &view)),
    }
    Ok(0)
}

fn unknown(args: &ShowArgs, view: &verdone_core::view::RunView) -> CliError {
    let known: Vec<&str> = view.touched.iter().map(|story| story.id.as_str()).take(20).collect();
    let error = CliError::new(Kind::Usage, format!("the last run did not work on a story {:?}", args.story));
    if known.is_empty() { error } else { error.hint(format!("it worked on: {}", known.join(", "))) }
}
