//! Sends notifications beside a run or a session loop. A second process of this program delivers each of them, with a deadline: whatever a
//! channel does, the run neither waits for it nor fails because of it.

mod channels;
mod deliver;
mod deliveries;
mod notifier;
mod webhook;

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead as _, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::{Deserialize, Serialize};
use verdone_core::base::finish::StopSignal;
use verdone_core::config::Config;
use verdone_core::journal::notify::Notification;

use crate::process::signal::Signals;
use crate::process::{own_session, start_detached_with};

pub use channels::{Channels, examine};
pub use deliver::{Delivered, deliver};
pub use deliveries::Deliveries;
pub use notifier::Notifier;

/// The hidden first argument of the binary.
pub const ARGUMENT: &str = "notify-deliver";

/// In the folder of a session loop's run: why its last notification was not delivered.
pub const FAILURES: &str = "notify-failures.txt";

/// What the delivering process gets on its standard input, as one line. Never an argument or a file: it may contain secrets.
#[derive(Debug, Serialize, Deserialize)]
struct Job {
    channels: Channels,
    notification: Notification,
    /// Where commands are started.
    root: PathBuf,
    /// The file for failures, if nobody waits for them.
    failures: Option<PathBuf>,
}

/// The entry point if the first argument is [`ARGUMENT`]. Prints the result of each channel as a JSON list.
pub fn main() -> ExitCode {
    let mut line = String::new();
    let mut input = io::stdin().lock();
    let Some(job) = input.read_line(&mut line).ok().and_then(|_| serde_json::from_str::<Job>(&line).ok()) else {
        return ExitCode::from(2);
    };
    drop(input);
    let signals = Signals::none();
    if job.failures.is_some() {
        own_session();
    } else {
        // Our input closes when our parent ends, even if it is killed.
        let ended = signals.clone();
        std::thread::spawn(move || {
            let _ = io::stdin().lock().read_to_end(&mut Vec::new());
            ended.raise(StopSignal::Sigterm);
        });
    }
    let delivered = deliver(&job.channels, &job.notification, &job.root, &signals);
    let failures: Vec<String> = delivered.iter().filter_map(Delivered::warning).collect();
    match &job.failures {
        Some(file) if failures.is_empty() => drop(fs::remove_file(file)),
        Some(file) => drop(fs::write(file, failures.join("\n") + "\n")),
        None => drop(serde_json::to_vec(&delivered).map(|answer| io::stdout().write_all(&answer))),
    }
    ExitCode::SUCCESS
}

/// Starts the delivery of a notification that nobody waits for; the process ends at its deadline. Failures are written to `failures`.
pub(crate) fn send_detached(config: &Config, notification: Notification, root: &Path, failures: PathBuf) -> io::Result<()> {
    let channels = Channels::new(&config.notify);
    if channels.is_empty() {
        return Ok(());
    }
    let notification = notification.cleaned(&channels.redactor());
    let job = Job { channels, notification, root: root.to_owned(), failures: Some(failures) };
    let line = serde_json::to_vec(&job)?;
    start_detached_with(&[OsString::from(ARGUMENT)], root, &line)
}

/// The address of the webhook as a secret variable, for the redactor of a run.
pub(crate) fn webhook_secret(config: &Config) -> Option<(String, String)> {
    Channels::new(&config.notify).webhook_secret()
}

/// The name of the project's folder.
pub fn project_name(root: &Path) -> String {
    root.file_name().map_or_else(|| "/".to_owned(), |name| name.to_string_lossy().into_owned())
}
