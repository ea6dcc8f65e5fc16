//! The basis for tests of the binary: a hermetic environment, processes with a deadline, transcripts, a terminal.
//!
//! Development only. It depends on no other crate of the workspace, so that all of them can use it, and it knows the program only as a path
//! to a binary. Everything here panics with a readable message: a broken test kit is a failed test.

mod acp_client;
mod checkout;
mod claude;
mod client_permit;
mod codex;
pub mod golden;
mod mcp_sdk;
pub mod model_server;
pub mod plans;
mod process;
mod proctable;
mod runners;
mod sandbox;
mod tmux;
mod transcript;
mod unprivileged;

pub use acp_client::{AcpClient, AcpName};
pub use checkout::{Checkout, Folder};
pub use claude::{Claude, ClaudeSession};
pub use codex::Codex;
pub use golden::{assert_block, assert_file};
pub use mcp_sdk::McpSdk;
pub use plans::PlanShape;
pub use process::{Output, Running};
pub use proctable::{Survivor, processes_with_env};
pub use runners::Runners;
pub use rustix::process::Signal;
pub use sandbox::{PATIENCE, Sandbox};
pub use tmux::Tmux;
pub use transcript::{assert_transcript, normalise};
pub use unprivileged::repeat_unprivileged;
