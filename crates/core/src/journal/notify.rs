//! Notifications: which events of a journal deserve one, what it says, and where it goes. The runtime sends them.

mod announcer;
mod message;
mod outage;
mod settings;
mod webhook_url;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::finish::Finish;
use crate::journal::control::Request;
use crate::journal::event::{Event, Rejection, WaitCause};

pub use announcer::Announcer;
pub use message::Notification;
pub use settings::{DesktopChannel, NotifySettings, WebhookSettings};
pub use webhook_url::{UrlFault, WebhookUrl};

/// What a notification is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NotifyKind {
    /// A run or a session loop ended, for any reason, unless you stopped it yourself.
    Finish,
    /// A story needs a review.
    NeedsReview,
    /// A run or a session loop ended because it cannot continue without you.
    Blocked,
    /// A usage limit was reached, and the run waits or ends.
    UsageLimit,
    /// The agent's service has been failing for minutes, and the run keeps trying.
    Outage,
    /// A story that was done is broken.
    Regression,
    /// The agent has a question for you.
    Question,
}

impl NotifyKind {
    pub const ALL: [Self; 7] =
        [Self::Finish, Self::NeedsReview, Self::Blocked, Self::UsageLimit, Self::Outage, Self::Regression, Self::Question];

    /// The name in the config, in JSON and in variables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Finish => "finish",
            Self::NeedsReview => "needs-review",
            Self::Blocked => "blocked",
            Self::UsageLimit => "usage-limit",
            Self::Outage => "outage",
            Self::Regression => "regression",
            Self::Question => "question",
        }
    }

    /// What happened, if the event has no more to say.
    fn summary(self) -> &'static str {
        match self {
            Self::Finish => "a run ended",
            Self::NeedsReview => "a story needs a review",
            Self::Blocked => "a run cannot continue without you",
            Self::UsageLimit => "a usage limit was reached",
            Self::Outage => "the agent's service is failing",
            Self::Regression => "a story that was done is broken",
            Self::Question => "the agent has a question for you",
        }
    }
}

/// The kind of notification that an event deserves, if any. An outage deserves only one: the [`Announcer`] counts.
pub fn kind_of(event: &Event) -> Option<NotifyKind> {
    match event {
        Event::RunStopped { finish, .. } => kind_of_end(*finish),
        Event::ReviewNeeded { .. } => Some(NotifyKind::NeedsReview),
        Event::Regressed { .. } => Some(NotifyKind::Regression),
        Event::WaitStarted { why: WaitCause::UsageLimit, .. }
        | Event::AttemptRejected { rejection: Rejection::UsageLimit, .. } => Some(NotifyKind::UsageLimit),
        Event::WaitStarted { why: WaitCause::ServiceError, .. } => Some(NotifyKind::Outage),
        Event::Asked { request: Request::Question { carried: false, .. } } => Some(NotifyKind::Question),
        Event::RunStarted { .. }
        | Event::BaselineChecked { .. }
        | Event::StorySelected { .. }
        | Event::AttemptStarted { .. }
        | Event::RedChecked { .. }
        | Event::TurnStarted { .. }
        | Event::TurnEnded { .. }
        | Event::WaitEnded { .. }
        | Event::Verified(_)
        | Event::CommitStarted { .. }
        | Event::Committed { .. }
        | Event::Marked { .. }
        | Event::CommitRefused { .. }
        | Event::AttemptRejected { .. }
        | Event::AttemptKept { .. }
        | Event::AttemptDropped { .. }
        | Event::Reapplied { .. }
        | Event::LandingStarted { .. }
        | Event::Landed { .. }
        | Event::LandingRefused { .. }
        | Event::StoryFailed { .. }
        | Event::Accepted { .. }
        | Event::Refused { .. }
        | Event::ScriptRan { .. }
        | Event::GuardFailed { .. }
        | Event::RegressionStarted { .. }
        | Event::RegressionChecked { .. }
        | Event::Reopened { .. }
        | Event::IterationSkipped { .. }
        | Event::StopRequested { .. }
        | Event::Asked { .. }
        | Event::RunStopping { .. }
        | Event::Undone { .. }
        | Event::Retired => None,
    }
}

/// Whoever stopped a run knows about it.
fn kind_of_end(finish: Finish) -> Option<NotifyKind> {
    match finish {
        Finish::Manual => None,
        Finish::NoChanges | Finish::HookAbort | Finish::Stalled | Finish::Blocked => Some(NotifyKind::Blocked),
        Finish::Complete | Finish::MaxIterations | Finish::Budget | Finish::Timeout | Finish::Error => Some(NotifyKind::Finish),
    }
}

#[cfg(test)]
mod tests;
