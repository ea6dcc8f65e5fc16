//! The real Claude Code with a scripted model: whether our hooks and runs work with the actual client.
//!
//! Nothing leaves the machine. Without the client, these tests are skipped and say why.

mod agent;
mod agent_tools;
mod api;
mod demo;
mod first_story;
mod guarded;
mod hooks;
mod judging;
mod long_lived;
mod planning;
mod plugin;
mod resume;
mod runs;
mod sealed;
mod service;
mod skipping;
mod soak;
mod stop_gate;
pub(crate) mod trouble;
pub(crate) mod world;
