//! What the journals of all runs know together: stories that are proven.

use std::collections::{BTreeMap, BTreeSet};

use verdone_core::event::Event;
use verdone_core::event::light::{Light, kind, light};
use verdone_core::id::StoryId;
use verdone_core::verify::Proof;

use super::{JournalError, JournalReader, Store};

/// What the journals know about a plan's stories: the best verdict of each that a run committed, and that none came to doubt since.
pub fn proven(store: &Store, plan: &str) -> Result<BTreeMap<StoryId, Proof>, JournalError> {
    let mut proven = BTreeMap::new();
    for id in store.ids().map_err(|source| JournalError::Io { path: store.runs.clone(), source })? {
        let mut of_plan = false;
        let (mut committed, mut fallen) = (BTreeMap::new(), BTreeSet::new());
        let mut reader = JournalReader::open(&store.run(id).journal())?;
        // Every journal of the project is read at every start, so nothing is parsed that is not about this.
        while let Some(line) = reader.line()? {
            let seen = match kind(line) {
                Some(b"committed") => light(line),
                Some(b"run_started" | b"regression_checked" | b"undone") | None => None,
                Some(_) => continue,
            };
            let event = match seen {
                Some(Light::Counted(recorded)) => recorded.event,
                Some(Light::Nothing) | None => match reader.event() {
                    Ok(Some(recorded)) => recorded.event,
                    Ok(None) => break,
                    // An old run with a broken line must not stop a new one; the line proves nothing.
                    Err(JournalError::Broken { .. }) => continue,
                    Err(error @ (JournalError::Io { .. } | JournalError::Newer { .. })) => return Err(error),
                },
            };
            if let Event::RunStarted { plan: of, .. } = &event {
                of_plan |= of == plan;
            } else if let Event::Committed { place, verdict, .. } = event {
                fallen.remove(&place.story);
                keep_best(&mut committed, place.story, verdict);
            } else if let Event::Undone { story: Some(story), .. } = event {
                committed.remove(&story);
            } else if let Event::RegressionChecked { doubted, .. } = event {
                fallen.extend(doubted.into_iter().map(|doubted| doubted.story));
            }
        }
        if of_plan {
            for (story, verdict) in committed {
                keep_best(&mut proven, story, verdict);
            }
            for story in fallen {
                proven.entry(story).and_modify(|verdict| *verdict = (*verdict).min(Proof::Untested));
            }
        }
    }
    Ok(proven)
}

fn keep_best(known: &mut BTreeMap<StoryId, Proof>, story: StoryId, verdict: Proof) {
    let best = known.entry(story).or_insert(verdict);
    *best = (*best).max(verdict);
}
