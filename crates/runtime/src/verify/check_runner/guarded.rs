//! Checks of a verification outside a run. They carry a mark in their environment, and a watchdog ends them if this process is killed.

use std::time::{Duration, SystemTime};

use crate::git::Git;
use crate::process::VERIFY_VARIABLE;
use crate::process::watchdog::Watchdog;

/// Watches until dropped. Create it before the first process of the verification.
#[derive(Debug)]
pub struct Guarded {
    mark: String,
    /// `None` if it could not be started; the verification runs without it.
    watchdog: Option<Watchdog>,
}

impl Guarded {
    pub fn begin(grace: Duration) -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let mark = format!("{}-{}", std::process::id(), since.as_nanos());
        let watchdog = Watchdog::start(grace).and_then(|starting| starting.watch_marked(VERIFY_VARIABLE, &mark)).ok();
        Self { mark, watchdog }
    }

    /// The environment variable that marks the checks.
    pub fn mark(&self) -> (&str, &str) {
        (VERIFY_VARIABLE, &self.mark)
    }

    /// Marks the git processes that prepare the workspaces for checks.
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
