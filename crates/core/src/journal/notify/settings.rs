//! `[notify]` of the config.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{NotifyKind, WebhookUrl};
use crate::base::span::Span;
use crate::check::CommandSpec;

/// Notifications about runs and session loops. Nothing is sent unless a channel is set. They are sent beside the run and never delay it;
/// secrets are redacted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NotifySettings {
    /// What to notify about.
    pub on: Vec<NotifyKind>,
    /// Notifications on this machine.
    pub desktop: DesktopChannel,
    /// A command to start: a string for `sh -c`, or a list of arguments. It gets the text as its last argument (`$1` for `sh -c`), the facts in
    /// `VERDONE_NOTIFY_…` variables, and all of it as JSON on standard input. `["espeak"]` reads notifications aloud.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandSpec>,
    /// How long one channel may take for a notification, with all retries.
    pub timeout: Span,
    pub webhook: WebhookSettings,
}

impl Default for NotifySettings {
    fn default() -> Self {
        Self {
            on: NotifyKind::ALL.to_vec(),
            desktop: DesktopChannel::default(),
            command: None,
            timeout: Span::from_secs(10),
            webhook: WebhookSettings::default(),
        }
    }
}

impl NotifySettings {
    /// Every end of a run is one, also if it is blocked.
    pub fn wants(&self, kind: NotifyKind) -> bool {
        self.on.contains(&kind) || (kind == NotifyKind::Blocked && self.on.contains(&NotifyKind::Finish))
    }

    /// Whether a notification would go anywhere.
    pub fn has_channel(&self) -> bool {
        self.desktop != DesktopChannel::Off || self.command.is_some() || self.webhook.is_set()
    }
}

/// How to notify on this machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DesktopChannel {
    /// Not at all.
    #[default]
    Off,
    /// `notify-send` if it is installed and there is a desktop session, otherwise the run's terminal.
    Auto,
    /// An escape sequence (OSC 9 or 777) and the bell of the run's terminal. Session loops have no terminal.
    Terminal,
    /// `notify-send`.
    NotifySend,
}

/// A JSON object by HTTP POST, sent with `curl` from outside of the seal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WebhookSettings {
    /// The address. It often contains a secret: prefer `url_variable` in a config that is committed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<WebhookUrl>,
    /// The environment variable that contains the address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url_variable: Option<String>,
    /// How often to try again if the server cannot be reached or is not ready (408, 429, 5xx), within `notify.timeout`.
    pub retries: u32,
}

impl Default for WebhookSettings {
    fn default() -> Self {
        Self { url: None, url_variable: None, retries: 2 }
    }
}

impl WebhookSettings {
    pub fn is_set(&self) -> bool {
        self.url.is_some() || self.url_variable.is_some()
    }
}
