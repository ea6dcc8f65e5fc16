//! Agents that speak the Agent Client Protocol (ACP) as data: how to start each of them, the lines on their pipes, and the outcome of
//! their turns.
//!
//! Input is read leniently, because each client speaks its own dialect. Output is strict, and nothing is allowed that was not understood.
//! What differs between clients is in their profiles, not in the code of a session.

mod announced;
mod call;
mod failure;
mod launch;
mod profile;
mod session;
mod settings;
mod usage;
mod version;
mod wire;

pub use launch::client;
pub use profile::{FailureSign, OnDenial, Package, Profile, TokenCount, ToolNames, profile_of, profiles};
pub use session::Acp;
pub use settings::AcpAgent;
pub use version::{ClientVersion, version_advice};
