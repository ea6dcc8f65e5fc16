//! Requests that a user sends to a running run from another terminal.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::id::StoryId;

/// One request. None of them can make a story done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// End the run after the current iteration. (Ending it at once is done with a signal.)
    StopAfterStory,
    /// Start nothing new until `Resume`. The current turn runs to its end.
    Pause,
    Resume,
    /// Make no further attempt at this story in this run.
    Skip {
        story: StoryId,
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
