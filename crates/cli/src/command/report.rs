//! `verdone report`: a Markdown report.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use verdone_core::base::id::StoryId;
use verdone_core::journal::view::RunView;
use verdone_core::verify::StoryResult;
use verdone_plan::{Plan, Status};
use verdone_report::{Extra, ListedStory, markdown};
use verdone_runtime::git::Git;
use verdone_runtime::project::Project;
use verdone_runtime::project::plan_file::{self, PlanFile};
use verdone_runtime::run::proven_stories;
use verdone_runtime::store::{Store, proven};

use super::chosen_run::{chosen_with, view};
use super::{Context, Outcome};
use crate::args::ReportArgs;
use crate::error::CliError;
use crate::terminal::print;

pub(super) fn run(args: &ReportArgs, context: &Context) -> Outcome {
    let (project, stored) = chosen_with(&args.run, context, |view| !view.touched.is_empty())?;
    let view = view(&stored)?;
    let (claimed, open) = stories(context, &project, &view)?;
    let run_dir = Some(stored.dir.strip_prefix(&project.root).unwrap_or(&stored.dir).display().to_string());
    print(&markdown(&view, &Extra { claimed, open, run_dir, zone: TimeZone::system() }))?;
    Ok(0)
}

/// What the plan knows beyond the journal: stories ticked without evidence, and stories that are still open.
fn stories(context: &Context, project: &Project, view: &RunView) -> Result<(Vec<ListedStory>, Vec<ListedStory>), CliError> {
    let settings = context.settings(project, &verdone_runtime::project::config_file::Flags::default())?;
    let path = project.root.join(&view.plan);
    let request = context.plan_request(project, &settings, Some(&path.to_string_lossy()));
    // The plan may be gone or broken by now; what the journal knows is reported anyway.
    let Ok(plan) = plan_file::find(&request).map_err(|_| ()).and_then(|at| PlanFile::open(at).map_err(|_| ())) else {
        return Ok((Vec::new(), Vec::new()));
    };
    let proven = proven_of(project, view, plan.plan())?;
    let list = |wanted: &dyn Fn(&verdone_plan::Story) -> bool| {
        let stories = plan.plan().stories.iter().filter(|story| wanted(story));
        stories.map(|story| ListedStory { id: story.id.clone(), title: story.title.clone() }).collect()
    };
    let claimed = list(&|story| story.status == Status::Done && !proven.contains_key(&story.id));
    let open = list(&|story| story.status != Status::Done);
    Ok((claimed, open))
}

/// The stories with evidence. Without a commit there are no notes.
fn proven_of(project: &Project, view: &RunView, plan: &Plan) -> Result<BTreeMap<StoryId, StoryResult>, CliError> {
    let store = Store::new(&project.root);
    let git = Git::open(&project.root)?;
    match git.status()?.head {
        Some(head) => Ok(proven_stories(&git, &store, (&view.plan, plan), &head)?),
        None => Ok(proven(&store, &view.plan)?),
    }
}
