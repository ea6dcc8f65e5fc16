//! The arguments of `verdone claim`.

use clap::Args;

/// Claim, as an agent, that a condition is met; this is the weakest proof.
///
/// A claim is recorded with its note and time, and is always shown as a claim. It counts for conditions whose prover is `claim`, for
/// `retrospective_done`, and, with --complexity, for `task_classified`, where it can raise a task's complexity but never lower it. Anything
/// that gates, git, the plan or CI prove cannot be claimed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone claim retrospective_done --note 'the parser needs its fixtures first'
  verdone claim task_classified --complexity 8 --note 'two services change'")]
pub(crate) struct ClaimArgs {
    /// The condition.
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Why the condition is met.
    #[arg(long, value_name = "TEXT")]
    pub note: String,
    /// With `task_classified`: the complexity of the task.
    #[arg(long, value_name = "1..10", value_parser = clap::value_parser!(u8).range(1..=10))]
    pub complexity: Option<u8>,
    /// The session that makes the claim. Default: the run or session that this command runs in.
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
}
