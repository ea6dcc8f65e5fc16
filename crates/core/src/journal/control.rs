//! Requests to a run while it works: from its user in another terminal, and from its agent through the tools.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::id::StoryId;
use crate::journal::agent_tools::ClaimStatus;

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
    /// The agent's claim about its story. It proves nothing.
    Claim {
        story: StoryId,
        status: ClaimStatus,
        summary: String,
        tests_passed: bool,
    },
    /// The agent's question for the user, without which it cannot do the story.
    Question {
        story: StoryId,
        reason: String,
        question: String,
        /// It comes from an earlier run, whose user has been notified.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        carried: bool,
    },
    /// The user's answer to it.
    Answer {
        story: StoryId,
        text: String,
    },
    /// The agent's request to prepare a story for a review once it is done.
    Merge {
        story: StoryId,
        summary: String,
    },
}
