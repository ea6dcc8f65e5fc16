//! Arguments of `verdone install` and `verdone uninstall`.

use clap::Args;
use verdone_runtime::project::client_settings::Scope;

/// Add Verdone's hooks to Claude Code's settings, for sessions that you start yourself.
///
/// A run does not need them. Shows the change first and asks. The rest of the file, including your own hooks, is kept byte for byte, and
/// `verdone uninstall` restores the original file. Running it again changes nothing, or updates the hooks. A file that is not valid JSON
/// (for example, one with comments) is left alone. Finally, it starts a hook to check that it works.
///
/// Unless you have set it yourself, it also raises how many times in a row a hook may keep a turn from ending
/// (`CLAUDE_CODE_STOP_HOOK_BLOCK_CAP` in `env`): Claude Code's own limit is 8, and after that the turn ends silently.
///
/// The default is --local: only your own sessions in this project. Hooks are silent in a project without `.verdone/`, so --local and
/// --project refuse there.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone install --dry-run    show what would change
  verdone install              this project, only for you
  verdone install --user       all your projects
  verdone doctor               check that the hooks work")]
pub(crate) struct InstallArgs {
    #[command(flatten)]
    pub edit: EditArgs,
}

/// Remove Verdone's hooks from Claude Code's settings.
///
/// Restores the file to its content before `verdone install`, byte for byte, and removes a file or folder that was created for the hooks.
/// Changes made to the file since then are kept. The default is --local.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone uninstall
  verdone uninstall --user --yes")]
pub(crate) struct UninstallArgs {
    #[command(flatten)]
    pub edit: EditArgs,
}

/// Selects the settings file, and how to change it.
#[derive(Debug, Args)]
pub(crate) struct EditArgs {
    /// Your sessions in all projects: `~/.claude/settings.json`.
    #[arg(long, group = "scope")]
    user: bool,
    /// Everyone's sessions in this project: `.claude/settings.json`, which is usually committed. It contains the path of the `verdone`
    /// program on this machine.
    #[arg(long, group = "scope")]
    project: bool,
    /// Your sessions in this project: `.claude/settings.local.json` (default).
    #[arg(long, group = "scope")]
    local: bool,
    /// Show what would change without writing it.
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask for confirmation.
    #[arg(long, short)]
    pub yes: bool,
    /// Print what was done as JSON; it does not ask, so it needs --yes or --dry-run.
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
