//! `verdone mcp`: the agent's tools, against the official SDK's client and inside of runs.

mod in_run;
mod sdk_client;
