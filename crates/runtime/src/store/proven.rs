//! What the journals of all runs know together: the results of stories.

use std::collections::BTreeMap;

use verdone_core::base::id::StoryId;
use verdone_core::journal::event::Event;
use verdone_core::journal::event::partial::{PartialEvent, kind, parse_partial};
use verdone_core::verify::{Outcome, StoryResult};

use super::{JournalError, JournalReader, Store};

/// The best result of each of a plan's stories in any run.
pub fn proven(store: &Store, plan: &str) -> Result<BTreeMap<StoryId, StoryResult>, JournalError> {
    let mut proven = BTreeMap::new();
    for id in store.ids().map_err(|source| JournalError::Io { path: store.runs.clone(), source })? {
        let mut of_plan = false;
        let mut found = BTreeMap::new();
        let mut reader = JournalReader::open(&store.run(id).journal())?;
        // Every start reads all journals of the project, so only relevant lines are parsed.
        while let Some(line) = reader.line()? {
            let seen = match kind(line) {
                Some(b"committed") => parse_partial(line),
                Some(b"run_started" | b"marked" | b"review_needed" | b"accepted" | b"refused" | b"undone") | None => None,
                Some(_) => continue,
            };
            let event = match seen {
                Some(PartialEvent::Counted(recorded)) => recorded.event,
                Some(PartialEvent::Nothing) | None => match reader.event() {
                    Ok(Some(recorded)) => recorded.event,
                    Ok(None) => break,
                    // A broken line in an old run's journal must not block a new run; the line proves nothing.
                    Err(JournalError::Broken { .. }) => continue,
                    Err(error @ (JournalError::Io { .. } | JournalError::Newer { .. })) => return Err(error),
                },
            };
            if let Event::RunStarted { plan: of, .. } = &event {
                of_plan |= of == plan;
            } else if let Event::Committed { place, proof, outcome, .. } = event {
                keep_best(&mut found, place.story, StoryResult { outcome, proof: Some(proof) });
            } else if let Event::Marked { place, proof, .. } = event {
                keep_best(&mut found, place.story, StoryResult::done(proof));
            } else if let Event::ReviewNeeded { place, proof, .. } = event {
                keep_best(&mut found, place.story, StoryResult { outcome: Outcome::NeedsReview, proof: Some(proof) });
            } else if let Event::Accepted { story, proof, .. } = event {
                keep_best(&mut found, story, StoryResult { outcome: Outcome::Accepted, proof: Some(proof) });
            } else if let Event::Undone { story: Some(story), .. } | Event::Refused { story, .. } = event {
                found.remove(&story);
            }
        }
        if of_plan {
            for (story, result) in found {
                keep_best(&mut proven, story, result);
            }
        }
    }
    Ok(proven)
}

fn keep_best(known: &mut BTreeMap<StoryId, StoryResult>, story: StoryId, result: StoryResult) {
    let worth = |result: &StoryResult| (result.is_taken(), result.proof, result.outcome);
    let best = known.entry(story).or_insert(result);
    if worth(&result) > worth(best) {
        *best = result;
    }
}
