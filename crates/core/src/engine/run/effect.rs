//! What the loop asks the runtime to do.

use crate::lifecycle::Script;

/// What to do next, as data. Anything else an effect needs is in the state.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Run a lifecycle script.
    Script(Script),
    /// Run the gates once on the tree that the run starts from.
    Prepare,
    Select,
    /// Reset the workspace to the tip of the run's branch.
    Reset,
    RedCheck,
    Turn,
    /// Wait a moment for the agent's service.
    Wait,
    Verify,
    Commit,
    /// Land the run's commits on the user's branch.
    Land,
    /// Keep the rejected work under a ref.
    Keep,
    /// Check proven stories again.
    Regression,
    /// Undo the ticks of broken stories.
    Reopen,
    /// Clean up before the end.
    Finish,
}

impl Effect {
    /// Whether it may run during a pause. Nothing new starts then, but cleanup continues.
    pub fn goes_on_in_a_pause(&self) -> bool {
        match self {
            Self::Keep | Self::Land | Self::Reopen | Self::Finish => true,
            Self::Script(_)
            | Self::Prepare
            | Self::Select
            | Self::Reset
            | Self::RedCheck
            | Self::Turn
            | Self::Wait
            | Self::Verify
            | Self::Commit
            | Self::Regression => false,
        }
    }
}
