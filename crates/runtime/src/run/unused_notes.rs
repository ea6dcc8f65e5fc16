//! Notes that the user gave to an earlier run, which ended before a turn had used them.

use std::io;

use verdone_core::base::id::RunId;
use verdone_core::journal::control::Request;
use verdone_core::journal::event::{Event, Recorded};

use crate::store::inbox::Inbox;
use crate::store::{Store, StoredRun};

/// How many earlier runs are searched for one of the same plan.
const MOST_SEARCHED: usize = 20;

/// Leaves the unused notes of the last run of this plan for the new run, as if the user had sent them now. If the new run ends before
/// its first event, they are still unused there.
pub(super) fn carry_over(store: &Store, this: &RunId, plan: &str) -> io::Result<()> {
    let inbox = Inbox::new(&store.dir(this));
    let earlier = store.ids()?.into_iter().rev().filter(|id| id < this).take(MOST_SEARCHED).map(|id| store.run(id));
    let Some(last) = earlier.into_iter().find(|run| is_run_of(run, plan)) else { return Ok(()) };
    // A journal that cannot be read is reported elsewhere, and must not prevent a run.
    let Ok((mut view, _)) = last.brief_view() else { return Ok(()) };
    last.add_pending(&mut view);
    for text in view.unused_notes() {
        inbox.post(&Request::Note { text })?;
    }
    Ok(())
}

fn is_run_of(run: &StoredRun, plan: &str) -> bool {
    let same = |line: &Recorded| matches!(&line.event, Event::RunStarted { plan: of, session: None, .. } if of == plan);
    run.beginning().is_ok_and(|events| events.iter().any(same))
}
