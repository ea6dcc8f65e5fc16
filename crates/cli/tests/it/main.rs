//! The program from outside: everything that starts the real binary in a sandbox. One test binary, because each takes seconds to link.
//!
//! Views are tested in a separate binary, `tests/workspace/`.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has to fail")]

mod acp;
mod claude;
mod codex;
mod commands;
mod faults;
mod hooks;
mod lies;
mod lifecycle;
mod mcp;
mod notify;
mod run_loop;
mod transcripts;
