//! `verdone mcp`: the agent's tools over MCP.

use std::path::PathBuf;

use verdone_core::journal::agent_tools::SOCKET_VARIABLE;
use verdone_mcp::serve;
use verdone_runtime::session::tools::Tools;

use super::{Context, Outcome};
use crate::args::McpArgs;
use crate::error::CliError;

pub(super) fn run(args: &McpArgs, context: &Context) -> Outcome {
    let McpArgs {} = args;
    let socket = std::env::var_os(SOCKET_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    let tools = match socket {
        Some(socket) => Tools::Run { socket },
        None => Tools::Project { start: context.start.clone() },
    };
    serve(tools).map_err(|error| CliError::error(error.to_string()))?;
    Ok(0)
}
