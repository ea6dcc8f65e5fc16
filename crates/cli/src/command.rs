//! One file per command, and the dispatch from arguments to commands.

mod agents;
mod answer;
mod ask;
mod attach;
mod audit;
mod chosen_run;
mod claim;
mod completions;
mod config;
mod demo;
mod doctor;
mod done;
mod gates;
mod guardrails;
mod help;
mod init;
mod install;
mod land;
mod log;
mod loops;
mod man;
mod mcp;
mod notify;
mod plan;
mod policy;
mod protect;
mod prune;
mod report;
mod reporter;
mod review;
mod run;
mod runs;
mod show;
mod status;
mod stop;
mod stop_announcer;
mod terminal_notifier;
mod undo;
mod users_own;
mod verify;
mod workspace;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::FromArgMatches as _;
use verdone_runtime::agent::scripted;
use verdone_runtime::base::fault;
use verdone_runtime::hook;
use verdone_runtime::launcher;
use verdone_runtime::process::notify as notify_channels;
use verdone_runtime::process::watchdog;
use verdone_runtime::project::config_file::{self, Environment, Flags, Settings};
use verdone_runtime::project::plan_file::PlanRequest;
use verdone_runtime::project::{Project, find_git_top};
use verdone_runtime::session as gate;
use verdone_runtime::workspace::measure;

use crate::args::{CheckpointsArgs, Cli, ColorWhen, Command, HookArgs};
use crate::error::{CliError, Kind};
use crate::terminal::{Terminal, say, stdout_width};

/// Context shared by all commands.
#[derive(Debug)]
pub(crate) struct Context {
    /// The starting directory: the working directory, or `-C DIR`.
    pub start: PathBuf,
    pub environment: Environment,
    pub terminal: Terminal,
}

/// How a command ended: its exit code, or an error to print.
pub(crate) type Outcome = Result<u8, CliError>;

impl Context {
    /// The project at the starting directory; an error outside of a repository.
    pub(crate) fn project(&self) -> Result<Project, CliError> {
        Ok(Project::find(&self.start, &find_git_top(&self.start)?)?)
    }

    /// The same for commands about loops: a loop stays active even if `.verdone/` was deleted.
    pub(crate) fn project_of_loops(&self) -> Result<Project, CliError> {
        let project = self.project()?;
        let root = gate::root_of_held_loop(&project).unwrap_or_else(|| project.root.clone());
        Ok(Project { root, ..project })
    }

    /// Where to look for the plan: `plan` from the command line, otherwise the settings.
    pub(crate) fn plan_request(&self, project: &Project, settings: &Settings, plan: Option<&str>) -> PlanRequest {
        let path = |name: &str| self.environment.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        PlanRequest {
            root: project.root.clone(),
            cwd: self.start.clone(),
            named: plan.map(PathBuf::from),
            prd: settings.prd,
            configured: settings.resolved.config.plan.as_ref().map(PathBuf::from),
            loop_dir: path("RALPH_LOOP_DIR"),
            progress_path: settings.progress.clone(),
        }
    }

    /// The effective settings.
    pub(crate) fn settings(&self, project: &Project, flags: &Flags) -> Result<Settings, CliError> {
        if let (Some(_), Some(agent)) = (&flags.agent_command, flags.agent.as_ref().filter(|name| *name != "command")) {
            let text = format!("--agent-command is for the agent \"command\", not for {agent:?}");
            return Err(CliError::usage(text).hint("leave out one of the two"));
        }
        Ok(config_file::load(project, &self.environment, flags)?)
    }
}

/// Runs the command that the arguments name.
pub(crate) fn run_from(arguments: Vec<OsString>) -> ExitCode {
    // Namespaces can be changed only while the process has a single thread.
    if arguments.get(1).is_some_and(|name| name == launcher::ARGUMENT) {
        return match arguments.get(2) {
            Some(what) if what == launcher::MEASURE => measure::run(),
            _ => launcher::main(&arguments[2..]),
        };
    }
    // Entry points for other programs are handled before clap is built, so that they start as fast as a bare process.
    if arguments.get(1).is_some_and(|name| name == scripted::ARGUMENT) {
        return scripted::main(&arguments[2..]);
    }
    if arguments.get(1).is_some_and(|name| name == watchdog::ARGUMENT) {
        return watchdog::main(&arguments[2..]);
    }
    if arguments.get(1).is_some_and(|name| name == notify_channels::ARGUMENT) {
        return notify_channels::main();
    }
    if arguments.get(1).is_some_and(|name| name == gate::ARGUMENT) {
        return gate::main(&arguments[2..]);
    }
    let asks_for_help = || arguments.iter().any(|argument| argument == "--help" || argument == "-h");
    if arguments.get(1).is_some_and(|name| name == hook::ARGUMENT) && !asks_for_help() {
        return hook::main(&arguments[2..]).into();
    }
    let faults = std::env::var_os(fault::VARIABLE).map_or(Ok(()), |value| fault::arm(&lossy(&value)));
    let matches = crate::help::command(stdout_width().min(100)).try_get_matches_from(arguments);
    let cli = match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are not errors; everything else is a usage error with exit code 2.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let environment = std::env::vars_os().map(|(name, value)| (lossy(&name), lossy(&value))).collect();
    let when = if cli.no_color { ColorWhen::Never } else { cli.color };
    let terminal = Terminal::detect(when, &environment);
    let faults = faults.map_err(|error| CliError::usage(error.to_string()));
    let outcome = faults
        .and_then(|()| start(cli.directory))
        .and_then(|start| dispatch(cli.command, &Context { start, environment, terminal }));
    ExitCode::from(outcome.unwrap_or_else(|error| {
        say(&error.render(terminal.err));
        error.exit_code()
    }))
}

fn dispatch(command: Command, context: &Context) -> Outcome {
    match command {
        Command::Init(args) => init::run(&args, context),
        Command::Run(args) => run::run(&args, context),
        Command::Plan(command) => plan::run(&command, context),
        Command::Verify(args) => verify::run(&args, context),
        Command::Gates(args) => gates::run(&args, context),
        Command::Agents(args) => agents::run(&args, context),
        Command::Status(args) => status::run(&args, context),
        Command::Runs(args) => runs::run(&args, context),
        Command::Log(args) => log::run(&args, context),
        Command::Show(args) => show::run(&args, context),
        Command::Undo(args) => undo::run(&args, context),
        Command::Review(args) => review::list(&args, context),
        Command::Accept(args) => review::accept(&args, context),
        Command::Reject(args) => review::reject(&args, context),
        Command::Land(args) => land::run(&args, context),
        Command::Protect(args) => protect::run(&args, context),
        Command::Stop(args) => stop::run(&args, context),
        Command::Pause(args) => ask::pause(&args, context),
        Command::Resume(args) => ask::resume(&args, context),
        Command::Skip(args) => ask::skip(&args, context),
        Command::Retry(args) => ask::retry(&args, context),
        Command::Note(args) => ask::note(&args, context),
        Command::Answer(args) => answer::run(&args, context),
        Command::Claim(args) => claim::run(&args, context),
        Command::Done(args) => done::run(&args, context),
        Command::Mcp(args) => mcp::run(&args, context),
        Command::Attach(args) => attach::run(&args, context),
        Command::Checkpoints(CheckpointsArgs { rest: _ }) => Err(removed_checkpoints()),
        Command::Workspace(command) => workspace::run(&command, context),
        Command::Prune(args) => prune::run(&args, context),
        Command::Report(args) => report::run(&args, context),
        Command::Guardrails(args) => guardrails::run(&args, context),
        Command::Audit(args) => audit::run(&args, context),
        Command::Doctor(args) => doctor::run(&args, context),
        Command::Notify(command) => notify::run(&command, context),
        Command::Install(args) => install::put_in(&args, context),
        Command::Uninstall(args) => install::take_out(&args, context),
        Command::Demo(args) => demo::run(&args, context),
        Command::Config(command) => config::run(&command, context),
        Command::Policy(command) => policy::run(&command, context),
        Command::Loop(command) => loops::run(&command, context),
        Command::Hook(args) => hook(&args, context),
        Command::Completions(args) => completions::run(&args),
        Command::Man(args) => man::run(&args, context),
        Command::Help(args) => help::run(&args, context),
    }
}

fn removed_checkpoints() -> CliError {
    let error = CliError::usage("`verdone checkpoints` was removed: runs work in a private workspace and take no checkpoints");
    error.hint("verdone show STORY lists the kept attempts")
}

/// `verdone hook` with global options before it, which only clap can parse.
fn hook(args: &HookArgs, context: &Context) -> Outcome {
    let refused = |error| CliError::error(format!("cannot change to {}: {error}", context.start.display()));
    std::env::set_current_dir(&context.start).map_err(refused)?;
    let arguments = args.event.iter().map(OsString::from).chain(args.run.then(|| OsString::from("--run")));
    Ok(hook::main(&arguments.collect::<Vec<_>>()))
}

fn start(directory: Option<PathBuf>) -> Result<PathBuf, CliError> {
    let here = std::env::current_dir().map_err(|error| CliError::error(format!("cannot use the working directory: {error}")))?;
    let start = directory.map_or_else(|| here.clone(), |directory| here.join(directory));
    if start.is_dir() { Ok(start) } else { Err(CliError::new(Kind::Usage, format!("-C: {} is not a folder", start.display()))) }
}

fn lossy(text: &OsString) -> String {
    text.to_string_lossy().into_owned()
}
