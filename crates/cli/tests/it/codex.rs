//! Runs with the real Codex and a scripted model.

mod resume;
mod runs;
mod service;
mod world;
