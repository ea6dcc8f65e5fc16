//! Where notifications go on this machine: the settings, with variables read and programs found.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use verdone_core::base::redact::Redactor;
use verdone_core::check::CommandSpec;
use verdone_core::config::Config;
use verdone_core::journal::notify::{DesktopChannel, NotifySettings, WebhookUrl};

use crate::base::finding::Finding;
use crate::process::{missing_program, program_exists, redactor_from_environment};

pub(super) const CURL: &str = "curl";
pub(super) const NOTIFY_SEND: &str = "notify-send";

/// The name under which the redactor knows the address of the webhook.
const SECRET: &str = "NOTIFY_WEBHOOK_SECRET";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Channels {
    /// The run's terminal; the command line writes to it.
    pub terminal: bool,
    pub notify_send: bool,
    pub command: Option<CommandSpec>,
    pub webhook: Option<Webhook>,
    timeout_ms: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Webhook {
    pub url: WebhookUrl,
    pub retries: u32,
}

impl Channels {
    pub fn new(settings: &NotifySettings) -> Self {
        let has_desktop = || has_desktop_session() && is_installed(NOTIFY_SEND);
        let notify_send = match settings.desktop {
            DesktopChannel::Off | DesktopChannel::Terminal => false,
            DesktopChannel::NotifySend => true,
            DesktopChannel::Auto => has_desktop(),
        };
        let terminal = match settings.desktop {
            DesktopChannel::Off | DesktopChannel::NotifySend => false,
            DesktopChannel::Terminal => true,
            DesktopChannel::Auto => !notify_send,
        };
        let webhook = address(settings).ok().flatten().map(|url| Webhook { url, retries: settings.webhook.retries });
        let timeout_ms = settings.timeout.duration().as_millis() as u64;
        Self { terminal, notify_send, command: settings.command.clone(), webhook, timeout_ms }
    }

    /// Whether no channel needs another process.
    pub fn is_empty(&self) -> bool {
        !self.notify_send && self.command.is_none() && self.webhook.is_none()
    }

    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }

    /// Knows the secrets of our environment and the address of the webhook.
    pub fn redactor(&self) -> Redactor {
        redactor_from_environment(self.webhook_secret().as_slice())
    }

    pub(super) fn webhook_secret(&self) -> Option<(String, String)> {
        self.webhook.as_ref().map(|webhook| (SECRET.to_owned(), webhook.url.reveal().to_owned()))
    }
}

/// The address of the webhook. Without one the settings are fine; with an unusable one they are not.
fn address(settings: &NotifySettings) -> Result<Option<WebhookUrl>, String> {
    let Some(name) = &settings.webhook.url_variable else { return Ok(settings.webhook.url.clone()) };
    let url = match std::env::var(name) {
        Ok(text) if !text.trim().is_empty() => WebhookUrl::new(&text),
        Ok(_) | Err(_) => return Err(format!("the variable {name} (notify.webhook.url_variable) is not set")),
    };
    match url.fault() {
        None => Ok(Some(url)),
        Some(fault) => Err(format!("{name}: {fault}")),
    }
}

/// Whether notifications can be sent as configured. Nothing if none are wanted.
pub fn examine(config: &Config, root: &Path) -> Vec<Finding> {
    let settings = &config.notify;
    if !settings.has_channel() {
        return Vec::new();
    }
    let warning = |message: String, hint: &str| {
        let hints = if hint.is_empty() { Vec::new() } else { vec![hint.to_owned()] };
        Finding { hints, ..Finding::warning("notify", message) }
    };
    let mut findings = Vec::new();
    if settings.desktop == DesktopChannel::NotifySend && !is_installed(NOTIFY_SEND) {
        findings.push(warning(
            format!("{NOTIFY_SEND} is not installed (needed by notify.desktop)"),
            "set desktop = \"auto\" in [notify]",
        ));
    }
    if let Some(program) = settings.command.as_ref().and_then(|command| missing_program(command, root)) {
        findings.push(warning(format!("{program} is not installed (needed by notify.command)"), ""));
    }
    if settings.webhook.is_set() && !is_installed(CURL) {
        findings
            .push(warning(format!("{CURL} is not installed (needed by notify.webhook)"), "install curl, or use notify.command"));
    }
    findings.extend(address(settings).err().map(|message| warning(message, "")));
    if findings.is_empty() {
        findings.push(Finding::good("notify", describe(&Channels::new(settings))));
    }
    findings
}

fn describe(channels: &Channels) -> String {
    let mut parts = Vec::new();
    parts.extend(channels.terminal.then(|| "terminal".to_owned()));
    parts.extend(channels.notify_send.then(|| NOTIFY_SEND.to_owned()));
    parts.extend(channels.command.as_ref().map(|command| format!("command ({})", command.display())));
    parts.extend(channels.webhook.as_ref().map(|webhook| format!("webhook ({})", webhook.url)));
    parts.join(", ")
}

fn is_installed(program: &str) -> bool {
    program_exists(program, std::env::var_os("PATH").as_deref(), Path::new("/"))
}

fn has_desktop_session() -> bool {
    ["WAYLAND_DISPLAY", "DISPLAY"].iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}
