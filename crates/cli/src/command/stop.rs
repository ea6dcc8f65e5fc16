//! `verdone stop`: sends the run a signal, like Ctrl-C in its terminal, and a request that every surface shows; with
//! --after-story, the request alone.

use rustix::process::{Pid, Signal, kill_process};
use verdone_core::journal::control::Request;
use verdone_runtime::git::Git;
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
    let pid = holder.and_then(|holder| Pid::from_raw(i32::try_from(holder.pid).ok()?));
    let Some(pid) = pid else { return Err(CliError::usage("the run has already ended")) };
    // The request makes the stop visible before the run has noticed the signal.
    let posted = Inbox::new(&stored.dir).post(&Request::Stop);
    posted.map_err(|error| CliError::error(format!("cannot reach the run: {error}")))?;
    kill_process(pid, Signal::INT).map_err(|error| CliError::error(format!("cannot reach the run: {error}")))?;
    print(&printable(&format!("Run {} is stopping: it keeps the attempt, cleans up and ends.\n", stored.id)))?;
    Ok(0)
}
