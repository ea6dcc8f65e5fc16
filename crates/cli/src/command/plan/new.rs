//! `verdone plan new` and `verdone run --mode planning`, which do the same.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use verdone_core::agent::TurnOutcome;
use verdone_core::journal::update::{Reporter as _, Update};
use verdone_report::{cost, plural};
use verdone_runtime::agent::check_agent;
use verdone_runtime::base::finding::Health;
use verdone_runtime::process::signal::Signals;
use verdone_runtime::project::config_file::Flags;
use verdone_runtime::project::shown;
use verdone_runtime::run::CheckoutLock;
use verdone_runtime::run::planning::{PlanningError, PlanningRequest, write_plan};

use super::{Context, Outcome};
use crate::args::{PlanNewArgs, RunArgs};
use crate::command::reporter::reporter;
use crate::error::CliError;
use crate::terminal::{print, printable, say};

/// The largest accepted request.
const LONGEST: u64 = 1024 * 1024;

pub(super) fn run(args: &PlanNewArgs, context: &Context) -> Outcome {
    let request = read_request(&args.request, context)?;
    let flags = Flags { agent: args.agent.agent.clone(), agent_command: args.agent.agent_command.clone(), ..Flags::default() };
    plan(&request, &context.start.join(&args.output), &flags, false, context)
}

/// Planning mode of `run`: the request is the file named as PLAN, or the `prd.md` of `--prd N`.
pub(in crate::command) fn plan_for(args: &RunArgs, context: &Context) -> Outcome {
    let project = context.project()?;
    let (source, output) = match (&args.plan, args.prd) {
        (_, Some(number)) => {
            let folder = project.root.join(format!(".ralph/PRD-{number}"));
            (folder.join("prd.md"), folder.join("plan.md"))
        }
        (Some(request), None) => (context.start.join(request), context.start.join("PLAN.md")),
        (None, None) => {
            let error = CliError::usage("planning needs a request: a file with what you want, or --prd N");
            return Err(error.hint("verdone plan new 'TEXT' takes it from the command line"));
        }
    };
    let request = read_file(&source)?;
    plan(&request, &output, &Flags { plan: None, ..args.flags() }, args.json, context)
}

fn plan(request: &str, output: &Path, flags: &Flags, json: bool, context: &Context) -> Outcome {
    let project = context.project()?;
    let signals = Signals::install().map_err(|error| CliError::error(format!("cannot install signal handlers: {error}")))?;
    let mut reporter = reporter(json, false, &signals, context);
    let ours = CheckoutLock::acquire(&project, &signals, &mut reporter)?;
    let settings = context.settings(&project, flags)?;
    let agent = check_agent(&settings.resolved.config, &project.root);
    match agent.health {
        Health::Bad => return Err(agent.into()),
        Health::Warning => reporter.report(Update::Notice { text: &agent.in_a_line() }),
        Health::Good | Health::Neutral => {}
    }
    let request = PlanningRequest { project: &project, config: &settings.resolved.config, request, output };
    let written = write_plan(&request, &ours, &signals, &mut reporter);
    drop(reporter);
    let written = match (written, signals.requested()) {
        (Err(PlanningError::Turn(TurnOutcome::Interrupted)), Some(signal)) => {
            say("Stopped: no plan was written.\n");
            return Ok(signal.exit_code());
        }
        (written, _) => written?,
    };
    let name = shown(output, &project.start);
    let stories = plural(written.stories, "story", "stories");
    let spent = written.usage.cost_usd.map(|usd| format!(", {}", cost(usd))).unwrap_or_default();
    print(&printable(&format!("Wrote {name}: {stories}{spent}. Read it, then: verdone plan approve {name}\n")))?;
    Ok(0)
}

/// Returns the text unchanged, unless it is `-` or names a file.
fn read_request(request: &str, context: &Context) -> Result<String, CliError> {
    if request == "-" {
        let mut text = String::new();
        let read = io::stdin().lock().take(LONGEST).read_to_string(&mut text);
        return read.map(|_| text).map_err(|error| CliError::usage(format!("cannot read standard input: {error}")));
    }
    let path: PathBuf = context.start.join(request);
    if path.is_file() { read_file(&path) } else { Ok(request.to_owned()) }
}

fn read_file(path: &Path) -> Result<String, CliError> {
    let read = fs::File::open(path).and_then(|file| {
        let mut text = String::new();
        file.take(LONGEST).read_to_string(&mut text).map(|_| text)
    });
    read.map_err(|error| CliError::usage(format!("{}: {error}", path.display())))
}
