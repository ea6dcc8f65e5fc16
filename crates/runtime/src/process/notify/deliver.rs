//! Delivers one notification through every channel at once, each with the same deadline.

use std::ffi::OsString;
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use verdone_core::base::redact::Redactor;
use verdone_core::base::sanitise::sanitise_line;
use verdone_core::base::span::Span;
use verdone_core::check::CommandSpec;
use verdone_core::journal::notify::Notification;

use super::channels::{Channels, NOTIFY_SEND};
use super::webhook;
use crate::process::signal::Signals;
use crate::process::{EnvPlan, Exit, Spawn, SpawnError, Stdin, Sweep, argv, run_without_sweep};

/// The time between asking a process to end and killing it.
const GRACE: Duration = Duration::from_millis(500);
/// How much of a command's output is kept for the warning.
const OUTPUT: u64 = 4 * 1024;

/// The result of one channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivered {
    /// Its name for people, without secrets.
    pub channel: String,
    /// Why it was not delivered.
    pub failure: Option<String>,
}

impl Delivered {
    pub fn warning(&self) -> Option<String> {
        self.failure.as_ref().map(|failure| format!("notification not sent ({}): {failure}", self.channel))
    }
}

/// Everything that a channel needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sender<'a> {
    pub(super) notification: &'a Notification,
    pub(super) root: &'a Path,
    pub(super) signals: &'a Signals,
    pub(super) redactor: &'a Redactor,
    pub(super) timeout: Duration,
}

/// Returns at the deadline at the latest, give or take a second. The notification must be cleaned already.
pub fn deliver(channels: &Channels, notification: &Notification, root: &Path, signals: &Signals) -> Vec<Delivered> {
    let redactor = &channels.redactor();
    let sender = Sender { notification, root, signals, redactor, timeout: channels.timeout() };
    let sweep = Sweep::begin();
    let delivered = thread::scope(|scope| {
        let mut threads = Vec::new();
        if channels.notify_send {
            threads.push(scope.spawn(move || result(NOTIFY_SEND.to_owned(), sender.notify_send())));
        }
        if let Some(command) = &channels.command {
            threads.push(scope.spawn(move || result("command".to_owned(), sender.command(command))));
        }
        if let Some(webhook) = &channels.webhook {
            threads.push(scope.spawn(move || result(format!("webhook {}", webhook.url), webhook::post(&sender, webhook))));
        }
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    sweep.end(GRACE, signals);
    delivered
}

fn result(channel: String, sent: Result<(), String>) -> Delivered {
    Delivered { channel, failure: sent.err() }
}

impl Sender<'_> {
    fn notify_send(&self) -> Result<(), String> {
        let Notification { title, text, .. } = self.notification;
        let words = [NOTIFY_SEND, "--app-name=Verdone", "--", title, &escape_markup(text)];
        self.run(words.iter().map(OsString::from).collect(), Stdin::Null)
    }

    fn command(&self, command: &CommandSpec) -> Result<(), String> {
        let json = self.json().map_err(|error| error.to_string())?;
        self.run(self.argv(command), Stdin::Bytes(json.into_bytes()))
    }

    /// The text is the last argument of a list, and `$1` in a shell line, which stays as the user wrote it.
    fn argv(&self, command: &CommandSpec) -> Vec<OsString> {
        let text = [self.notification.text.clone().into()];
        match command {
            CommandSpec::Argv(_) => argv(command).into_iter().chain(text).collect(),
            CommandSpec::Shell(_) => argv(command).into_iter().chain(["verdone".into()]).chain(text).collect(),
        }
    }

    pub(super) fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self.notification)
    }

    fn run(&self, argv: Vec<OsString>, stdin: Stdin) -> Result<(), String> {
        let (exit, output) = self.start(argv, stdin, self.timeout)?;
        match exit {
            Exit::Code(0) => Ok(()),
            Exit::Code(code) => Err(with_last_line(format!("exit code {code}"), &output)),
            Exit::Signal(signal) => Err(format!("killed by signal {signal}")),
            Exit::Wall | Exit::Idle => Err(self.timed_out()),
            Exit::Terminal => Err("it tried to use the terminal".to_owned()),
            Exit::Interrupted(_) => Err("interrupted".to_owned()),
        }
    }

    pub(super) fn timed_out(&self) -> String {
        format!("timed out after {}", Span::from_millis(self.timeout.as_millis() as u64))
    }

    /// Runs a process to its end. Returns its exit and its redacted output.
    pub(super) fn start(&self, argv: Vec<OsString>, stdin: Stdin, wall: Duration) -> Result<(Exit, String), String> {
        let facts = self.notification.variables().into_iter();
        let spawn = Spawn {
            inside: None,
            argv,
            cwd: self.root.to_owned(),
            env: facts.fold(EnvPlan::default(), |env, (name, value)| env.with(name, value)),
            stdin,
            wall: Some(wall),
            idle: None,
            grace: GRACE,
            cap: OUTPUT,
            keep: None,
            redactor: self.redactor,
        };
        let ended = run_without_sweep(&spawn, self.signals, &mut |_| {}).map_err(|error| match error {
            SpawnError::NotFound { program } => format!("{program} is not installed"),
            error @ (SpawnError::Denied { .. }
            | SpawnError::NoDirectory { .. }
            | SpawnError::Empty
            | SpawnError::Failed { .. }
            | SpawnError::Keep { .. }) => error.to_string(),
        })?;
        Ok((ended.exit, ended.output.text))
    }
}

fn with_last_line(what: String, output: &str) -> String {
    match output.lines().map(|line| sanitise_line(line.trim())).rfind(|line| !line.is_empty()) {
        Some(line) => format!("{what}: {line}"),
        None => what,
    }
}

/// Notification servers read a subset of HTML.
fn escape_markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
