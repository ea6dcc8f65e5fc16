//! All command-line arguments. The help text is the reference: `docs/cli.md` is generated from it.

mod agents;
mod audit;
mod claim;
mod config;
mod control;
mod done;
mod gates;
mod guardrails;
mod help;
mod hook;
mod init;
mod install;
mod land;
mod loops;
mod mcp;
mod notify;
mod plan;
mod policy;
mod review;
mod runs;
mod verify;
mod workspace;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use verdone_runtime::project::config_file::Flags;

pub(crate) use agents::{AgentArgs, AgentsArgs};
pub(crate) use audit::AuditArgs;
pub(crate) use claim::ClaimArgs;
pub(crate) use config::{ConfigCommand, ConfigShowArgs};
pub(crate) use control::{AnswerArgs, AttachArgs, NoteArgs, PauseArgs, ResumeArgs, RetryArgs, SkipArgs, StopArgs};
pub(crate) use done::DoneArgs;
pub(crate) use gates::GatesArgs;
pub(crate) use guardrails::GuardrailsArgs;
pub(crate) use help::HelpArgs;
pub(crate) use hook::HookArgs;
pub(crate) use init::InitArgs;
pub(crate) use install::{EditArgs, InstallArgs, UninstallArgs};
pub(crate) use land::LandArgs;
pub(crate) use loops::{LoopCommand, LoopStartArgs, LoopStatusArgs, LoopStopArgs};
pub(crate) use mcp::McpArgs;
pub(crate) use notify::{NotifyCommand, NotifyTestArgs};
pub(crate) use plan::{PlanApproveArgs, PlanCommand, PlanLintArgs, PlanNewArgs, PlanShowArgs};
pub(crate) use policy::{PolicyCheckArgs, PolicyCommand, PolicyListArgs};
pub(crate) use review::{AcceptArgs, ProtectArgs, RejectArgs, ReviewArgs};
pub(crate) use runs::{RunArg, RunsArgs};
pub(crate) use verify::{VerifyArgs, VerifyFormat};
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
    disable_help_subcommand = true,
    arg_required_else_help = true,
    after_help = "\
Examples:
  verdone demo                 watch a run in a temporary repository
  verdone init                 find this project's checks and write a config
  verdone run PLAN.md          run the plan, story by story
  verdone help plans           read a page of the manual

Exit codes: 0 complete, 1 error, 2 usage or config, 3 a limit was reached,
4 a human is needed, 130/143/129 stopped by SIGINT/SIGTERM/SIGHUP."
)]
pub(crate) struct Cli {
    /// Run as if started in DIR.
    #[arg(short = 'C', value_name = "DIR", global = true, value_hint = ValueHint::DirPath, help_heading = "Global options")]
    pub directory: Option<PathBuf>,

    /// When to use colour.
    ///
    /// `auto` uses colour on a terminal, unless `NO_COLOR` is set.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = ColorWhen::Auto, global = true, help_heading = "Global options")]
    pub color: ColorWhen,

    /// Same as `--color never`.
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
    Agents(AgentsArgs),
    Status(StatusArgs),
    Runs(RunsArgs),
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
    Answer(AnswerArgs),
    Claim(ClaimArgs),
    Done(DoneArgs),
    Mcp(McpArgs),
    Attach(AttachArgs),
    Checkpoints(CheckpointsArgs),
    Prune(PruneArgs),
    Report(ReportArgs),
    Guardrails(GuardrailsArgs),
    Audit(AuditArgs),
    Doctor(DoctorArgs),
    #[command(subcommand)]
    Notify(NotifyCommand),
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
    Help(HelpArgs),
}

/// Run the plan, story by story.
///
/// For each story, Verdone creates a private workspace, runs the story's own checks (they should fail), gives the agent a turn, and runs
/// all checks again on exactly the files that would be committed. Work that passes is committed on the run's branch. Failures are sent back
/// to the agent; an attempt that never passes is kept as a separate commit. Only the checks decide whether a story is done, never the
/// agent. Your checkout is not touched: `verdone land` brings the commits to your branch.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone run                       the plan and agent of .verdone/config.toml
  verdone run --dry-run             show the story, prompt, checks and limits
  verdone run 'add a --json flag'   without a plan: one request
  verdone run PLAN.md --agent-command ./agent.sh --check 'make test'
                                    any git repository, no config file
  verdone run --story US-003 --max-iterations 5
  verdone run --branch fix-login    commit on a branch of this name
  verdone run --fresh               start over instead of continuing the last run
  verdone run --detach              in the background; verdone attach shows it

The exit code shows how it ended: 0 complete, 3 a limit was reached, 4 a human
is needed. `verdone report` has the details.")]
pub(crate) struct RunArgs {
    /// The plan: a file, or a folder that contains one. Default: the plan in the config. Any other text is a request: a plan with one
    /// story, kept in `.verdone/requests/`.
    #[arg(value_name = "PLAN", value_hint = ValueHint::AnyPath)]
    pub plan: Option<String>,
    /// Run a request without asking.
    #[arg(long)]
    pub yes: bool,
    /// Show the next story, its prompt, the checks and the limits, without changing anything.
    #[arg(long)]
    pub dry_run: bool,
    /// Stop after N iterations; 0 means no limit.
    #[arg(long, value_name = "N")]
    pub max_iterations: Option<u32>,
    /// Stop when the agent's reported cost reaches this amount in USD; 0 means no limit.
    #[arg(long, value_name = "USD")]
    pub max_cost: Option<f64>,
    /// Stop at a usage limit instead of waiting until it resets.
    #[arg(long)]
    pub no_wait: bool,
    /// Let the machine sleep during the run.
    #[arg(long)]
    pub no_inhibit: bool,
    /// Run only this story.
    #[arg(long, value_name = "ID")]
    pub story: Option<String>,
    /// Use the plan in `.ralph/PRD-N/`.
    #[arg(long, value_name = "N", conflicts_with = "plan")]
    pub prd: Option<u32>,
    /// `building` runs the plan; `planning` has the agent write a plan from a request (PLAN, which is a file or a folder of Markdown files, or the prd.md of --prd). Default: `VERDONE_MODE`, or `building`.
    #[arg(long, value_name = "MODE", value_enum)]
    pub mode: Option<Mode>,
    #[command(flatten)]
    pub agent: AgentArgs,
    /// Commit on this branch; it is created at HEAD if it does not exist. Default: the plan's `branchName`, or `verdone/RUN-ID`.
    #[arg(long, value_name = "NAME")]
    pub branch: Option<String>,
    /// Start over from HEAD, even if an earlier run of this plan has unlanded commits.
    #[arg(long)]
    pub fresh: bool,
    /// Removed: a run never works in your checkout.
    #[arg(long, hide = true)]
    pub worktree: bool,
    /// Removed: uncommitted changes never block a run.
    #[arg(long, hide = true)]
    pub allow_dirty: bool,
    /// A command that every story must pass, run with `sh -c`; can be given several times.
    #[arg(long = "check", value_name = "CMD")]
    pub checks: Vec<String>,
    /// Run without any checks: stories are marked done, but never verified.
    #[arg(long)]
    pub unchecked: bool,
    /// Removed: use --unchecked.
    #[arg(long, hide = true)]
    pub unverified: bool,
    /// Start even if gates already fail; their failures go into the prompt.
    #[arg(long)]
    pub red_baseline: bool,
    /// Start the run in the background, where it survives this terminal; `verdone attach` shows it.
    #[arg(long, conflicts_with_all = ["dry_run", "json", "quiet"])]
    pub detach: bool,
    /// The process that `--detach` starts.
    #[arg(long, hide = true)]
    pub detached: bool,
    /// Print one JSON event per line instead of text.
    #[arg(long)]
    pub json: bool,
    /// Print only the summary and errors.
    #[arg(long, short, conflicts_with = "json")]
    pub quiet: bool,
}

impl RunArgs {
    /// The flags that override settings.
    pub(crate) fn flags(&self) -> Flags {
        Flags {
            plan: self.plan.clone(),
            prd: self.prd,
            max_iterations: self.max_iterations,
            max_cost: self.max_cost,
            no_wait: self.no_wait,
            no_inhibit: self.no_inhibit,
            agent: self.agent.agent.clone(),
            agent_command: self.agent.agent_command.clone(),
            checks: self.checks.clone(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    Planning,
    Building,
}

/// Show the state of the last run.
///
/// Lists every story with its outcome, the current story, the limits used so far and, if the run has ended, how it ended.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone status
  verdone status --json")]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub run: RunArg,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Print the events of the last run.
///
/// With --follow, waits for more events until the run ends. With --stops, shows instead what the Stop gate decided in your own sessions,
/// with the reasons, and how long each decision took.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone log
  verdone log --follow
  verdone log --json
  verdone log --stops          what the Stop gate decided, and why")]
pub(crate) struct LogArgs {
    #[command(flatten)]
    pub run: RunArg,
    /// Wait for more events until the run ends; with --stops, for more decisions until you press Ctrl-C.
    #[arg(long, short)]
    pub follow: bool,
    /// Show the Stop gate's decisions and a summary instead.
    #[arg(long)]
    pub stops: bool,
    /// Print one JSON event per line; with --stops, a single object, or with --follow one decision per line.
    #[arg(long)]
    pub json: bool,
}

/// Show the stories of a run, one of them in detail, or what hooks recorded in a session.
///
/// Without arguments: each story with its proof, its outcome and why. For a story: the output of each check, the story's commit, and the ref that keeps an attempt that was not committed. For a session: how often and how
/// long each tool ran, which rules denied what, and the files, tests and cost that hooks saw.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone show                      every story that the last run worked on
  verdone show US-003               the last run that worked on this story
  verdone show US-003 --json
  verdone show --sessions           sessions of the last run, and your own
  verdone show --session 1dbd190c   one of them; the start of its id is enough")]
#[command(
    override_usage = "verdone show [OPTIONS] [STORY]\n       verdone show [OPTIONS] --sessions\n       verdone show [OPTIONS] --session <ID>"
)]
pub(crate) struct ShowArgs {
    /// The story's id.
    #[arg(value_name = "STORY", conflicts_with_all = ["sessions", "session"])]
    pub story: Option<String>,
    #[command(flatten)]
    pub run: RunArg,
    /// List the sessions of the last run, and your own sessions that ran Verdone's hooks.
    #[arg(long, conflicts_with = "session")]
    pub sessions: bool,
    /// Show the session with this id.
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Undo the last story commit, or that of one story.
///
/// An unlanded commit is removed from the run's branch; a landed one is reverted by a new commit on your branch. Either way the story is
/// open again. Repeat the command to undo earlier commits, including those of earlier runs. Of a run's unlanded commits, only the last one
/// can be undone.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone undo
  verdone undo --list      what can be undone, newest first
  verdone undo US-003")]
pub(crate) struct UndoArgs {
    /// The story whose commit to undo; without it, the last one.
    #[arg(value_name = "STORY", conflicts_with = "list")]
    pub story: Option<String>,
    /// List what can be undone, newest first.
    #[arg(long)]
    pub list: bool,
    /// With --list, print JSON.
    #[arg(long, requires = "list")]
    pub json: bool,
}

/// Removed: `verdone show STORY` lists the kept attempts.
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct CheckpointsArgs {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub rest: Vec<std::ffi::OsString>,
}

/// Delete leftovers of old runs and sessions: prompts, outputs, kept attempts, landed branches and records of hook calls.
///
/// Keeps the newest runs, unfinished runs, all journals and the evidence of every story. Also keeps the newest of your own sessions and
/// every session from the last day. Deletes loops of this project whose session has been silent for two weeks, and loops of projects that
/// no longer exist.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone prune --keep 5 --dry-run
  verdone prune --keep 5")]
pub(crate) struct PruneArgs {
    /// How many of the newest runs, and of your own newest sessions, to keep.
    #[arg(long, value_name = "N")]
    pub keep: usize,
    /// Show what would be deleted without deleting it.
    #[arg(long)]
    pub dry_run: bool,
}

/// Write a Markdown report of the last run.
///
/// Covers what is done, what is untested, what was rejected and where it is kept, the time and cost, and what to review.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone report
  verdone report > report.md")]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    pub run: RunArg,
}

/// Check that a run can start in this project.
///
/// Checks git, the commit identity, the config, the plan, the agent, the programs that checks need and the disk space. Tests how well
/// agents can be confined on this machine, and starts the hooks that `verdone install` added to settings files. Every problem comes with a
/// hint on how to fix it.
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
/// Uses a small real project with real checks and a scripted agent. One story passes, one is fixed after feedback, one agent lies and is
/// caught, and one story never passes, so its attempt is kept aside.
///
/// With --agent claude, your own Claude Code works on the same plan, on your account. This costs money, so Verdone asks first. The exit
/// code is 0 if every story is verified, otherwise that of `verdone run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  verdone demo
  verdone demo --keep /tmp/demo     keep the repository to explore it
  verdone demo --agent claude       with your own Claude Code, for 1 USD at most")]
pub(crate) struct DemoArgs {
    /// The agent to use.
    #[arg(long, value_name = "NAME", value_enum, default_value_t = DemoAgent::Scripted)]
    pub agent: DemoAgent,
    /// With --agent claude: stop when it has cost this much in USD; 0 means no limit.
    #[arg(long, value_name = "USD", default_value_t = 1.0)]
    pub max_cost: f64,
    /// With --agent claude: start without asking.
    #[arg(long)]
    pub yes: bool,
    /// Create the demo in this new or empty folder, and keep it.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub keep: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoAgent {
    Scripted,
    Claude,
}

/// Print a completion script for a shell.
///
/// Save the output where your shell looks for completions.
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
/// Without --dir, prints the page of `verdone` itself to standard output.
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
