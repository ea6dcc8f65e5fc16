//! `verdone doctor`: checks everything that a run needs.

mod hooks;

use std::path::Path;

use jiff::tz::TimeZone;
use verdone_core::config::Config;
use verdone_report::{fault_line, plural};
use verdone_runtime::agent::check_agent;
use verdone_runtime::base::finding::{Finding, Health};
use verdone_runtime::git::{Git, GitError};
use verdone_runtime::preflight;
use verdone_runtime::process::notify;
use verdone_runtime::process::sleep_inhibitor;
use verdone_runtime::project::Project;
use verdone_runtime::project::config_file::Flags;
use verdone_runtime::run::land::{Waiting, waiting};
use verdone_runtime::run::lifecycle::Scripts;
use verdone_runtime::run::prune::{disk_use, sessions_disk_use};
use verdone_runtime::run::recover::unfinished;
use verdone_runtime::run::{Ready, RunRequest};
use verdone_runtime::session::{AbandonedLoops, FORGOTTEN_DAYS, root_of_held_loop};
use verdone_runtime::store::sessions::own_sessions;
use verdone_runtime::store::{RunLock, Store};
use verdone_runtime::workspace;

use super::show::own_faults;
use super::{Context, Outcome};
use crate::args::DoctorArgs;
use crate::error::{CliError, Kind};
use crate::terminal::{Style, print, print_json, printable, printable_line};

/// Give a hint if kept runs use more space than this.
const MUCH: u64 = 500 * 1024 * 1024;

pub(super) fn run(args: &DoctorArgs, context: &Context) -> Outcome {
    let mut findings = examine(context);
    findings.extend(hooks::hooks(context));
    let worst = findings.iter().map(|finding| finding.health).max().unwrap_or(Health::Good);
    if args.json {
        let list: Vec<_> = findings
            .iter()
            .map(|finding| {
                serde_json::json!({
                    "what": finding.what,
                    "health": word(finding.health),
                    "message": finding.message,
                    "hints": finding.hints,
                })
            })
            .collect();
        print_json(&serde_json::json!(list))?;
    } else {
        let lines: String = findings.iter().map(|finding| line(finding, context)).collect();
        print(&lines)?;
    }
    Ok(if worst == Health::Bad { Kind::Usage.exit_code() } else { 0 })
}

/// An error that hides other checks becomes a finding itself; whatever can still be checked is checked.
fn examine(context: &Context) -> Vec<Finding> {
    let project = match context.project() {
        Ok(project) => project,
        Err(error) => return vec![fault("repository", error)],
    };
    let settings = match context.settings(&project, &Flags::default()) {
        Ok(settings) => settings,
        Err(error) => return [vec![fault("config", error)], repository(&project)].concat(),
    };
    let found = if settings.has_file { ".verdone/config.toml" } else { "defaults, no file" };
    let mut findings = vec![Finding::good("config", found)];
    findings.extend(settings.warnings.iter().map(|text| Finding::warning("config", text)));
    let plan = context.plan_request(&project, &settings, None);
    let config = settings.resolved.config;
    for (script, reason) in Scripts::freeze(&project.root).faults() {
        if script.enabled(&config.hooks) {
            findings.push(Finding::warning("scripts", format!("{} cannot be run: {reason}", script.name())));
        }
    }
    let request = RunRequest {
        project: project.clone(),
        plan,
        config: config.clone(),
        only: None,
        red_baseline: false,
        unchecked: false,
        branch: None,
        fresh: false,
        spec_dir: settings.spec_dir,
        exports: settings.exports,
        warnings: Vec::new(),
        limit_given: false,
    };
    match Ready::read(request) {
        Ok(ready) => findings.extend(with_plan(&ready)),
        Err(error) => findings.extend(without_plan(error.into(), &project, &config)),
    }
    findings.extend(runs(&project));
    findings.extend(sessions(&project));
    findings.extend(loops(&project));
    findings.extend(lost_notification(&project));
    findings.extend(dead_run(&project));
    findings.extend(to_land(&project));
    findings.extend(seal(&project, &config));
    findings.push(sleep_inhibitor::examine(config.run.inhibit_sleep));
    findings
}

/// The disk space used by runs, with a hint if it is a lot.
fn runs(project: &Project) -> Option<Finding> {
    let bytes = disk_use(&project.root).ok().filter(|bytes| *bytes > 0)?;
    let count = Store::new(&project.root).ids().map_or(0, |ids| ids.len());
    if count == 0 {
        return None;
    }
    let message = format!("{} in .verdone/runs, {} MB", plural(count, "run", "runs"), bytes.div_ceil(1024 * 1024));
    let mut finding = if bytes > MUCH { Finding::warning("runs", message) } else { Finding::good("runs", message) };
    if bytes > MUCH {
        finding.hints.push("verdone prune --keep 5".to_owned());
    }
    Some(finding)
}

/// The records of hooks in the user's own sessions.
fn sessions(project: &Project) -> Vec<Finding> {
    let bytes = sessions_disk_use(&project.root).unwrap_or(0);
    let count = verdone_runtime::store::sessions::sessions(&own_sessions(&project.root)).map_or(0, |found| found.len());
    let mut findings = Vec::new();
    if count > 0 {
        let message =
            format!("{} in .verdone/sessions, {} MB", plural(count, "session", "sessions"), bytes.div_ceil(1024 * 1024));
        findings.push(if bytes > MUCH {
            Finding { hints: vec!["verdone prune --keep 5".to_owned()], ..Finding::warning("sessions", message) }
        } else {
            Finding::good("sessions", message)
        });
    }
    findings.extend(own_faults(&project.root).map(|found| {
        let message = format!("in your own sessions: {}", fault_line(&found, &TimeZone::system()));
        Finding { hints: vec!["verdone show --sessions".to_owned()], ..Finding::warning("hooks", message) }
    }));
    findings
}

/// A notification about the last session loop that was not delivered. Runs report theirs at once.
fn lost_notification(project: &Project) -> Option<Finding> {
    let store = Store::new(&project.root);
    let run = store.ids().ok()?.pop()?;
    let text = std::fs::read_to_string(store.dir(&run).join(notify::FAILURES)).ok()?;
    let hints = vec!["verdone notify test".to_owned()];
    Some(Finding { hints, ..Finding::warning("notify", text.lines().next().unwrap_or_default()) })
}

/// Loops that keep sessions running unexpectedly.
fn loops(project: &Project) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(root) = root_of_held_loop(project) {
        let message = format!("a loop holds a session of {}, although its .verdone/ no longer exists", root.display());
        findings.push(Finding { hints: vec!["verdone loop stop".to_owned()], ..Finding::warning("loops", message) });
    }
    let left = AbandonedLoops::find(&project.root).count();
    if left > 0 {
        let message = format!(
            "{} of sessions silent for {FORGOTTEN_DAYS} days, or of projects that no longer exist",
            plural(left, "loop", "loops")
        );
        findings.push(Finding { hints: vec!["verdone prune --keep 5".to_owned()], ..Finding::warning("loops", message) });
    }
    findings
}

/// Commits of runs that are not on any of the user's branches yet.
fn to_land(project: &Project) -> Vec<Finding> {
    let finding = |waiting: Waiting| {
        let hints = vec!["verdone land".to_owned()];
        Finding { hints, ..Finding::warning("land", waiting.sentence()) }
    };
    waiting(project).unwrap_or_default().into_iter().map(finding).collect()
}

/// How agents and checks can be confined on this machine, found by trying it.
fn seal(project: &Project, config: &Config) -> Vec<Finding> {
    workspace::examine(project, config)
}

fn dead_run(project: &Project) -> Option<Finding> {
    let git = Git::open(&project.root).ok()?;
    let run = unfinished(&project.root).ok()?.filter(|_| RunLock::holder(git.git_dir()).is_none())?;
    let mut finding = Finding::warning("run", format!("run {run} did not end properly"));
    finding.hints.push("the next verdone run cleans up and continues".to_owned());
    Some(finding)
}

fn with_plan(ready: &Ready) -> Vec<Finding> {
    let stories = plural(ready.plan.plan().stories.len(), "story", "stories");
    let open = ready.plan.plan().open().count();
    let mut findings = vec![Finding::good("plan", format!("{}, {stories}, {open} open", ready.plan_name()))];
    match ready.examine() {
        Ok(more) => findings.extend(more),
        Err(error) => findings.push(fault("run", error.into())),
    }
    findings
}

fn without_plan(error: CliError, project: &Project, config: &Config) -> Vec<Finding> {
    let mut findings = vec![fault("plan", error)];
    findings.extend(repository(project));
    findings.push(check_agent(config, &project.root));
    findings.extend(preflight::judge(config, &project.root));
    findings.extend(notify::examine(config, &project.root));
    findings
}

fn repository(project: &Project) -> Vec<Finding> {
    let look = || -> Result<Vec<Finding>, GitError> {
        let git = Git::open(&project.root)?;
        let (status, top, home) = (git.status()?, git.top().to_owned(), project.root.join(".verdone"));
        Ok(preflight::repository(&git, &status, git.identity(), &|path: &Path| top.join(path).starts_with(&home)))
    };
    look().unwrap_or_else(|error| vec![fault("repository", error.into())])
}

fn fault(what: &'static str, error: CliError) -> Finding {
    let (message, hints) = error.into_words();
    Finding { what, health: Health::Bad, message, hints }
}

fn word(health: Health) -> &'static str {
    match health {
        Health::Good => "good",
        Health::Neutral => "note",
        Health::Warning => "warning",
        Health::Bad => "bad",
    }
}

/// Column where messages start, so that a second line does not look like another finding.
const INDENT: usize = 20;

fn line(finding: &Finding, context: &Context) -> String {
    let style = match finding.health {
        Health::Good | Health::Neutral => Style::Dim,
        Health::Warning => Style::Hint,
        Health::Bad => Style::Error,
    };
    let word = context.terminal.out.style(style, &format!("{:<7}", word(finding.health)));
    let message = printable(&finding.message).replace('\n', &format!("\n{:INDENT$}", ""));
    let mut out = format!("{word}  {:<10} {message}\n", finding.what);
    for hint in &finding.hints {
        out.push_str(&format!("{:INDENT$}hint: {}\n", "", printable_line(hint)));
    }
    out
}
