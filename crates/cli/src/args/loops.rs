//! Arguments of `verdone loop`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

/// Keep one of your own agent sessions working until its work is verified.
///
/// A loop belongs to one session. When the agent wants to stop, the hook that `verdone install` added to the client's settings runs the
/// checks, marks the stories that pass, and sends the agent back to work on the rest. Other sessions in the same folder are not affected.
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

/// Keep an agent session working until its work is verified.
///
/// Inside an agent's session, this command applies to that session. In a terminal, it applies to the next session that starts in this
/// project. With a plan, each story is verified by its own checks and the gates. With only a TASK, the gates decide. Without either, the
/// project's plan is used. The stories and checks are fixed when the loop starts: later edits of the plan cannot weaken them, and the
/// commands of stories added later do not run until you accept them with `verdone plan approve`.
///
/// The hooks of `verdone install` hold the session. Without them, this command says so and ends with exit code 4.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone loop start --plan feature_list.json
  verdone loop start 'Fix all type errors' --max-iterations 10
  verdone loop start --plan PLAN.md --session 1dbd190c-0d8e-4d35-a7a5-4d1f0a1f9f6e")]
pub(crate) struct LoopStartArgs {
    /// What the session is about; the agent sees it every time it is sent back to work.
    #[arg(value_name = "TASK")]
    pub task: Option<String>,
    /// Let the session stop after N blocks. Default: `stop.max_blocks` in the config.
    #[arg(long, value_name = "N")]
    pub max_iterations: Option<u32>,
    /// The plan to run: a file, or a folder that contains one.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub plan: Option<PathBuf>,
    /// Apply to the session with this id.
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Show this project's loops, and the work that an ended session left open.
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

/// End a loop: its session may stop again. Nothing else changes.
///
/// For you, in a terminal: inside an agent's session it refuses. A verification in progress is stopped, too.
///
/// Without --session, it ends the only loop. Interrupting the agent does not end a loop: the loop continues with the next prompt.
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
