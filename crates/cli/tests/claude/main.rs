//! The real Claude Code against a scripted model: what our hooks, and later our runs, are worth to the client itself.
//!
//! Nothing leaves the machine. Without the client these tests say that they are skipped, and why.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has to fail")]

mod agent;
mod api;
mod demo;
mod guarded;
mod hooks;
mod judging;
mod long_lived;
mod planning;
mod resume;
mod runs;
mod sealed;
mod service;
mod skipping;
mod soak;
mod stop_gate;
mod trouble;
mod world;
