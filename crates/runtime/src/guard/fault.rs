//! Why an event cannot be judged.

/// Why an event could not be judged. The text goes to the agent and into the records.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    #[error("{0}")]
    Stdin(String),
    #[error(transparent)]
    Input(#[from] verdone_core::hook::InputError),
    #[error(transparent)]
    Settings(#[from] crate::project::config_file::SettingsError),
    #[error("{what}: {source}")]
    Files { what: &'static str, source: std::io::Error },
    #[error("the run's {0}")]
    Story(String),
    #[error("unknown argument {0:?}")]
    Argument(String),
    #[error("it was started for {asked}, but the input is for {given:?}")]
    Event { asked: String, given: String },
    #[error("the project was not found")]
    NoProject,
    #[error("the Stop gate: {0}")]
    Stop(String),
}
