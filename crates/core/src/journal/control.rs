//! What a user asks of a run that is under way, from another terminal.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::id::StoryId;

/// One request. None of them can make a story done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// End the run when the iteration in work is through. (To end it at once is a signal's work.)
    StopAfterStory,
    /// Begin nothing new until `Resume`; the turn in flight goes on to its end.
    Pause,
    Resume,
    /// No further attempt at this story in this run.
    Skip {
        story: StoryId,
    },
    /// A fresh set of attempts for a story that failed or was skipped.
    Retry {
        story: StoryId,
    },
    /// Text for the next prompt.
    Note {
        text: String,
    },
}
