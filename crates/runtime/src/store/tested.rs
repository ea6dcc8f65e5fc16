//! Which tests proved stories that have no check of their own, as the journals of all runs say.

use std::collections::BTreeMap;

use verdone_core::event::Event;
use verdone_core::event::light::kind;
use verdone_core::id::StoryId;
use verdone_core::proof::AgentTest;

use super::{JournalError, JournalReader, Store};

/// What a verification with tests of the attempt has in its line.
const AGENT_TEST: &[u8] = b"\"agent_test\":{";

/// The tests that proved stories of a plan that have no check of their own, as the journals name them: the last ones of each.
pub fn tested(store: &Store, plan: &str) -> Result<BTreeMap<StoryId, AgentTest>, JournalError> {
    let mut tested = BTreeMap::new();
    for id in store.ids().map_err(|source| JournalError::Io { path: store.path().to_owned(), source })? {
        let mut of_plan = false;
        let mut seen = BTreeMap::new();
        let mut reader = JournalReader::open(&store.run(id).journal())?;
        while let Some(line) = reader.line()? {
            let wanted = match kind(line) {
                Some(b"verified") => line.windows(AGENT_TEST.len()).any(|part| part == AGENT_TEST),
                Some(b"committed" | b"run_started") | None => true,
                Some(_) => false,
            };
            if !wanted {
                continue;
            }
            let event = match reader.event() {
                Ok(Some(recorded)) => recorded.event,
                Ok(None) => break,
                Err(JournalError::Broken { .. }) => continue,
                Err(error @ (JournalError::Io { .. } | JournalError::Newer { .. })) => return Err(error),
            };
            if let Event::RunStarted { plan: of, .. } = &event {
                of_plan |= of == plan;
            } else if let Event::Verified { place, agent_test: Some(tests), .. } = event {
                seen.insert(place.story, Some(*tests).filter(|tests| of_plan && tests.proves()));
            } else if let Event::Committed { place, .. } = event
                && let Some(Some(tests)) = seen.remove(&place.story)
            {
                tested.insert(place.story, tests);
            }
        }
    }
    Ok(tested)
}
