//! The arguments of `verdone audit`.

use clap::Args;

/// Compare every story's commit with its evidence.
///
/// For each commit that is a story's: is its evidence note there and the one that the commit names, is its tree the one that was
/// checked, does the proof follow from the checks, does it follow the evidence before it, and does the journal agree where it is
/// here. A commit that a journal knows and that is gone is missing, unless verdone undo took it back, another branch has it, or it was
/// squashed into a commit with exactly the files that were verified; a
/// commit that says Verdone made it has to be a story's, or to change nothing but the plan's marks and progress files. Works in a
/// clone, too, once the notes are fetched. Nothing is signed: it finds what was edited, lost or mixed up, not a history that
/// somebody wrote anew from end to end.
///
/// Ends with 0 where everything holds, 1 where something does not, 4 where there is nothing to audit or a command was not run, 130
/// where a rerun was interrupted.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone audit                      all stories of this branch
  verdone audit main..               those that main does not have
  verdone audit --markdown main..    for a pull request
  verdone audit --rerun HEAD         and verify it again

Notes travel when you say so:
  git push origin refs/notes/verdone
  git fetch origin refs/notes/verdone:refs/notes/verdone")]
pub(crate) struct AuditArgs {
    /// The commits: A..B, or one commit. Else all of the current branch.
    #[arg(value_name = "RANGE")]
    pub range: Option<String>,
    /// Verify each story again: its checks on its commit and on its base, without anything that was built before.
    ///
    /// A proof that is weaker now than the evidence says is a problem. This runs code of those commits. Of the commands in the notes, only those run that your plan or settings have, too, or that a
    /// run of yours in this folder ran; the others are listed.
    #[arg(long)]
    pub rerun: bool,
    /// With --rerun: run whatever commands the notes name.
    #[arg(long, requires = "rerun")]
    pub yes: bool,
    /// Print JSON.
    #[arg(long, conflicts_with = "markdown")]
    pub json: bool,
    /// Print Markdown, fit for a pull request.
    #[arg(long)]
    pub markdown: bool,
}
