//! Clients that are driven over a pipe: how each one is started, and the protocol that it speaks.

use std::path::Path;

use super::claude::{ContextLimits, SessionMode};
use super::protocol::Protocol;
use super::{AgentKind, Agents};

/// How to start a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipeLaunch {
    /// The name for people.
    pub title: &'static str,
    pub argv: Vec<String>,
    /// Variables to set, after `unset`.
    pub set: Vec<(String, String)>,
    pub unset: Vec<&'static str>,
}

/// A client that is about to be started.
#[derive(Debug)]
pub struct PipeClient {
    pub launch: PipeLaunch,
    pub protocol: Box<dyn Protocol>,
}

/// When a turn continues in the same session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionRules {
    pub mode: SessionMode,
    pub limits: ContextLimits,
}

impl Agents {
    /// The configured client, if it is driven over a pipe. `cwd` is where it works, as it sees it.
    pub fn pipe_client(&self, cwd: &Path) -> Option<PipeClient> {
        if self.name == AgentKind::Codex {
            return Some(super::codex::client(&self.codex, cwd));
        }
        self.acp_agent(self.name).map(|(profile, settings)| super::acp::client(profile, settings, cwd))
    }

    /// When the configured client continues a session.
    pub fn session_rules(&self) -> SessionRules {
        if self.name == AgentKind::Codex {
            return self.codex.session_rules();
        }
        match self.acp_agent(self.name) {
            Some((_, settings)) => settings.session_rules(),
            None => SessionRules { mode: self.claude.sessions, limits: ContextLimits::from_config(&self.claude) },
        }
    }
}
