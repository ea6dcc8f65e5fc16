//! The arguments of `verdone audit`.

use clap::Args;

/// Compare every story's commit with its evidence.
///
/// For each story's commit, checks that its evidence note exists and is the one that the commit names, that its tree is the one that was
/// checked, that the proof follows from the checks, that the note links to the previous evidence, and that the journal agrees, if it is
/// available. A commit that a journal lists but that is gone is reported as missing, unless `verdone undo` removed it, another branch has
/// it, or it was squashed into a commit with exactly the verified files. Verdone's other commits may change only the plan's marks and
/// progress files. Also works in a clone, once the notes are fetched. The evidence is not signed: an audit finds commits that were edited,
/// lost or mixed up, but not a history that was rewritten completely, evidence included.
///
/// Exit code: 0 if everything is right, 1 if something is wrong, 4 if there is nothing to audit or a command was not run, 130 if a rerun
/// was interrupted.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone audit                      all stories of this branch
  verdone audit main..               those that main does not have
  verdone audit --markdown main..    for a pull request
  verdone audit --rerun HEAD         and verify it again

Git does not push or fetch notes by default:
  git push origin refs/notes/verdone
  git fetch origin refs/notes/verdone:refs/notes/verdone")]
pub(crate) struct AuditArgs {
    /// The commits to audit: A..B, or a single commit. Default: the whole current branch.
    #[arg(value_name = "RANGE")]
    pub range: Option<String>,
    /// Verify each story again: run its checks on its commit and on its base, without earlier build output.
    ///
    /// A proof that is now weaker than the evidence says is a problem. This executes code from those commits. It runs a command from a note
    /// only if your plan or settings contain it, or if one of your runs in this folder used it; it lists the others.
    #[arg(long)]
    pub rerun: bool,
    /// With --rerun: run all commands that the notes name.
    #[arg(long, requires = "rerun")]
    pub yes: bool,
    /// Print JSON.
    #[arg(long, conflicts_with = "markdown")]
    pub json: bool,
    /// Print Markdown for a pull request.
    #[arg(long)]
    pub markdown: bool,
}
