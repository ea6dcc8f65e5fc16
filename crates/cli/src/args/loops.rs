//! Arguments of the commands about loops in sessions of the user's own.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

/// Hold a session of your own agent until its work is verified.
///
/// A loop belongs to one session. When the agent wants to stop, the hook that `verdone install` put into the client's settings runs the
/// checks itself, marks what passes, and sends the agent on with what is left. Other sessions in the same folder are never held.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  verdone loop start --plan feature_list.json
  verdone loop start 'Fix all type errors' --max-iterations 10
  verdone loop status
  verdone loop stop")]
pub(crate) enum LoopCommand {
    Start(LoopStartArgs),
    Status(LoopStatusArgs),
    Stop(LoopStopArgs),
}

/// Hold an agent's session until its work is verified.
///
/// Run by an agent, it holds that session. Run in a terminal, it waits for the next session that starts in this project and holds
/// that one. With a plan, story after story is verified by its own checks and the gates; with a TASK alone, the gates decide. Without
/// either, the project's plan is used. What stories and checks there are is settled here: later edits of the plan open nothing, and stories
/// that come later bring no commands of their own before `verdone plan approve`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone loop start --plan feature_list.json
  verdone loop start 'Fix all type errors' --max-iterations 10
  verdone loop start --plan PLAN.md --session 1dbd190c-0d8e-4d35-a7a5-4d1f0a1f9f6e")]
pub(crate) struct LoopStartArgs {
    /// What it is about: told to the agent each time.
    #[arg(value_name = "TASK")]
    pub task: Option<String>,
    /// Let the session go after N blocks; else `stop.max_blocks` of the config.
    #[arg(long, value_name = "N")]
    pub max_iterations: Option<u32>,
    /// The plan to work off: a file, or a folder that holds one.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub plan: Option<PathBuf>,
    /// Hold the session with this id.
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Show the loops of this project, and what an ended session left open.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone loop status
  verdone loop status --json")]
pub(crate) struct LoopStatusArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// End a loop: the session is not held any more. Nothing else changes.
///
/// For you, in a terminal: inside an agent's session it refuses. A verification that is under way is ended with it.
///
/// Without --session it ends the only one there is. An interrupt of the agent does not end a loop: it goes on with the next prompt.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone loop stop
  verdone loop stop --session 1dbd190c-0d8e-4d35-a7a5-4d1f0a1f9f6e")]
pub(crate) struct LoopStopArgs {
    /// The session's id.
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
}
