//! `verdone plan show`.

use verdone_core::base::id::StoryId;
use verdone_plan::{Progress, Selection, Status, select};
use verdone_report::plural;
use verdone_runtime::process::program_exists;
use verdone_runtime::project::plan_file::resolve_checks;
use verdone_runtime::project::shown;

use super::{Context, Outcome, open};
use crate::args::PlanShowArgs;
use crate::terminal::{Style, print, print_json, printable_line};

pub(super) fn run(args: &PlanShowArgs, context: &Context) -> Outcome {
    let (project, file) = open(args.plan.as_deref(), context)?;
    let plan = file.plan();
    let next = match select(plan, &Progress::default(), None) {
        Selection::Story { index } => Some(index),
        Selection::AllDone | Selection::NothingRunnable { .. } => None,
    };
    let name = shown(file.path(), &project.root);
    if args.json {
        let next = next.map(|index| &plan.stories[index].id);
        print_json(&serde_json::json!({ "file": name, "next": next, "plan": plan }))?;
        return Ok(0);
    }
    let paint = context.terminal.out;
    let widest = plan.stories.iter().map(|story| story.id.as_str().chars().count()).max().unwrap_or(0).min(24);
    let path = std::env::var_os("PATH");
    let mut out = String::new();
    for (index, story) in plan.stories.iter().enumerate() {
        let status = match story.status {
            Status::Open => "open       ",
            Status::InProgress => "in progress",
            Status::Done => "done       ",
        };
        let (id, title) = (printable_line(story.id.as_str()), printable_line(&story.title));
        let mark = if next == Some(index) { ">" } else { " " };
        out.push_str(&format!("{mark} {status}  {id:<widest$}  {title}\n"));
        let detail = |out: &mut String, text: String| {
            out.push_str(&format!("{:16}{}\n", "", paint.style(Style::Dim, &printable_line(&text))));
        };
        if !story.depends_on.is_empty() {
            let ids: Vec<&str> = story.depends_on.iter().map(StoryId::as_str).collect();
            detail(&mut out, format!("after {}", ids.join(", ")));
        }
        if !story.scope.is_empty() {
            detail(&mut out, format!("scope {}", story.scope.join(", ")));
        }
        for check in resolve_checks(story, |program| program_exists(program, path.as_deref(), &project.root)) {
            detail(&mut out, format!("check {}", check.display()));
        }
    }
    let open = plan.open().count();
    let stories = plural(plan.stories.len(), "story", "stories");
    out.push_str(&format!("{}: {stories}, {open} open\n", printable_line(&name)));
    print(&out)?;
    Ok(0)
}
