//! Arguments of the commands that speak to a run that is under way.

use clap::Args;

/// End the run that is under way here.
///
/// At once: the agent is ended, its attempt is kept and rolled back, as Ctrl-C in the run's own terminal would. With --after-story
/// the iteration in work is finished first.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone stop
  verdone stop --after-story")]
pub(crate) struct StopArgs {
    /// Finish the iteration in work first.
    #[arg(long)]
    pub after_story: bool,
}

/// Let the run that is under way begin nothing new.
///
/// The turn in flight goes on to its end. No clock of the run goes on in a pause.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  verdone pause")]
pub(crate) struct PauseArgs {}

/// Let a paused run go on.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  verdone resume")]
pub(crate) struct ResumeArgs {}

/// Make no further attempt at a story in the run that is under way.
///
/// A turn at it goes on to its end: if its checks pass then, it is committed all the same; else it is kept and rolled back.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  verdone skip US-003")]
pub(crate) struct SkipArgs {
    /// The story's id, as its plan spells it.
    #[arg(value_name = "STORY")]
    pub story: String,
}

/// Give a story that failed or was skipped new attempts in the run that is under way.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  verdone retry US-003")]
pub(crate) struct RetryArgs {
    /// The story's id, as its plan spells it.
    #[arg(value_name = "STORY")]
    pub story: String,
}

/// Put a note into the next prompt of the run that is under way.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  verdone note 'Use the helpers in src/text.rs'")]
pub(crate) struct NoteArgs {
    /// What the agent should know.
    #[arg(value_name = "TEXT")]
    pub text: String,
}

/// Watch the run that is under way, from another terminal.
///
/// Ends when the run ends; Ctrl-C ends only the watching.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  verdone attach")]
pub(crate) struct AttachArgs {}
