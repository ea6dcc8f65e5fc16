//! Checks of a verification that no run stands behind: they carry a mark, and a watchdog ends them when we are killed.

use std::time::{Duration, SystemTime};

use crate::git::Git;
use crate::process::VERIFY_VARIABLE;
use crate::process::watchdog::Watchdog;

/// Watches as long as it is there. Comes before the first process of the verification.
#[derive(Debug)]
pub struct Guarded {
    mark: String,
    /// A verification does without one where none can be started.
    watchdog: Option<Watchdog>,
}

impl Guarded {
    pub fn begin(grace: Duration) -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let mark = format!("{}-{}", std::process::id(), since.as_nanos());
        let watchdog = Watchdog::start(grace).and_then(|starting| starting.watch_marked(VERIFY_VARIABLE, &mark)).ok();
        Self { mark, watchdog }
    }

    /// The variable that the checks carry.
    pub fn mark(&self) -> (&str, &str) {
        (VERIFY_VARIABLE, &self.mark)
    }

    /// For what makes the places of the checks.
    pub fn git(&self, git: Git) -> Git {
        git.marked(VERIFY_VARIABLE, &self.mark)
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if let Some(watchdog) = self.watchdog.take() {
            watchdog.dismiss();
        }
    }
}
