//! The loop from end to end: the real binary, the scripted agent as a real child process, real git.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has to fail")]

mod agent_commits;
mod audit;
mod audit_gone;
mod branch;
mod ci;
mod clocks;
mod commit_hooks;
mod control;
mod crashes;
mod done;
mod files;
mod floods;
mod formats;
mod gates;
mod git_table;
mod land;
mod large_files;
mod lies;
mod limits;
mod masked;
mod own_tests;
mod parity;
mod planning;
mod processes;
mod prune;
mod red_check;
mod regression;
mod review;
mod scope;
mod sealed;
mod secrets;
mod signals;
mod start;
mod story;
mod tampering;
mod terminal_stop;
mod undo;
mod world;
