//! `verdone run`: the loop, or with `--dry-run` its first step.

mod detach;
mod request;

use std::fs;
use std::path::{Path, PathBuf};

use verdone_core::base::id::{RunId, StoryId};
use verdone_core::check::Check;
use verdone_core::config::{LandMode, Limits, Origin};
use verdone_plan::{Progress, Selection, select};
use verdone_report::plural;
use verdone_runtime::base::finding::{Finding, Health};
use verdone_runtime::process::redactor_from_environment;
use verdone_runtime::process::signal::Signals;
use verdone_runtime::project::config_file::{Flags, FresherMode};
use verdone_runtime::project::one_story_plan::OneStoryPlan;
use verdone_runtime::project::plan_file::PlanFile;
use verdone_runtime::run::land::waiting_on;
use verdone_runtime::run::step::first_prompt;
use verdone_runtime::run::{CheckoutLock, Ended, Ready, RunError, RunPlan, RunRequest};

use super::reporter::reporter;
use super::{Context, Outcome, land, plan as plan_command};
use crate::args::{Mode, RunArgs};
use crate::error::{CliError, Kind};
use crate::question::confirm_unless_stopped;
use crate::terminal::{print, print_json, printable, printable_line, say};

pub(super) fn run(args: &RunArgs, context: &Context) -> Outcome {
    refuse_removed(args)?;
    if mode(args, context)? == Mode::Planning {
        if args.branch.is_some() || args.fresh || args.detach {
            return Err(CliError::usage("--branch, --fresh and --detach are for building, not for planning"));
        }
        return plan_command::run_planning_mode(args, context);
    }
    let requested = request::requested(args, context)?;
    if args.dry_run {
        return match requested {
            Some(plan) => dry_run_request(&plan, args, context),
            None => dry_run(read(args, None, context)?, args),
        };
    }
    if let Some(plan) = &requested
        && !args.detached
        && !request::confirmed(plan, args, context)?
    {
        return Ok(Kind::Human.exit_code());
    }
    if args.detach {
        return detach::start();
    }
    let signals = Signals::install().map_err(|error| CliError::error(format!("cannot install signal handlers: {error}")))?;
    let mut reporter =
        if args.detached { detach::reporter(&signals, context)? } else { reporter(args.json, args.quiet, &signals, context) };
    let project = context.project()?;
    let lock = CheckoutLock::acquire(&project, &signals, &mut reporter)?;
    let requested = if requested.is_some() { request::write_plan(args, &lock, context)? } else { None };
    let ready = read(args, requested.as_deref(), context)?;
    let land = ready.request.config.run.land;
    let ended = ready.run(lock, signals.clone(), &mut reporter)?;
    drop(reporter);
    let stopped = signals.requested().is_some();
    let is_asked = land == LandMode::Ask && !(args.json || args.quiet || stopped);
    let offered = if is_asked { offer_landing(&ended, &signals, context) } else { Ok(()) };
    for text in ended.notifications.finish(&signals) {
        say(&printable(&format!("note: {text}\n")));
    }
    // An error of the run is more important.
    if ended.code == 0 {
        offered?;
    }
    Ok(ended.code)
}

/// The flag, a variable, or the mode of a fresher project.
fn mode(args: &RunArgs, context: &Context) -> Result<Mode, CliError> {
    if let Some(mode) = args.mode {
        return Ok(mode);
    }
    match context.environment.get("VERDONE_MODE").map_or("", String::as_str) {
        "" => {}
        "planning" => return Ok(Mode::Planning),
        "building" => return Ok(Mode::Building),
        other => return Err(CliError::usage(format!("VERDONE_MODE: {other:?} is not a mode: planning or building"))),
    }
    // If the settings cannot be read, whoever needs them reports it.
    let settings = context.project().and_then(|project| context.settings(&project, &Flags::default()));
    let is_planning = settings.is_ok_and(|settings| settings.fresher == Some(FresherMode::Planning));
    Ok(if is_planning { Mode::Planning } else { Mode::Building })
}

/// Each removed flag gets a helpful error.
fn refuse_removed(args: &RunArgs) -> Result<(), CliError> {
    if args.worktree {
        let error = CliError::usage("--worktree was removed: every run works in a private workspace");
        return Err(error.hint("leave it out; `verdone land` brings the commits to your branch"));
    }
    if args.allow_dirty {
        let error = CliError::usage("--allow-dirty was removed: uncommitted changes never block a run, and are not part of it");
        return Err(error.hint("leave it out"));
    }
    if args.unverified {
        return Err(CliError::usage("--unverified was renamed to --unchecked").hint("verdone run --unchecked"));
    }
    Ok(())
}

/// Asks once, on a terminal. Without a terminal, the summary has already said what to type, except for commits of earlier runs.
fn offer_landing(ended: &Ended, signals: &Signals, context: &Context) -> Result<(), CliError> {
    let project = context.project()?;
    let Some(waiting) = waiting_on(&project, &ended.branch)? else { return Ok(()) };
    if !context.terminal.can_ask {
        if waiting.tip == ended.began_at {
            say(&printable(&format!("note: {} (verdone land)\n", waiting.sentence())));
        }
        return Ok(());
    }
    let commits = plural(waiting.commits as usize, "commit", "commits");
    let target = waiting.target.as_deref().unwrap_or("your branch");
    if !confirm_unless_stopped(&format!("Land {commits} on {target}?"), signals)? {
        return Ok(());
    }
    land::land_branch(&project, Some(&ended.branch), context)
}

/// Reads the plan at `requested`, or else the one that the arguments and settings name.
fn read(args: &RunArgs, requested: Option<&Path>, context: &Context) -> Result<Ready, CliError> {
    Ok(Ready::read(run_request(args, requested, context)?)?)
}

fn run_request(args: &RunArgs, requested: Option<&Path>, context: &Context) -> Result<RunRequest, CliError> {
    let project = context.project()?;
    let named = requested.map(|path| path.to_string_lossy().into_owned()).or_else(|| args.plan.clone());
    let settings = context.settings(&project, &Flags { plan: named.clone(), ..args.flags() })?;
    let plan = context.plan_request(&project, &settings, named.as_deref());
    let limit_given = match settings.resolved.origin("limits.max_iterations") {
        Origin::Env(_) | Origin::Flag(_) => true,
        Origin::Default | Origin::File(_) => false,
    };
    Ok(RunRequest {
        project,
        plan,
        config: settings.resolved.config,
        only: args.story.as_deref().map(StoryId::from),
        red_baseline: args.red_baseline,
        unchecked: args.unchecked,
        branch: args.branch.clone(),
        fresh: args.fresh,
        spec_dir: settings.spec_dir,
        exports: settings.exports,
        warnings: settings.warnings,
        limit_given,
    })
}

/// A dry run writes nothing to the project, so the request's plan is a temporary file.
fn dry_run_request(plan: &OneStoryPlan, args: &RunArgs, context: &Context) -> Outcome {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join(plan.path.file_name().unwrap_or_default());
    fs::write(&path, plan.text())?;
    dry_run(read(args, Some(&path), context)?, args)
}

fn dry_run(ready: Ready, args: &RunArgs) -> Outcome {
    let branch = ready.branch()?;
    let findings: Vec<Finding> = ready.examine()?;
    let is_refused = findings.iter().any(|finding| finding.health == Health::Bad);
    let code = if is_refused { Kind::Usage.exit_code() } else { 0 };
    let only = ready.request.only.clone();
    let warnings = [ready.request.warnings.clone(), ready.plan_warnings()].concat();
    let plan_name = ready.plan_name();
    let run = RunId::from("RUN-ID");
    let spaces = ready.workspaces(&run, Path::new(""))?;
    let (mut context, rules) = ready.into_context((run, PathBuf::new()), &branch, spaces, Signals::none())?;
    let copies = tempfile::tempdir()?;
    let user = PlanFile::open(context.plan.location().clone())?;
    (context.plan, _) =
        RunPlan::open_read_only(&context.git, user, &branch.tip, &branch.head, copies.path()).map_err(RunError::from)?;
    let plan = context.plan.plan();
    let story = match select(plan, &Progress::default(), only.as_ref()) {
        Selection::Story { index } => Some(&plan.stories[index]),
        Selection::AllDone | Selection::NothingRunnable { .. } => None,
    };
    let prompt = story.map(|story| first_prompt(&context, story)).transpose()?;
    let prompt = prompt.map(|prompt| redactor_from_environment(&[]).redact(&prompt).into_owned());
    let checks = story.map_or(&[][..], |story| context.own_checks(&story.id));
    let commands = |checks: &[Check]| checks.iter().map(|check| check.command.display()).collect::<Vec<_>>();
    if args.json {
        let value = serde_json::json!({
            "plan": plan_name,
            "branch": context.setup.branch,
            "base": branch.tip,
            "target": branch.target,
            "agent": context.setup.config.agent.name.name(),
            "story": story,
            "checks": commands(checks),
            "gates": commands(&context.setup.gates),
            "limits": rules.limits,
            "prompt": prompt,
            "problems": findings.iter().filter(|f| f.health == Health::Bad).map(|f| &f.message).collect::<Vec<_>>(),
        });
        print_json(&value)?;
        return Ok(code);
    }
    let mut out = String::new();
    let mut fact = |name: &str, text: &str| out.push_str(&format!("{name:<9}{}\n", printable_line(text)));
    fact("Plan", &plan_name);
    let how = if branch.at.is_some() { "continued at" } else { "new at" };
    fact("Branch", &format!("{} ({how} {})", context.setup.branch, branch.tip.short()));
    fact("Agent", context.setup.config.agent.name.name());
    fact("Story", &story.map_or_else(|| "none open".to_owned(), |story| format!("{}: {}", story.id, story.title)));
    for (name, list) in [("Check", checks), ("Gate", &context.setup.gates[..])] {
        for command in commands(list) {
            fact(name, &command);
        }
    }
    fact("Limits", &limits(&rules.limits));
    for text in &warnings {
        fact("Note", text);
    }
    for finding in findings.iter().filter(|finding| finding.health == Health::Bad) {
        fact("Problem", &finding.message);
    }
    if let Some(prompt) = prompt {
        out.push_str(&format!("\n--- first prompt ---\n{prompt}"));
    }
    print(&printable(&out))?;
    Ok(code)
}

fn limits(limits: &Limits) -> String {
    let iterations = match limits.max_iterations {
        0 => "no iteration limit".to_owned(),
        most => plural(most as usize, "iteration", "iterations"),
    };
    let attempts = plural(limits.attempts as usize, "attempt", "attempts");
    let turns = plural(limits.turns as usize, "turn", "turns");
    format!(
        "{iterations}, {attempts} per story, {turns} per attempt, {} per turn, {} in total",
        limits.turn_time, limits.total_time
    )
}
