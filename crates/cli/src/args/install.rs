//! The arguments of `verdone install` and `verdone uninstall`.

use clap::Args;
use verdone_runtime::project::client_settings::Scope;

/// Put Verdone's hooks into Claude Code's settings, for sessions that you start yourself.
///
/// A run needs none of this. Shows the change first, and asks. Every other byte of the file stays as it is,
/// hooks of yours too, and `verdone uninstall` gives the file back as it was. Doing it again changes nothing, or brings the hooks up to
/// date. A file that is not JSON (with comments, say) is left alone. Then a hook is started, to see that it answers and judges.
///
/// It also raises how often in a row a hook may keep a turn from ending, where you have not set that yourself: the client's own limit is
/// 8, and beyond it a turn ends in silence. It is `CLAUDE_CODE_STOP_HOOK_BLOCK_CAP` in `env`.
///
/// Without a choice of file it is --local: your sessions in this project, and nobody else's.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone install --dry-run    show what would change
  verdone install              this project, only for you
  verdone install --user       every project of yours
  verdone doctor               see whether the hooks answer")]
pub(crate) struct InstallArgs {
    #[command(flatten)]
    pub edit: EditArgs,
}

/// Take Verdone's hooks out of Claude Code's settings.
///
/// The file is then as it was before `verdone install`, byte for byte; a file or folder that was made for the hooks is removed. What
/// was changed in it since stays. Takes the same choice of file, --local without one.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone uninstall
  verdone uninstall --user --yes")]
pub(crate) struct UninstallArgs {
    #[command(flatten)]
    pub edit: EditArgs,
}

/// Which file, and how.
#[derive(Debug, Args)]
pub(crate) struct EditArgs {
    /// Your sessions in all projects: `~/.claude/settings.json`.
    #[arg(long, group = "scope")]
    user: bool,
    /// Everybody's sessions in this project: `.claude/settings.json`, which is usually committed. It names where the program is on
    /// this machine.
    #[arg(long, group = "scope")]
    project: bool,
    /// Your sessions in this project: `.claude/settings.local.json`. This is the default.
    #[arg(long, group = "scope")]
    local: bool,
    /// Show what would change, write nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask.
    #[arg(long, short)]
    pub yes: bool,
    /// Print what was done as JSON; does not ask, so it needs --yes or --dry-run.
    #[arg(long)]
    pub json: bool,
}

impl EditArgs {
    pub(crate) fn scope(&self) -> Scope {
        match (self.user, self.project, self.local) {
            (true, _, _) => Scope::User,
            (_, true, _) => Scope::Project,
            (false, false, _) => Scope::Local,
        }
    }
}
