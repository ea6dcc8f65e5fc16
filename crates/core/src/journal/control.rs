//! Requests that a user sends to a running run from another terminal.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::id::StoryId;

/// One request. None of them can make a story done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// End the run at once. Sent together with a signal, which is what the journal records.
    Stop,
    /// End the run after the current iteration.
    StopAfterStory,
    /// Start nothing new until `Resume`. The current turn runs to its end.
    Pause,
    Resume,
    /// Make no further attempt at this story in this run.
    Skip {
        story: StoryId,
        /// End the turn that works on it at once.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        now: bool,
    },
    /// Allow a fresh set of attempts for a story that failed or was skipped.
    Retry {
        story: StoryId,
    },
    /// Add text to the next prompt.
    Note {
        text: String,
    },
}
