//! `verdone guardrails`: lessons and their history.

use jiff::tz::TimeZone;
use verdone_report::Guardrails;
use verdone_runtime::project::lessons::{FILE, LessonStore};

use super::{Context, Outcome};
use crate::args::GuardrailsArgs;
use crate::terminal::{print, print_json, say};

pub(super) fn run(args: &GuardrailsArgs, context: &Context) -> Outcome {
    let project = context.project()?;
    let page = Guardrails::new(FILE, &LessonStore::new(&project.root, &project.git_top).read());
    if args.json {
        print_json(&serde_json::json!(page))?;
        return Ok(0);
    }
    if page.lessons.is_empty() && page.dropped.is_empty() && page.user_lines == 0 {
        say("no lessons yet: failed attempts leave them in .verdone/guardrails.md\n");
        return Ok(0);
    }
    print(&verdone_report::guardrails(&page, &TimeZone::system(), &context.terminal.report_style()))?;
    Ok(0)
}
