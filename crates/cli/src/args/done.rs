//! The arguments of `verdone done`.

use clap::Args;

/// Explain what is missing before a session's work is done.
///
/// Lists each condition of `[done]` with what proves it or why it is missing, and the command or step that would help. Without --session,
/// it reports on the session that it runs in, or else on the newest recorded session. It runs no checks: it uses the results that `verdone
/// verify` or the Stop gate have for exactly the current files. Changes count, committed or not, from the start of the session's loop, or
/// else from the start of the session.
///
/// Exit code: 0 if every required condition is met, 1 if something is missing or unknown, 2 if the session or story does not exist.
///
/// --json prints one object: `session`, `story`, `profile`, `complexity`, `standing` (`done`, `unknown` or `open`), `judge` (the last
/// question to a judge about this work, its answer and the total cost; otherwise its last other answer, or null) and `conditions`, each
/// with `name`, `required`, `prover`, `outcome` (`held`, `not_needed`, `unknown` or `missing`) and `by`, `why` or `todo`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone done
  verdone done --story US-002   a story other than the current one
  verdone done --ask            ask the judge and CI first, if configured
  verdone done --json")]
pub(crate) struct DoneArgs {
    /// The session's id.
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// The story. Default: the current story of the session's loop, or else the plan's next story.
    #[arg(long, value_name = "ID")]
    pub story: Option<String>,
    /// Ask the judge and CI now, and record their answers. A judge that has already given a clear answer about these files and this story
    /// is not asked again; CI is asked only if everything is committed.
    #[arg(long)]
    pub ask: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}
