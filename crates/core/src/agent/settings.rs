//! Which agent works, and how each one is started.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PromptVia;
use super::acp::{AcpAgent, Profile, profile_of};
use super::claude::ClaudeAgent;
use super::codex::CodexAgent;
use super::preset::Preset;
use crate::check::CommandSpec;

/// The agents that Verdone can supervise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentKind {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// opencode.
    Opencode,
    /// GitHub Copilot CLI.
    Copilot,
    /// Qwen Code.
    Qwen,
    /// Any client that speaks the Agent Client Protocol.
    Acp,
    /// aider.
    Aider,
    /// Goose.
    Goose,
    /// Cursor CLI.
    Cursor,
    /// Any executable.
    #[default]
    Command,
    /// The built-in agent that plays a script.
    Scripted,
}

impl AgentKind {
    pub const ALL: [Self; 12] = [
        Self::Claude,
        Self::Codex,
        Self::Gemini,
        Self::Opencode,
        Self::Copilot,
        Self::Qwen,
        Self::Acp,
        Self::Aider,
        Self::Goose,
        Self::Cursor,
        Self::Command,
        Self::Scripted,
    ];

    /// How agents of this kind are run.
    pub fn driver(self) -> Driver {
        match self {
            Self::Claude => Driver::Claude,
            Self::Codex | Self::Gemini | Self::Opencode | Self::Copilot | Self::Qwen | Self::Acp => Driver::Pipe,
            Self::Aider | Self::Goose | Self::Cursor | Self::Command => Driver::Command,
            Self::Scripted => Driver::Scripted,
        }
    }

    /// The program to look for in PATH, if there is a usual one.
    pub fn program(self) -> Option<&'static str> {
        let known = profile_of(self).map(|profile| profile.program).filter(|program| !program.is_empty());
        match self.driver() {
            Driver::Claude | Driver::Pipe => known.or((self != Self::Acp).then(|| self.name())),
            Driver::Command => Preset::for_kind(self).map(|preset| preset.program),
            Driver::Scripted => None,
        }
    }

    /// The name for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Opencode => "opencode",
            Self::Copilot => "GitHub Copilot CLI",
            Self::Qwen => "Qwen Code",
            Self::Acp => "the ACP agent",
            Self::Aider => "aider",
            Self::Goose => "Goose",
            Self::Cursor => "Cursor CLI",
            Self::Command => "the agent's command",
            Self::Scripted => "the scripted agent",
        }
    }

    /// The name in settings and records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Copilot => "copilot",
            Self::Qwen => "qwen",
            Self::Acp => "acp",
            Self::Aider => "aider",
            Self::Goose => "goose",
            Self::Cursor => "cursor",
            Self::Command => "command",
            Self::Scripted => "scripted",
        }
    }
}

/// How an agent is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Driver {
    /// Claude Code, for many turns.
    Claude,
    /// A client that is driven over a pipe, for many turns.
    Pipe,
    /// A command for each turn.
    Command,
    /// The built-in agent that plays a script.
    Scripted,
}

/// The agent that does the work, and how each agent is started.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Agents {
    /// The agent to use.
    pub name: AgentKind,
    pub claude: ClaudeAgent,
    pub codex: CodexAgent,
    pub gemini: AcpAgent,
    pub opencode: AcpAgent,
    pub copilot: AcpAgent,
    pub qwen: AcpAgent,
    pub acp: AcpAgent,
    pub command: CommandAgent,
    pub scripted: ScriptedAgent,
}

impl Agents {
    /// The profile and the settings of an agent that speaks ACP.
    pub fn acp_agent(&self, kind: AgentKind) -> Option<(&'static Profile, &AcpAgent)> {
        let settings = match kind {
            AgentKind::Gemini => &self.gemini,
            AgentKind::Opencode => &self.opencode,
            AgentKind::Copilot => &self.copilot,
            AgentKind::Qwen => &self.qwen,
            AgentKind::Acp => &self.acp,
            AgentKind::Claude
            | AgentKind::Codex
            | AgentKind::Aider
            | AgentKind::Goose
            | AgentKind::Cursor
            | AgentKind::Command
            | AgentKind::Scripted => return None,
        };
        profile_of(kind).map(|profile| (profile, settings))
    }

    /// The command that is started for each turn: the user's own, or that of a preset.
    pub fn turn_command(&self) -> CommandAgent {
        Preset::for_kind(self.name).map_or_else(|| self.command.clone(), Preset::command)
    }

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
