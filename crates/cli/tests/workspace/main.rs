//! Views with the real kernel: what their processes see, what they cannot reach, how they end, and what happens if the system refuses parts
//! of a view.
//!
//! A separate binary: these tests count and end the descendants of their process, also those of other tests.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has to fail")]
#![expect(clippy::print_stdout, reason = "measured times, for who wants to see them")]

mod caches;
mod ending;
mod hidden;
mod landlock;
mod probe;
mod repository;
mod reset;
mod seal;
mod seen;
mod without_run;
mod world;
