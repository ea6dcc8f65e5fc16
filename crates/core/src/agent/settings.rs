//! Which agent works, and how each one is started.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PromptVia;
use super::claude::ClaudeAgent;
use super::codex::CodexAgent;
use crate::check::CommandSpec;

/// The agents that Verdone can supervise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentKind {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// A client that speaks the Agent Client Protocol.
    Acp,
    /// Any executable.
    #[default]
    Command,
    /// The built-in agent that plays a script.
    Scripted,
}

impl AgentKind {
    pub const ALL: [Self; 5] = [Self::Claude, Self::Codex, Self::Acp, Self::Command, Self::Scripted];

    /// The name for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Acp => "the ACP agent",
            Self::Command => "the agent's command",
            Self::Scripted => "the scripted agent",
        }
    }

    /// The name in settings and records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Acp => "acp",
            Self::Command => "command",
            Self::Scripted => "scripted",
        }
    }
}

/// The agent that does the work, and how each agent is started.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Agents {
    /// The agent to use.
    pub name: AgentKind,
    pub claude: ClaudeAgent,
    pub codex: CodexAgent,
    pub command: CommandAgent,
    pub scripted: ScriptedAgent,
}

impl Agents {
    /// The command of an agent that is an arbitrary executable.
    pub fn own_command(&self) -> Option<&CommandSpec> {
        self.command.run.as_ref().filter(|_| self.name == AgentKind::Command)
    }
}

/// Any executable.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CommandAgent {
    /// The command to start: a string for `sh -c`, or a list of words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<CommandSpec>,
    /// How the command gets the prompt.
    pub prompt: PromptVia,
}

/// The built-in agent that plays a script: for demos, tests and trying out a config.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ScriptedAgent {
    /// The path of the script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
}
