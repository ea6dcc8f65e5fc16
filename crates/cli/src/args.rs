//! Every argument of every command. The help text is the documentation: `docs/cli.md` is made from it.

mod audit;
mod control;
mod done;
mod install;
mod land;
mod loops;
mod plan;
mod policy;
mod review;
mod verify;
mod workspace;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use verdone_runtime::project::config_file::Flags;

pub(crate) use audit::AuditArgs;
pub(crate) use control::{AttachArgs, NoteArgs, PauseArgs, ResumeArgs, RetryArgs, SkipArgs, StopArgs};
pub(crate) use done::{ClaimArgs, DoneArgs};
pub(crate) use install::{EditArgs, InstallArgs, UninstallArgs};
pub(crate) use land::LandArgs;
pub(crate) use loops::{LoopCommand, LoopStartArgs, LoopStatusArgs, LoopStopArgs};
pub(crate) use plan::{PlanApproveArgs, PlanCommand, PlanLintArgs, PlanNewArgs, PlanShowArgs};
pub(crate) use policy::{HookArgs, PolicyCheckArgs, PolicyCommand, PolicyListArgs};
pub(crate) use review::{AcceptArgs, ProtectArgs, RejectArgs, ReviewArgs};
pub(crate) use verify::{GatesArgs, VerifyArgs, VerifyFormat};
pub(crate) use workspace::{WorkspaceCommand, WorkspaceListArgs, WorkspaceRemoveArgs, WorkspaceShellArgs};

/// Leave a coding agent alone with a plan. Come back to work that was verified, not claimed.
///
/// Verdone runs a coding agent on each story of a plan, in a private workspace. It runs the checks itself, commits what passes on
/// a separate branch, keeps the rest aside, and never touches your checkout.
#[derive(Debug, Parser)]
#[command(
    name = "verdone",
    version,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "\
Examples:
  verdone demo                 watch a run in a temporary repository
  verdone init                 find this project's checks and write a config
  verdone run PLAN.md          run the plan, story by story

Exit codes: 0 complete, 1 error, 2 usage or config, 3 a limit was reached,
4 a human is needed, 130/143/129 stopped by SIGINT/SIGTERM/SIGHUP."
)]
pub(crate) struct Cli {
    /// Work as if started in DIR.
    #[arg(short = 'C', value_name = "DIR", global = true, value_hint = ValueHint::DirPath, help_heading = "Global options")]
    pub directory: Option<PathBuf>,

    /// When to use colour.
    ///
    /// `auto` uses it on a terminal, unless `NO_COLOR` is set.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = ColorWhen::Auto, global = true, help_heading = "Global options")]
    pub color: ColorWhen,

    /// The same as `--color never`.
    #[arg(long, global = true, conflicts_with = "color", help_heading = "Global options")]
    pub no_color: bool,

    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorWhen {
    #[default]
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Init(InitArgs),
    Run(Box<RunArgs>),
    #[command(subcommand)]
    Plan(PlanCommand),
    Verify(VerifyArgs),
    Gates(GatesArgs),
    Status(StatusArgs),
    Log(LogArgs),
    Show(ShowArgs),
    Undo(UndoArgs),
    Review(ReviewArgs),
    Accept(AcceptArgs),
    Reject(RejectArgs),
    Land(LandArgs),
    Protect(ProtectArgs),
    #[command(subcommand)]
    Workspace(WorkspaceCommand),
    Stop(StopArgs),
    Pause(PauseArgs),
    Resume(ResumeArgs),
    Skip(SkipArgs),
    Retry(RetryArgs),
    Note(NoteArgs),
    Claim(ClaimArgs),
    Done(DoneArgs),
    Attach(AttachArgs),
    Checkpoints(CheckpointsArgs),
    Prune(PruneArgs),
    Report(ReportArgs),
    Audit(AuditArgs),
    Doctor(DoctorArgs),
    Install(InstallArgs),
    Uninstall(UninstallArgs),
    Demo(DemoArgs),
    #[command(subcommand)]
    Config(ConfigCommand),
    #[command(subcommand)]
    Policy(PolicyCommand),
    #[command(subcommand)]
    Loop(LoopCommand),
    Hook(HookArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

/// Find this project's checks and write `.verdone/config.toml`.
///
/// Looks for Cargo, npm, pnpm, yarn, bun, pytest, tox, go, make, just, gradle, maven, rspec and bats, proposes a gate for each
/// check that exists, and names the plan that it finds. On a terminal it asks before it adds a gate; elsewhere it asks nothing.
/// An existing config is never overwritten without --force, and then a copy of it is kept.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone init
  verdone init --force      overwrite it; the old one becomes config.toml.bak
  verdone init --json       print as JSON what was written")]
pub(crate) struct InitArgs {
    /// Overwrite an existing config, keeping a copy.
    #[arg(long)]
    pub force: bool,
    /// Print what was written as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Run the plan, story by story.
///
/// For each story: a private workspace, the story's own checks (they should fail), a turn of the agent, and all checks again, on
/// exactly the files that would be committed. What passes is committed on the run's branch. Failures go back to the agent; an
/// attempt that never passes is kept aside as a separate commit. Nothing that the agent says makes a story done; only the checks
/// do. Your checkout is not touched: `verdone land` brings the commits to your branch.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone run                       the plan and agent of .verdone/config.toml
  verdone run --dry-run             show the story, prompt, checks and limits
  verdone run PLAN.md --agent-command ./agent.sh --check 'make test'
                                    any git repository, no config file
  verdone run --story US-003 --max-iterations 5
  verdone run --branch fix-login    commit on a branch of this name
  verdone run --fresh               start over instead of continuing the last run

The exit code says how it ended: 0 complete, 3 a limit was reached, 4 a human
is needed. `verdone report` says more.")]
pub(crate) struct RunArgs {
    /// The plan: a file, or a folder that has one. Without it, the plan in the config.
    #[arg(value_name = "PLAN", value_hint = ValueHint::AnyPath)]
    pub plan: Option<String>,
    /// Show the next story, its prompt, the checks and the limits; change nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Stop after N iterations; 0 means no limit.
    #[arg(long, value_name = "N")]
    pub max_iterations: Option<u32>,
    /// Stop when the agent has cost this many USD, as far as it reports its cost; 0 means no limit.
    #[arg(long, value_name = "USD")]
    pub max_cost: Option<f64>,
    /// Stop at a usage limit instead of waiting for its reset.
    #[arg(long)]
    pub no_wait: bool,
    /// Work on this story only.
    #[arg(long, value_name = "ID")]
    pub story: Option<String>,
    /// Use the plan of `.ralph/PRD-N/`.
    #[arg(long, value_name = "N", conflicts_with = "plan")]
    pub prd: Option<u32>,
    /// `building` runs the plan; `planning` lets the agent write a plan from a request (PLAN, or the prd.md of --prd).
    #[arg(long, value_name = "MODE", value_enum, default_value_t = Mode::Building)]
    pub mode: Mode,
    #[command(flatten)]
    pub agent: AgentArgs,
    /// Commit on this branch: created at HEAD, or continued if it exists. Without it, the plan's `branchName`, or `verdone/RUN-ID`.
    #[arg(long, value_name = "NAME")]
    pub branch: Option<String>,
    /// Start over from HEAD, even if an earlier run of this plan has commits that are not landed.
    #[arg(long)]
    pub fresh: bool,
    /// Removed: a run never works in your checkout.
    #[arg(long, hide = true)]
    pub worktree: bool,
    /// Removed: uncommitted changes never block a run.
    #[arg(long, hide = true)]
    pub allow_dirty: bool,
    /// A command that every story has to pass, run with `sh -c`; can be given several times.
    #[arg(long = "check", value_name = "CMD")]
    pub checks: Vec<String>,
    /// Run without any check: stories are marked as done, but never called verified.
    #[arg(long)]
    pub unchecked: bool,
    /// Removed: it is called --unchecked now.
    #[arg(long, hide = true)]
    pub unverified: bool,
    /// Start even if gates already fail; their failures go into the prompt.
    #[arg(long)]
    pub red_baseline: bool,
    /// Print one JSON event a line instead of text.
    #[arg(long)]
    pub json: bool,
    /// Print only the summary and errors.
    #[arg(long, short, conflicts_with = "json")]
    pub quiet: bool,
}

impl RunArgs {
    /// The arguments that are settings.
    pub(crate) fn flags(&self) -> Flags {
        Flags {
            plan: self.plan.clone(),
            prd: self.prd,
            max_iterations: self.max_iterations,
            max_cost: self.max_cost,
            no_wait: self.no_wait,
            agent: self.agent.agent.clone(),
            agent_command: self.agent.agent_command.clone(),
            checks: self.checks.clone(),
        }
    }
}

/// Which agent works.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct AgentArgs {
    /// The agent: `claude`, `command` or `scripted`.
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Use this command as the agent, run with `sh -c`; the prompt is on its standard input.
    #[arg(long, value_name = "CMD")]
    pub agent_command: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    Planning,
    Building,
}

/// Show where the last run stands.
///
/// Every story with its verdict, the story at work, the limits used, and how the run ended if it did.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone status
  verdone status --json")]
pub(crate) struct StatusArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Print what happened in the last run, event by event.
///
/// With --follow it waits for more until the run ends. With --stops it shows instead what the Stop gate decided in your own sessions,
/// with the reasons, and how long each verdict took.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone log
  verdone log --follow
  verdone log --json
  verdone log --stops          what the Stop gate decided, and why")]
pub(crate) struct LogArgs {
    /// Wait for more until the run ends.
    #[arg(long, short)]
    pub follow: bool,
    /// Show the decisions of the Stop gate instead, and a summary.
    #[arg(long, conflicts_with = "follow")]
    pub stops: bool,
    /// Print one JSON event a line; with --stops, one object.
    #[arg(long)]
    pub json: bool,
}

/// Show one story: its attempts, evidence, refs and cost; or what hooks recorded of a session.
///
/// Shows what each check printed, the story's commit, and the ref that keeps a rejected attempt. For a session: how often and how
/// long each tool ran, which rule denied what, the files, the tests and the cost, as far as hooks saw them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone show US-003
  verdone show US-003 --json
  verdone show --sessions           sessions of the last run, and your own
  verdone show --session 1dbd190c   one of them; the start of its id is enough")]
#[command(
    override_usage = "verdone show [OPTIONS] <STORY>\n       verdone show [OPTIONS] --sessions\n       verdone show [OPTIONS] --session <ID>"
)]
pub(crate) struct ShowArgs {
    /// The story's id.
    #[arg(value_name = "STORY", required_unless_present_any = ["sessions", "session"], conflicts_with_all = ["sessions", "session"])]
    pub story: Option<String>,
    /// List the sessions of the last run, and your own sessions in which Verdone's hooks ran.
    #[arg(long, conflicts_with = "session")]
    pub sessions: bool,
    /// Show one session by its id.
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Take back the last story commit.
///
/// A commit that is not landed yet is removed from the run's branch; one that is landed is reverted by a new commit on your branch.
/// Either way the story is open again. Repeat it to take back the commit before that, also one of an earlier run.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  verdone undo")]
pub(crate) struct UndoArgs {}

/// Removed: `verdone show STORY` names the kept attempts.
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct CheckpointsArgs {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub rest: Vec<std::ffi::OsString>,
}

/// Delete what old runs and sessions left: prompts, outputs, rejected attempts, landed branches and hook records.
///
/// Keeps the newest runs, unfinished runs and all journals, and with the journals the evidence of every story. Keeps the newest
/// of your own sessions too, and every session of the last day. Also deletes loops of this project whose session was silent for two
/// weeks, and loops of projects that no longer exist.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone prune --keep 5 --dry-run
  verdone prune --keep 5")]
pub(crate) struct PruneArgs {
    /// How many of the newest runs to keep, and of your own newest sessions.
    #[arg(long, value_name = "N")]
    pub keep: usize,
    /// Show what would be deleted; delete nothing.
    #[arg(long)]
    pub dry_run: bool,
}

/// Write the report of the last run, in Markdown.
///
/// For the morning after: what is done, what is untested, what was rejected and where it is kept, time, cost, and what to review.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone report
  verdone report > report.md")]
pub(crate) struct ReportArgs {}

/// Check that a run could start here.
///
/// Looks at git, the identity for commits, the config, the plan, the agent, the programs of the checks and disk space, tries out how
/// agents can be confined on this machine, and starts the hooks that `verdone install` put into settings files. Every problem comes
/// with a hint how to fix it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone doctor
  verdone doctor --json")]
pub(crate) struct DoctorArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Watch a run in a temporary repository: no agent, no account, no network.
///
/// A small real project with real checks and a scripted agent: one story passes, one is repaired after feedback, one agent lies
/// and is caught, one never passes and its attempt is kept aside.
///
/// With --agent claude your own Claude Code works on the same plan, on your account: this costs money, so it asks first. It exits with
/// 0 if every story is verified, else as `verdone run` would.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone demo
  verdone demo --keep /tmp/demo     keep the repository, to look around in it
  verdone demo --agent claude       with your own Claude Code, for 1 USD at most")]
pub(crate) struct DemoArgs {
    /// The agent.
    #[arg(long, value_name = "NAME", value_enum, default_value_t = DemoAgent::Scripted)]
    pub agent: DemoAgent,
    /// With --agent claude: stop when it has cost this many USD; 0 means no limit.
    #[arg(long, value_name = "USD", default_value_t = 1.0)]
    pub max_cost: f64,
    /// With --agent claude: start without asking.
    #[arg(long)]
    pub yes: bool,
    /// Use this new or empty folder, and keep it.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub keep: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoAgent {
    Scripted,
    Claude,
}

/// Show the settings in force, or their schema.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  verdone config show
  verdone config schema > config.schema.json")]
pub(crate) enum ConfigCommand {
    Show(ConfigShowArgs),
    Schema(ConfigSchemaArgs),
}

/// Show every setting: its value, and where it came from.
///
/// Settings come from, weakest first: the defaults; the variables `MAX_ITERATIONS`, `TIMEOUT_AGENT`, `PLAN_PATH`,
/// `PROGRESS_PATH`, `PRD_NUMBER` and `RALPH_ROOT`, where a `.ralph/` folder exists; `.verdone/config.toml`; flags.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone config show
  verdone config show --json")]
pub(crate) struct ConfigShowArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Print the JSON Schema of `.verdone/config.toml`.
///
/// Editors that know JSON Schema for TOML complete and check the file with it.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  verdone config schema > config.schema.json")]
pub(crate) struct ConfigSchemaArgs {}

/// Print a completion script for a shell.
///
/// Put its output where your shell looks for completions.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone completions bash > ~/.local/share/bash-completion/completions/verdone
  verdone completions zsh > ~/.zfunc/_verdone
  verdone completions fish > ~/.config/fish/completions/verdone.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: clap_complete::Shell,
}

/// Print the man page, or write one for every command.
///
/// Without --dir the page of `verdone` itself goes to standard output.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone man | man -l -
  verdone man --dir ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Write `verdone.1`, `verdone-run.1` and so on into this folder.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
}
