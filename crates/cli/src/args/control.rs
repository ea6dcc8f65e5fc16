//! Arguments of the commands for a run in progress.

use clap::Args;

/// Stop the run in this project.
///
/// Stops it at once, as Ctrl-C in its own terminal would: the agent is ended, and its unfinished attempt is kept aside. With
/// --after-story the current iteration is finished first.
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
/// Time limits of the run do not count while it is paused.
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

/// Make no further attempt at a story.
///
/// If a turn is working on it, that turn finishes first. If the checks then pass, the story is committed anyway; otherwise the
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

/// Give a story that failed or was skipped new attempts in this run.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  verdone retry US-003")]
pub(crate) struct RetryArgs {
    /// The story's id.
    #[arg(value_name = "STORY")]
    pub story: String,
}

/// Put a note into the next prompt of the run.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  verdone note 'Use the helpers in src/text.rs'")]
pub(crate) struct NoteArgs {
    /// What the agent should know.
    #[arg(value_name = "TEXT")]
    pub text: String,
}

/// Watch the run from another terminal.
///
/// Ends when the run ends. Ctrl-C ends only the watching.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  verdone attach")]
pub(crate) struct AttachArgs {}
