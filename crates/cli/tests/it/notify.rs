//! Notifications about runs and session loops, through real channels.

mod commands;
mod loops;
mod server;
mod webhook;
mod world;
