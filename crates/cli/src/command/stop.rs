//! `verdone stop`: sends the run a signal, like Ctrl-C in its terminal, and a request that every surface shows; with
//! --after-story, the request alone.

use verdone_core::journal::control::Request;
use verdone_runtime::git::Git;
use verdone_runtime::process::interrupt_process;
use verdone_runtime::store::RunLock;
use verdone_runtime::store::inbox::Inbox;

use super::ask::{post, under_way};
use super::{Context, Outcome};
use crate::args::StopArgs;
use crate::error::CliError;
use crate::terminal::{print, printable};

pub(super) fn run(args: &StopArgs, context: &Context) -> Outcome {
    if args.after_story {
        return post(&Request::StopAfterStory, "will end after the current iteration.", context);
    }
    let stored = under_way(context)?;
    let git = Git::open(&context.project()?.root)?;
    let holder = RunLock::holder(git.git_dir()).filter(|holder| holder.run.as_ref() == Some(&stored.id));
    let Some(holder) = holder else { return Err(CliError::usage("the run has already ended")) };
    // The signal comes first: if the run found the request before it, the signal would be the second one and kill at once.
    interrupt_process(holder.pid).map_err(|error| CliError::error(format!("cannot reach the run: {error}")))?;
    // The run stops in any case. The request only makes the stop visible before the run has recorded it.
    let _ = Inbox::new(&stored.dir).post(&Request::Stop);
    print(&printable(&format!("Run {} is stopping: it keeps the attempt, cleans up and ends.\n", stored.id)))?;
    Ok(0)
}
