//! How well agents and checks are confined.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How agents and checks are confined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Seal {
    pub level: SealLevel,
    /// Descriptions of the parts of the seal that this machine does not support.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Whether Verdone itself runs in a container.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub container: bool,
    /// The only hosts that the agent can reach, if its network is a list of hosts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agent_hosts: Vec<String>,
    /// The same for checks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub check_hosts: Vec<String>,
}

impl Seal {
    /// A seal of this level in which nothing is missing, with an unlimited network.
    pub fn new(level: SealLevel) -> Self {
        Self { level, missing: Vec::new(), container: false, agent_hosts: Vec::new(), check_hosts: Vec::new() }
    }
}

/// Ordered: a stronger seal is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SealLevel {
    /// A clone at a separate path; nothing prevents writes elsewhere.
    Unsealed,
    /// The same, but Landlock refuses writes elsewhere.
    Landlock,
    /// Namespaces: a private view of the file system and the processes.
    View,
}

impl SealLevel {
    pub fn describe(self) -> &'static str {
        match self {
            Self::Unsealed => "unsealed",
            Self::Landlock => "sealed by Landlock",
            Self::View => "sealed",
        }
    }
}
