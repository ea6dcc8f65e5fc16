//! Which agent works, and how each one is started.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PromptVia;
use super::claude::ClaudeAgent;
use crate::check::CommandSpec;

/// The valid values of `agent.name`.
pub const AGENTS: [&str; 3] = ["claude", "command", "scripted"];

/// The agent that does the work, and how each agent is started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Agents {
    /// The agent to use.
    #[schemars(extend("enum" = AGENTS))]
    pub name: String,
    pub claude: ClaudeAgent,
    pub command: CommandAgent,
    pub scripted: ScriptedAgent,
}

impl Default for Agents {
    fn default() -> Self {
        Self {
            name: "command".to_owned(),
            claude: ClaudeAgent::default(),
            command: CommandAgent::default(),
            scripted: ScriptedAgent::default(),
        }
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
