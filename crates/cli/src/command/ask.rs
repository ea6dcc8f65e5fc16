//! Requests to a run in progress: `pause`, `resume`, `skip`, `retry`, `note`.

use verdone_core::base::id::StoryId;
use verdone_core::base::sanitise::sanitise_line;
use verdone_core::journal::control::Request;
use verdone_runtime::process::RUN_VARIABLE;
use verdone_runtime::project::plan_file::{PlanFile, PlanLocation};
use verdone_runtime::store::StoredRun;
use verdone_runtime::store::inbox::Inbox;

use super::chosen_run::{brief_view, chosen, is_going};
use super::{Context, Outcome};
use crate::args::{NoteArgs, PauseArgs, ResumeArgs, RetryArgs, RunArg, SkipArgs};
use crate::error::CliError;
use crate::terminal::{print, printable};

/// Longer notes belong in the plan or the guardrails.
pub(super) const LONGEST_NOTE: usize = 16 * 1024;

pub(super) fn pause(args: &PauseArgs, context: &Context) -> Outcome {
    let PauseArgs {} = args;
    post(&Request::Pause, "will pause after the current turn. To continue: verdone resume", context)
}

pub(super) fn resume(args: &ResumeArgs, context: &Context) -> Outcome {
    let ResumeArgs {} = args;
    let stored = under_way(context)?;
    let mut view = brief_view(&stored)?;
    stored.add_pending_requests(&mut view);
    if !(view.paused || view.pending.contains(&Request::Pause)) {
        return Err(CliError::usage(format!("run {} is not paused", stored.id)));
    }
    post(&Request::Resume, "continues.", context)
}

pub(super) fn skip(args: &SkipArgs, context: &Context) -> Outcome {
    let story = known(&args.story, context)?;
    let answer = if args.now {
        format!("stops working on {story} now and will not try it again.")
    } else {
        format!("will not try {story} again.")
    };
    post(&Request::Skip { story, now: args.now }, &answer, context)
}

pub(super) fn retry(args: &RetryArgs, context: &Context) -> Outcome {
    let story = known(&args.story, context)?;
    let answer = format!("will try {story} again.");
    post(&Request::Retry { story }, &answer, context)
}

pub(super) fn note(args: &NoteArgs, context: &Context) -> Outcome {
    let text = sanitise_line(&args.text).trim().to_owned();
    if text.is_empty() {
        return Err(CliError::usage("the note is empty"));
    }
    if text.len() > LONGEST_NOTE {
        return Err(CliError::usage(format!("the note is too long: at most {LONGEST_NOTE} bytes")));
    }
    let answer = "will use the note in its next prompt. If it ends first, the next run of this plan will.";
    post(&Request::Note { text }, answer, context)
}

/// Leaves the request for the run. The answer continues a sentence that names it.
pub(super) fn post(request: &Request, answer: &str, context: &Context) -> Outcome {
    let stored = under_way(context)?;
    let posted = Inbox::new(&stored.dir).post(request);
    posted.map_err(|error| CliError::error(format!("cannot reach the run: {error}")))?;
    print(&printable(&format!("Run {} {answer}\n", stored.id)))?;
    Ok(0)
}

/// Looks the story up in the plan of the current run, so that a typo is an error and not a silent success.
fn known(id: &str, context: &Context) -> Result<StoryId, CliError> {
    let stored = under_way(context)?;
    let plan = context.project()?.root.join(brief_view(&stored)?.plan);
    let plan = PlanFile::open(PlanLocation::new(plan))?;
    if let Some(story) = plan.plan().story_meant(&StoryId::from(id)) {
        return Ok(story.id.clone());
    }
    let ids: Vec<&str> = plan.plan().open().map(|story| story.id.as_str()).take(20).collect();
    Err(CliError::usage(format!("the plan has no story {id:?}")).hint(format!("open stories: {}", ids.join(", "))))
}

/// The run in progress.
pub(super) fn under_way(context: &Context) -> Result<StoredRun, CliError> {
    if context.environment.contains_key(RUN_VARIABLE) {
        let error = CliError::usage("this is inside the run, which only its user may control");
        return Err(error.hint("use another terminal"));
    }
    let (project, stored) = chosen(&RunArg::default(), context)?;
    if is_going(&project, &stored) {
        return Ok(stored);
    }
    Err(CliError::usage("no run is active here").hint("verdone status shows how the last one ended"))
}
