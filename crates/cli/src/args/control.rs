//! Arguments of the commands that control a run in progress.

use clap::Args;

/// Stop the run in this project.
///
/// Stops it immediately, like Ctrl-C in its terminal: the agent is stopped, and its unfinished attempt is kept aside. With --after-story,
/// the run finishes the current iteration first.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone stop
  verdone stop --after-story")]
pub(crate) struct StopArgs {
    /// Finish the current iteration first.
    #[arg(long)]
    pub after_story: bool,
}

/// Pause the run after the current turn.
///
/// The run's time limits do not count while it is paused.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  verdone pause")]
pub(crate) struct PauseArgs {}

/// Continue the paused run.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  verdone resume")]
pub(crate) struct ResumeArgs {}

/// Make no further attempts at a story.
///
/// If a turn is working on the story, that turn finishes first. If the checks then pass, the story is committed anyway; otherwise the
/// attempt is kept aside.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  verdone skip US-003")]
pub(crate) struct SkipArgs {
    /// The story's id.
    #[arg(value_name = "STORY")]
    pub story: String,
}

/// Give a failed or skipped story new attempts in this run.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  verdone retry US-003")]
pub(crate) struct RetryArgs {
    /// The story's id.
    #[arg(value_name = "STORY")]
    pub story: String,
}

/// Add a note to the run's next prompt.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  verdone note 'Use the helpers in src/text.rs'")]
pub(crate) struct NoteArgs {
    /// The text for the agent.
    #[arg(value_name = "TEXT")]
    pub text: String,
}

/// Watch the run from another terminal.
///
/// Ends when the run ends. Ctrl-C stops only the watching.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  verdone attach")]
pub(crate) struct AttachArgs {}
