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

const FRESHER_PLAN: &str = "IMPLEMENTATION_PLAN.md";
/// The largest accepted request.
const LONGEST: u64 = 1024 * 1024;

pub(super) fn run(args: &PlanNewArgs, context: &Context) -> Outcome {
    let request = read_request(&args.request, context)?;
    let flags = Flags { agent: args.agent.agent.clone(), agent_command: args.agent.agent_command.clone(), ..Flags::default() };
    plan(&request, &context.start.join(&args.output), &flags, false, context)
}

/// Planning mode of `run`: the request is the file or folder named as PLAN, the `prd.md` of `--prd N`, or the specifications of a fresher
/// project, whose plan is `IMPLEMENTATION_PLAN.md`.
pub(in crate::command) fn run_planning_mode(args: &RunArgs, context: &Context) -> Outcome {
    let project = context.project()?;
    let settings = context.settings(&project, &args.flags())?;
    let is_fresher = settings.fresher.is_some();
    let (source, output) = match (&args.plan, args.prd) {
        (_, Some(number)) => {
            let folder = project.root.join(format!(".ralph/PRD-{number}"));
            (folder.join("prd.md"), folder.join("plan.md"))
        }
        (Some(request), None) if is_fresher => (context.start.join(request), project.root.join(FRESHER_PLAN)),
        (Some(request), None) => (context.start.join(request), context.start.join("PLAN.md")),
        (None, None) if is_fresher => {
            (settings.spec_dir.unwrap_or_else(|| project.root.join("specs")), project.root.join(FRESHER_PLAN))
        }
        (None, None) => {
            let error = CliError::usage("planning needs a request: a file with what you want, or --prd N");
            return Err(error.hint("verdone plan new 'TEXT' takes it from the command line"));
        }
    };
    let request = if source.is_dir() { read_folder(&source)? } else { read_file(&source)? };
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
        Health::Warning | Health::Neutral => reporter.report(Update::Notice { text: &agent.in_a_line() }),
        Health::Good => {}
    }
    let (spec_dir, exports) = (settings.spec_dir.as_deref(), settings.exports.as_slice());
    let request = PlanningRequest { project: &project, config: &settings.resolved.config, request, output, spec_dir, exports };
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

/// The Markdown files of a folder and its subfolders, each with its name above it.
fn read_folder(folder: &Path) -> Result<String, CliError> {
    let failed = |path: &Path, error: &io::Error| CliError::usage(format!("{}: {error}", path.display()));
    let (mut folders, mut files) = (vec![folder.to_owned()], Vec::new());
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).map_err(|error| failed(&next, &error))? {
            let entry = entry.map_err(|error| failed(&next, &error))?;
            let (path, kind) = (entry.path(), entry.file_type().map_err(|error| failed(&next, &error))?);
            match path.extension() {
                _ if kind.is_dir() => folders.push(path),
                Some(extension) if kind.is_file() && extension == "md" => files.push(path),
                Some(_) | None => {}
            }
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(CliError::usage(format!("{} has no Markdown files", folder.display())));
    }
    let mut text = String::new();
    for path in files {
        let name = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
        text.push_str(&format!("# {name}\n\n{}\n\n", read_file(&path)?.trim_end()));
        if text.len() as u64 > LONGEST {
            return Err(CliError::usage(format!("{} has more than 1 MiB of Markdown", folder.display())));
        }
    }
    Ok(text)
}

fn read_file(path: &Path) -> Result<String, CliError> {
    let read = fs::File::open(path).and_then(|file| {
        let mut text = String::new();
        file.take(LONGEST).read_to_string(&mut text).map(|_| text)
    });
    read.map_err(|error| CliError::usage(format!("{}: {error}", path.display())))
}
