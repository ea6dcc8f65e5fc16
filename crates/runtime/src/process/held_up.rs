//! Time in which a supervised process had to wait for whoever supervises it.

use std::cell::Cell;
use std::time::Duration;

/// Shared by the supervisor, which measures limits, and its caller, which says when it made the process wait.
#[derive(Debug, Default)]
pub struct HeldUp {
    time: Cell<Duration>,
    waited: Cell<bool>,
}

impl HeldUp {
    /// The process waited for us, so it was not idle, and this much does not count towards its time limit.
    pub fn excuse(&self, time: Duration) {
        self.time.set(self.time.get() + time);
        self.waited.set(true);
    }

    /// All that does not count.
    pub(crate) fn time(&self) -> Duration {
        self.time.get()
    }

    /// Whether the process waited for us since the last call.
    pub(crate) fn take_waited(&self) -> bool {
        self.waited.take()
    }
}
