//! The arguments of `verdone hook`.

use clap::Args;

/// Answer one hook event of a coding agent. Called from the agent's settings, not by people.
///
/// Reads one JSON value from standard input and prints at most one JSON object. In a project without `.verdone/` it prints nothing. In your
/// own sessions it answers only to deny; with --run it decides every tool call. It records what it sees in `.verdone/sessions/`, or in the
/// run's folder.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  echo '{\"hook_event_name\":\"Stop\",\"session_id\":\"s\",\"cwd\":\"/\"}' | verdone hook")]
pub(crate) struct HookArgs {
    /// The event to assume if the input cannot be read.
    #[arg(value_name = "EVENT")]
    pub event: Option<String>,
    /// Decide every call, and deny calls that cannot be judged: for unattended sessions.
    #[arg(long)]
    pub run: bool,
}
