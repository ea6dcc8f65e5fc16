//! The arguments of `verdone agents`, and those that select an agent.

use clap::Args;

/// List the agents that Verdone can supervise, and how much of each it sees.
///
/// For each agent: whether it can be started here, which of its tool calls Verdone judges before they run, whether the size of its context
/// and its cost are known, whether a session can be resumed, and whether it asks before a turn ends.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone agents
  verdone agents --json")]
pub(crate) struct AgentsArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Selects the agent.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct AgentArgs {
    /// The agent to use: `claude`, `codex`, `command` or `scripted`.
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Use this command as the agent, run with `sh -c`; it gets the prompt on standard input.
    #[arg(long, value_name = "CMD")]
    pub agent_command: Option<String>,
}
