//! Lifecycle scripts from end to end: the real binary, the scripted agent, real scripts and real git.

mod exit_codes;
mod finish_types;
mod fresher;
mod planning;
mod processes;
mod script_view;
mod templates;
mod variables;
mod world;
