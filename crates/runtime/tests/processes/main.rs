//! Processes that the runtime starts and ends. A separate binary: a sweep ends every descendant of the process it runs in, also those of
//! other tests. For the same reason the tests here run one at a time.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Mutex, MutexGuard, PoisonError};

mod check;
mod client_version;
mod judge;
mod run;

fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}
