//! Why a run waits for its agent's service.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a run is waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitCause {
    /// A usage limit of the account, until it resets.
    UsageLimit,
    /// The service is overloaded, failing or unreachable.
    ServiceError,
}

impl WaitCause {
    /// Whether the wait stops the run's clock. The end of a usage limit is known; nothing but `limits.total_time` ends the wait for a service
    /// that stays down.
    pub fn stops_clock(self) -> bool {
        match self {
            Self::UsageLimit => true,
            Self::ServiceError => false,
        }
    }
}
