//! Arguments of the commands about conditions: what an agent claims, and how a session stands.

use clap::Args;

/// Say, as an agent, that a condition holds; the weakest proof there is.
///
/// A claim is kept with its note and time, and shown as a claim. It counts for conditions whose prover is `claim`, for
/// `retrospective_done`, and for `task_classified` with --complexity, which can raise the complexity of a task and never lower it.
/// What gates, git, the plan or CI prove cannot be claimed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone claim retrospective_done --note 'the parser needs its fixtures first'
  verdone claim task_classified --complexity 8 --note 'two services change'")]
pub(crate) struct ClaimArgs {
    /// The condition.
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Why it holds.
    #[arg(long, value_name = "TEXT")]
    pub note: String,
    /// With `task_classified`: how complex the task is.
    #[arg(long, value_name = "1..10", value_parser = clap::value_parser!(u8).range(1..=10))]
    pub complexity: Option<u8>,
    /// The session that says so; else the run or the session that the command runs in.
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
}

/// Explain what is missing before the work of a session is done.
///
/// Each condition of `[done]` with what proves it, why it is missing, and the command or step that would help. Without --session it is
/// about the session that the command runs in, else about the newest that was recorded. It runs no check: what `verdone verify` or the
/// Stop gate saw of the very files that are there counts. A change counts from where the session's loop began, else the session, in a
/// commit or not.
///
/// The exit code is 0 when everything that is asked for holds, 1 when something is missing or nobody can tell, 2 for a session or story
/// that does not exist.
///
/// --json prints one object: `session`, `story`, `profile`, `complexity`, `standing` (`done`, `unknown` or `open`), `judge` (what a
/// judge was asked last about this work and said, what that cost in all; else its last other answer, or null) and `conditions`, each
/// with `name`, `required`, `prover`, `outcome` (`held`, `not_needed`, `unknown` or `missing`) and `by`, `why` or `todo`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone done
  verdone done --story US-002   another story than the one in work
  verdone done --ask            ask the judge and CI first, where they are configured
  verdone done --json")]
pub(crate) struct DoneArgs {
    /// The session's id.
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// The story; else the one in work: that of the session's loop, or the next of the plan.
    #[arg(long, value_name = "ID")]
    pub story: Option<String>,
    /// Ask the judge and CI now, and keep what they say. A judge that gave a clear answer about these files and this story is not asked
    /// again; CI is asked when everything is committed.
    #[arg(long)]
    pub ask: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
