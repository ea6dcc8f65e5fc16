//! Arguments of `verdone mcp`.

use clap::Args;

/// Offer Verdone's tools to an agent, over MCP.
///
/// Speaks the Model Context Protocol on standard input and output. `verdone run` starts it for agents that know MCP; there, the agent
/// can complete its story, ask the user and request a merge. In any other session it only reads the project and verifies.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  claude mcp add verdone -- verdone mcp")]
pub(crate) struct McpArgs {}
