//! How many real clients run at once: each takes some 200 MB and most of a core.

use std::sync::{Condvar, Mutex, PoisonError};

const AT_ONCE: usize = 2;

static RUNNING: Mutex<usize> = Mutex::new(0);
static FREED: Condvar = Condvar::new();

/// The right to start a client.
#[derive(Debug)]
pub(crate) struct ClientPermit(());

impl ClientPermit {
    /// Waits while too many others run.
    pub(crate) fn acquire() -> Self {
        let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut running = FREED.wait_while(running, |running| *running >= AT_ONCE).unwrap_or_else(PoisonError::into_inner);
        *running += 1;
        Self(())
    }
}

impl Drop for ClientPermit {
    fn drop(&mut self) {
        *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        FREED.notify_one();
    }
}
