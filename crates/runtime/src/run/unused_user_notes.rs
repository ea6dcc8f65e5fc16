//! Notes that the user gave to an earlier run, which ended before a turn had used them, and questions of its agents with their answers.

use std::io;

use verdone_core::base::id::RunId;
use verdone_core::journal::agent_tools::OpenQuestion;
use verdone_core::journal::control::Request;

use crate::store::Store;
use crate::store::inbox::Inbox;

/// Leaves the unused notes and the questions of the last run of this plan for the new run, as if they had been sent now. If the new run
/// ends before its first event, they are still unused there.
pub(super) fn carry_over(store: &Store, this: &RunId, plan: &str) -> io::Result<()> {
    let inbox = Inbox::new(&store.dir(this));
    let earlier = store.ids()?.into_iter().rev().filter(|id| id < this).map(|id| store.run(id));
    let Some(last) = earlier.into_iter().find(|run| run.is_run_of(plan)) else { return Ok(()) };
    // A journal that cannot be read is reported elsewhere, and must not prevent a run.
    let Ok((mut view, _)) = last.brief_view() else { return Ok(()) };
    last.add_pending_requests(&mut view);
    for text in view.unused_notes() {
        inbox.post(&Request::Note { text })?;
    }
    for OpenQuestion { story, reason, question, answer } in view.questions {
        inbox.post(&Request::Question { story: story.clone(), reason, question, carried: true })?;
        if let Some(text) = answer {
            inbox.post(&Request::Answer { story, text })?;
        }
    }
    Ok(())
}
