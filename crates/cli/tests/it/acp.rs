//! Runs with real clients that speak the Agent Client Protocol, offline with a scripted model.

mod any_agent;
mod stories;
mod world;
