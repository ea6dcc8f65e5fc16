//! How an agent reaches Verdone's tools.

/// The environment variable with the path of the run's socket. Only agents of a run have it.
pub const SOCKET_VARIABLE: &str = "VERDONE_TOOLS";
/// The name of the server in a client's configuration: tools appear as `mcp__verdone__status`.
pub const SERVER: &str = "verdone";
