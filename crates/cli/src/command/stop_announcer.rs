//! Confirms a stop signal to the user immediately and says how to insist. Also redraws the screen after the process was suspended by the terminal.

use verdone_core::base::finish::StopSignal;
use verdone_core::journal::update::{Reporter, Update};
use verdone_runtime::process::signal::Signals;

/// Forwards all updates, and announces once what a stop request leads to.
pub(super) struct StopAnnouncer {
    inner: Box<dyn Reporter>,
    signals: Signals,
    told: bool,
    continued: u32,
}

impl StopAnnouncer {
    pub(super) fn new(inner: Box<dyn Reporter>, signals: Signals) -> Self {
        Self { inner, signals, told: false, continued: 0 }
    }
}

impl Reporter for StopAnnouncer {
    fn report(&mut self, update: Update<'_>) {
        // A tick means that a process is still running and being waited for.
        let waiting = matches!(update, Update::Tick { .. });
        let continued = self.signals.times_continued();
        if waiting && continued != self.continued {
            self.continued = continued;
            self.inner.report(Update::Continued);
        }
        self.inner.report(update);
        let Some(signal) = self.signals.stops_run().filter(|_| waiting && !self.told) else { return };
        self.told = true;
        let again = match signal {
            StopSignal::Sigint => "Ctrl-C again kills at once",
            StopSignal::Sigterm | StopSignal::Sighup => "a second signal kills at once",
        };
        self.inner.report(Update::Notice { text: &format!("stopping; waiting for processes to end ({again})") });
    }
}
