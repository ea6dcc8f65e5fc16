//! The arguments of `verdone audit`.

use clap::Args;

/// Compare every story's commit with its evidence.
///
/// Checks each story's commit: its evidence note exists and is the one that the commit names, its tree is the one that was
/// checked, the proof follows from the checks, the note names the evidence before it, and the journal agrees, if it is here. A
/// commit that a journal knows is missing if it is gone, unless verdone undo took it back, another branch has it, or it was
/// squashed into a commit with exactly the files that were verified. Verdone's other commits may change nothing but the plan's
/// marks and progress files. Works in a clone, too, once the notes are fetched. Nothing is signed: an audit finds what was
/// edited, lost or mixed up, not a history that somebody rewrote from end to end.
///
/// Ends with 0 if everything is right, 1 if something is wrong, 4 if there is nothing to audit or a command was not run, 130 if a
/// rerun was interrupted.
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
    /// A proof that is weaker now than the evidence says is a problem. This runs code of those commits. Of the commands in the
    /// notes, only those run that are also in your plan or settings, or that one of your runs in this folder used; the others are
    /// listed.
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
