//! What a loop's worker remembers between verifications: check results by tree, and stories added later.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use verdone_core::base::id::StoryId;
use verdone_core::engine::session::Frozen;

use super::StopError;
use super::sealed_copy::{Durable, MEMORY, SealedCopy};
use crate::verify::Results;

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Memory {
    /// Stories that were not open when the loop started.
    pub(super) later: BTreeMap<StoryId, Frozen>,
    pub(super) results: Results,
    /// Checks so far, used to number stored outputs.
    pub(super) checks_run: u32,
}

impl Memory {
    pub(super) fn read(sealed_copy: &SealedCopy, name: &str) -> Result<Option<Self>, StopError> {
        sealed_copy.get(name, MEMORY)
    }

    pub(super) fn keep(&self, sealed_copy: &SealedCopy, name: &str) -> Result<(), StopError> {
        sealed_copy.put(name, MEMORY, self, Durable::No)
    }

    pub(super) fn unaccepted(&self) -> Vec<StoryId> {
        self.later.iter().filter(|(_, story)| story.unaccepted).map(|(id, _)| id.clone()).collect()
    }
}
