//! Requests to a run that is under way: `pause`, `resume`, `skip`, `retry`, `note`.

use verdone_core::control::Request;
use verdone_core::id::StoryId;
use verdone_runtime::inbox::Inbox;
use verdone_runtime::store::StoredRun;

use super::latest::{is_going, latest};
use super::{Context, Outcome};
use crate::args::{NoteArgs, PauseArgs, ResumeArgs, RetryArgs, SkipArgs};
use crate::error::CliError;
use crate::terminal::{print, printable};

pub(super) fn pause(args: &PauseArgs, context: &Context) -> Outcome {
    let PauseArgs {} = args;
    post(&Request::Pause, "The run pauses when the turn in flight is through. Go on with: verdone resume", context)
}

pub(super) fn resume(args: &ResumeArgs, context: &Context) -> Outcome {
    let ResumeArgs {} = args;
    post(&Request::Resume, "The run goes on.", context)
}

pub(super) fn skip(args: &SkipArgs, context: &Context) -> Outcome {
    let story = StoryId::from(args.story.as_str());
    post(&Request::Skip { story }, &format!("No further attempt at {} in this run.", args.story), context)
}

pub(super) fn retry(args: &RetryArgs, context: &Context) -> Outcome {
    let story = StoryId::from(args.story.as_str());
    post(&Request::Retry { story }, &format!("{} gets new attempts in this run.", args.story), context)
}

pub(super) fn note(args: &NoteArgs, context: &Context) -> Outcome {
    if args.text.trim().is_empty() {
        return Err(CliError::usage("the note is empty"));
    }
    post(&Request::Note { text: args.text.clone() }, "The next prompt will say so.", context)
}

pub(super) fn post(request: &Request, answer: &str, context: &Context) -> Outcome {
    let stored = under_way(context)?;
    let posted = Inbox::of(&stored.dir).post(request);
    posted.map_err(|error| CliError::error(format!("the run cannot be reached: {error}")))?;
    print(&printable(&format!("{answer}\n")))?;
    Ok(0)
}

/// The run that somebody works on now.
pub(super) fn under_way(context: &Context) -> Result<StoredRun, CliError> {
    let (project, stored) = latest(context)?;
    if is_going(&project, &stored) {
        return Ok(stored);
    }
    Err(CliError::usage("no run is under way here").hint("verdone status says how the last one ended"))
}
