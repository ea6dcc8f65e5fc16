//! Arguments of the commands that control a run in progress.

use clap::Args;

/// Stop the run in this project.
///
/// Ends the agent's turn at once, like Ctrl-C in the run's terminal, and keeps the unfinished attempt aside. With --after-story, the run
/// finishes the current iteration first. Until then, `verdone status` shows the request as pending.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone stop
  verdone stop --after-story")]
pub(crate) struct StopArgs {
    /// Finish the current iteration first.
    #[arg(long)]
    pub after_story: bool,
    /// End the turn at once; this is the default.
    #[arg(long, conflicts_with = "after_story")]
    pub now: bool,
}

/// Pause the run after the current turn.
///
/// Until the turn has ended, `verdone status` shows the pause as pending. The run's time limits do not count while it is paused.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  verdone pause")]
pub(crate) struct PauseArgs {}

/// Continue the paused run.
///
/// Also takes back a pause that is still pending. If the run is not paused, this is an error.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  verdone resume")]
pub(crate) struct ResumeArgs {}

/// Make no further attempts at a story.
///
/// If a turn is working on the story, that turn finishes first. If the checks then pass, the story is committed anyway; otherwise the
/// attempt is kept aside. With --now, the turn or its checks end at once, the attempt is kept aside, and the run continues with the next
/// story.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone skip US-003
  verdone skip US-003 --now")]
pub(crate) struct SkipArgs {
    /// The story's id.
    #[arg(value_name = "STORY")]
    pub story: String,
    /// End the turn or the checks of the story at once.
    #[arg(long)]
    pub now: bool,
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
///
/// Until then, `verdone status` shows it as pending. If the run ends before a turn has used it, the next run of the plan gets it.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  verdone note 'Use the helpers in src/text.rs'")]
pub(crate) struct NoteArgs {
    /// The text for the agent.
    #[arg(value_name = "TEXT")]
    pub text: String,
}

/// Answer a question that an agent asked.
///
/// If an agent needs an answer from you, it asks, and the run continues with other stories. Your answer goes into the next prompt for that
/// story, in this run or in the next run of the plan. Without TEXT, lists the questions.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone answer
  verdone answer US-003 'Use the staging database'")]
pub(crate) struct AnswerArgs {
    /// The story's id.
    #[arg(value_name = "STORY", requires = "text")]
    pub story: Option<String>,
    /// The answer.
    #[arg(value_name = "TEXT")]
    pub text: Option<String>,
}

/// Watch the run from another terminal.
///
/// Shows the events of the run and the agent's output as it comes, also for a run that `verdone run --detach` started. Ends when the run
/// ends. Ctrl-C stops only the watching; the run continues.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  verdone attach")]
pub(crate) struct AttachArgs {}
