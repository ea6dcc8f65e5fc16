//! `verdone demo`: a real run of a small real project in a separate repository, with the scripted agent or the user's Claude Code.

mod claude;

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use verdone_core::config::Config;
use verdone_core::journal::view::RunView;
use verdone_core::verify::{Proof, StoryResult};
use verdone_runtime::git::Git;
use verdone_runtime::process::signal::Signals;
use verdone_runtime::project::Project;
use verdone_runtime::project::config_file::{self, Environment, Flags};
use verdone_runtime::project::plan_file::PlanRequest;
use verdone_runtime::run::{CheckoutLock, Ready, RunRequest};
use verdone_runtime::store::Store;

use super::reporter::reporter;
use super::{Context, Outcome};
use crate::args::{DemoAgent, DemoArgs};
use crate::error::CliError;
use crate::terminal::{print, printable};

macro_rules! files {
    ($($path:literal),* $(,)?) => {
        [$(($path, include_str!(concat!("../../demo/project/", $path)))),*]
    };
}

const PROJECT: [(&str, &str); 8] = files![
    "PLAN.md",
    "bin/version",
    "tests/expect",
    "tests/version",
    "tests/greet",
    "tests/add",
    "tests/count",
    "tests/largest",
];
const CONFIG: &str = include_str!("../../demo/config.toml");
const SCRIPT: &str = include_str!("../../demo/script.toml");

pub(super) fn run(args: &DemoArgs, context: &Context) -> Outcome {
    match args.agent {
        DemoAgent::Scripted => scripted(args, context),
        DemoAgent::Claude => claude::run(args, context),
    }
}

fn scripted(args: &DemoArgs, context: &Context) -> Outcome {
    let place = Place::make(args, context)?;
    set_up(&place.dir, &[(".verdone/script.toml", SCRIPT), (".verdone/config.toml", CONFIG)])?;
    print("A small project, a plan of four stories, and an agent that is not always honest.\n\n")?;
    let (code, signals) = play(&place.dir, context, |_| {})?;
    if signals.requested().is_some() {
        return Ok(code);
    }
    check(&view_of(&place.dir)?)?;
    show_demo(&place.dir, args.keep.is_some())?;
    Ok(0)
}

/// The folder in which a demo runs.
struct Place {
    dir: PathBuf,
    /// Removes the folder on drop, unless the user chose it.
    _temporary: Option<tempfile::TempDir>,
}

impl Place {
    fn make(args: &DemoArgs, context: &Context) -> Result<Self, CliError> {
        if let Some(dir) = &args.keep {
            return Ok(Self { dir: kept_folder(&context.start.join(dir))?, _temporary: None });
        }
        let temporary = tempfile::Builder::new().prefix("verdone-demo-").tempdir()?;
        Ok(Self { dir: temporary.path().canonicalize()?, _temporary: Some(temporary) })
    }
}

/// Runs the demo's plan with the settings in its folder, adjusted by `change`. Returns the run's exit code.
fn play(dir: &Path, context: &Context, change: impl FnOnce(&mut Config)) -> Result<(u8, Signals), CliError> {
    let project = Project::find(dir, dir)?;
    let settings = config_file::load(&project, &Environment::new(), &Flags::default())?;
    let plan = PlanRequest { root: dir.into(), cwd: dir.into(), named: Some("PLAN.md".into()), ..PlanRequest::default() };
    let mut config = settings.resolved.config;
    change(&mut config);
    let signals = Signals::install().map_err(|error| CliError::error(format!("cannot install signal handlers: {error}")))?;
    let mut reporter = reporter(false, false, &signals, context);
    let ours = CheckoutLock::acquire(&project, &signals, &mut reporter)?;
    let request = RunRequest {
        project,
        plan,
        config,
        only: None,
        red_baseline: false,
        unchecked: false,
        branch: None,
        fresh: false,
        spec_dir: None,
        exports: Vec::new(),
        warnings: Vec::new(),
        limit_given: false,
    };
    let ended = Ready::read(request)?.run(ours, signals.clone(), &mut reporter)?;
    Ok((ended.code, signals))
}

/// The folder for `--keep`: must be new or empty.
fn kept_folder(dir: &Path) -> Result<PathBuf, CliError> {
    fs::create_dir_all(dir).map_err(|error| CliError::usage(format!("{}: {error}", dir.display())))?;
    if fs::read_dir(dir)?.next().is_some() {
        let message = format!("{} is not empty", dir.display());
        return Err(CliError::usage(message).hint("name a new folder: the demo never overwrites anything"));
    }
    Ok(dir.canonicalize()?)
}

fn set_up(dir: &Path, settings: &[(&str, &str)]) -> Result<(), CliError> {
    for (path, text) in PROJECT {
        write(&dir.join(path), text, !path.ends_with(".md"))?;
    }
    for (path, text) in settings {
        write(&dir.join(path), text, false)?;
    }
    Ok(Git::create_demo_repository(dir, "demo: a small project, its tests and its plan")?)
}

fn write(path: &Path, text: &str, executable: bool) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, text)?;
    fs::set_permissions(path, fs::Permissions::from_mode(if executable { 0o755 } else { 0o644 }))
}

fn view_of(dir: &Path) -> Result<RunView, CliError> {
    let stored = Store::new(dir).all()?.next();
    Ok(stored.map(|stored| stored.view()).transpose()?.unwrap_or_default().0)
}

/// Succeeds if the demo went as scripted. The run itself ends as blocked, because one story never passes.
fn check(view: &RunView) -> Result<(), CliError> {
    let result = |id: &str| view.story(&id.into()).and_then(|story| story.result);
    let done = ["US-001", "US-002", "US-003"].iter().all(|id| result(id) == Some(StoryResult::done(Proof::Verified)));
    let kept = view.story(&"US-004".into()).is_some_and(|story| story.kept().is_some());
    if done && kept && result("US-004") == Some(StoryResult::FAILED) && view.false_claims.nothing_changed == 1 {
        return Ok(());
    }
    Err(CliError::error("the demo did not end as expected").hint("please report this, with the output above"))
}

fn show_demo(dir: &Path, kept: bool) -> Result<(), CliError> {
    let text = if kept {
        let dir = dir.display();
        format!(
            "\nAll as expected: three stories verified, one lie caught, one story\n\
             rejected and its attempt kept.\n\
             Explore {dir}:\n\
             \x20 verdone -C {dir} report         what happened, in Markdown\n\
             \x20 verdone -C {dir} show US-004    why it failed, and where the attempt is kept\n\
             \x20 git -C {dir} log --branches --notes=verdone    the commits and their evidence\n"
        )
    } else {
        "\nAll as expected: three stories verified, one lie caught, one story\n\
             rejected and its attempt kept.\n\
         To explore the repository: verdone demo --keep DIR\n\
         To use it on your own project: verdone init, then verdone run PLAN.md\n"
            .to_owned()
    };
    Ok(print(&printable(&text))?)
}
