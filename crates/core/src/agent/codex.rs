//! Codex as data: how to start `codex app-server`, the lines on its pipes, and the outcome of its turns. As observed with 0.166.
//!
//! Input is parsed leniently, because clients are updated more often than Verdone. Nothing is allowed that was not understood.

mod approval;
mod command_text;
mod outcome;
mod session;
mod settings;

use std::path::Path;

pub use command_text::{inner_command, waits_for_input};
pub use session::Codex;
pub use settings::CodexAgent;

use super::pipe_client::{PipeClient, PipeLaunch};

/// The oldest client whose approvals are known to cover every command.
pub const TESTED: &str = "0.166.0";

/// Variables of an outer session that would change the client's behaviour.
const SCRUBBED: [&str; 4] = ["CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_THREAD_ID", "AI_AGENT"];

/// The client for a session in `cwd`.
pub fn client(config: &CodexAgent, cwd: &Path) -> PipeClient {
    let mut argv = vec![config.command.clone()];
    argv.extend(config.args.iter().cloned());
    argv.push("app-server".to_owned());
    let set = config.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    PipeClient {
        launch: PipeLaunch { title: "Codex", argv, set, unset: SCRUBBED.to_vec() },
        protocol: Box::new(Codex::new(config, &cwd.to_string_lossy())),
    }
}
