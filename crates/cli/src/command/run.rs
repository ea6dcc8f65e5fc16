//! `verdone run`: the loop, or with `--dry-run` what its first step would be.

use std::path::PathBuf;

use verdone_core::check::Check;
use verdone_core::config::Limits;
use verdone_core::id::{RunId, StoryId};
use verdone_core::plan::{self, Progress, Selection};
use verdone_core::update::{Reporter, Update};
use verdone_report::plural;
use verdone_runtime::land::waiting;
use verdone_runtime::place::{Choice, Wanted, settle};
use verdone_runtime::preflight::{Finding, Health};
use verdone_runtime::process::redactor_from_environment;
use verdone_runtime::run::{Ready, RunRequest, WorkTree};
use verdone_runtime::signal::Signals;
use verdone_runtime::step::build_prompt;

use super::reporter::reporter;
use super::{Context, Outcome, plan as plan_command};
use crate::args::{Mode, RunArgs};
use crate::error::CliError;
use crate::terminal::{print, print_json, printable, printable_line};

pub(super) fn run(args: &RunArgs, context: &Context) -> Outcome {
    if args.mode == Mode::Planning {
        if args.branch.is_some() || args.worktree {
            return Err(CliError::usage("--branch and --worktree are for building, not for planning"));
        }
        return plan_command::plan_for(args, context);
    }
    if args.dry_run {
        return dry_run(read(args, context)?, args);
    }
    let signals = Signals::install().map_err(|error| CliError::error(format!("signals cannot be handled: {error}")))?;
    let mut reporter = reporter(args.json, args.quiet, &signals, context);
    if args.worktree {
        return in_worktree(args, context, signals, &mut reporter);
    }
    let project = context.project()?;
    let ours = WorkTree::take(&project, &signals, &mut reporter)?;
    let ready = settle(&project, args.branch.as_deref(), &mut reporter, || read(args, context))?;
    Ok(ready.run(ours, signals, &mut reporter)?)
}

/// The same in a worktree of its own; the user's checkout is only read.
fn in_worktree(args: &RunArgs, context: &Context, signals: Signals, reporter: &mut dyn Reporter) -> Outcome {
    let here = read(args, context)?;
    let linked = Choice::look(&here, args.branch.as_deref())?.make(&here, reporter)?;
    let there = context.at(linked.start.clone());
    let project = there.project()?;
    let ours = WorkTree::take(&project, &signals, reporter)?;
    let ready = settle(&project, Some(&linked.branch), reporter, || {
        let request = request(args, &there)?;
        let plan = linked.seen_from_here(request.plan);
        Ok::<_, CliError>(Ready::read(RunRequest { plan, ..request })?)
    })?;
    let code = ready.run(ours, signals, reporter)?;
    if let Some(waiting) = waiting(&here.git)?.into_iter().find(|waiting| waiting.branch == linked.branch && waiting.commits > 0)
    {
        let commits = plural(waiting.commits as usize, "commit", "commits");
        reporter.report(Update::Notice { text: &format!("{commits} on branch {}; take over with: verdone land", linked.branch) });
    }
    Ok(code)
}

fn read(args: &RunArgs, context: &Context) -> Result<Ready, CliError> {
    Ok(Ready::read(request(args, context)?)?)
}

fn request(args: &RunArgs, context: &Context) -> Result<RunRequest, CliError> {
    let project = context.project()?;
    let settings = context.settings(&project, &args.flags())?;
    let plan = context.plan_request(&project, &settings, args.plan.as_deref());
    Ok(RunRequest {
        project,
        plan,
        config: settings.resolved.config,
        only: args.story.as_deref().map(StoryId::from),
        red_baseline: args.red_baseline,
        unverified: args.unverified,
        allow_dirty: args.allow_dirty,
        spec_dir: settings.spec_dir,
        exports: settings.exports,
        warnings: settings.warnings,
    })
}

/// Where the run would work: its branch where that is asked for, whether it is new, and the worktree.
struct Aim {
    branch: Option<(Wanted, bool)>,
    worktree: Option<PathBuf>,
}

impl Aim {
    fn of(ready: &Ready, args: &RunArgs) -> Result<Self, CliError> {
        let named = args.branch.as_deref();
        if args.worktree {
            let choice = Choice::look(ready, named)?;
            return Ok(Self { branch: Some((choice.branch, choice.is_new_branch)), worktree: Some(choice.path) });
        }
        let wanted = Wanted::of(&ready.git, named, Some(&ready.plan))?;
        let is_new = |wanted: Wanted| Ok::<_, CliError>((ready.git.branch_tip(&wanted.name)?.is_none(), wanted));
        let branch = wanted.map(is_new).transpose()?.map(|(is_new, wanted)| (wanted, is_new));
        Ok(Self { branch, worktree: None })
    }

    fn matters(&self, finding: &Finding) -> bool {
        match (&self.branch, &self.worktree) {
            (_, Some(_)) => Choice::matters(finding),
            (Some(_), None) => finding.what != "branch",
            (None, None) => true,
        }
    }
}

fn dry_run(ready: Ready, args: &RunArgs) -> Outcome {
    let aim = Aim::of(&ready, args)?;
    let findings: Vec<Finding> = ready.examine()?.into_iter().filter(|finding| aim.matters(finding)).collect();
    let (only, warnings) = (ready.request.only.clone(), ready.request.warnings.clone());
    let plan_name = ready.plan_name();
    let aside = ready.changes_to_set_aside()?;
    let (site, rules) = ready.into_site(RunId::from("dry-run"), PathBuf::new(), Signals::none())?;
    let plan = site.plan.plan();
    let story = match plan::select(plan, &Progress::default(), only.as_ref()) {
        Selection::Story { index } => Some(&plan.stories[index]),
        Selection::AllDone | Selection::NothingRunnable { .. } => None,
    };
    let prompt = story.map(|story| build_prompt(&site, story, None)).transpose()?;
    let prompt = prompt.map(|prompt| redactor_from_environment(&[]).redact(&prompt).into_owned());
    let checks = story.map_or(&[][..], |story| site.own_checks(&story.id));
    let commands = |checks: &[Check]| checks.iter().map(|check| check.command.display()).collect::<Vec<_>>();
    if args.json {
        let value = serde_json::json!({
            "plan": plan_name,
            "branch": aim.branch.as_ref().map(|(wanted, _)| &wanted.name),
            "worktree": aim.worktree,
            "agent": site.config.agent.name,
            "story": story,
            "checks": commands(checks),
            "gates": commands(&site.gates),
            "limits": rules.limits,
            "set_aside": aside,
            "prompt": prompt,
            "problems": findings.iter().filter(|f| f.health == Health::Bad).map(|f| &f.message).collect::<Vec<_>>(),
        });
        print_json(&value)?;
        return Ok(0);
    }
    let mut out = String::new();
    let mut fact = |name: &str, text: &str| out.push_str(&format!("{name:<9}{}\n", printable_line(text)));
    fact("Plan", &plan_name);
    if let Some((wanted, is_new)) = &aim.branch {
        let how = if *is_new { "would be made at HEAD" } else { "exists; the plan on it counts" };
        fact("Branch", &format!("{} ({how}), by {}", wanted.name, wanted.source.words()));
    }
    if let Some(path) = &aim.worktree {
        fact("Place", &path.display().to_string());
    }
    fact("Agent", &site.config.agent.name);
    fact("Story", &story.map_or_else(|| "none is open".to_owned(), |story| format!("{}: {}", story.id, story.title)));
    for (name, list) in [("Check", checks), ("Gate", &site.gates[..])] {
        for command in commands(list) {
            fact(name, &command);
        }
    }
    fact("Limits", &limits(&rules.limits));
    for file in &aside {
        fact("Aside", file);
    }
    for text in &warnings {
        fact("Note", text);
    }
    for finding in findings.iter().filter(|finding| finding.health == Health::Bad) {
        fact("Problem", &finding.message);
    }
    if let Some(prompt) = prompt {
        out.push_str(&format!("\n--- prompt of the first turn ---\n{prompt}"));
    }
    print(&printable(&out))?;
    Ok(0)
}

fn limits(limits: &Limits) -> String {
    let iterations = match limits.max_iterations {
        0 => "no limit of iterations".to_owned(),
        most => plural(most as usize, "iteration", "iterations"),
    };
    let attempts = plural(limits.attempts as usize, "attempt", "attempts");
    let turns = plural(limits.turns as usize, "turn", "turns");
    format!("{iterations}, {attempts} a story, {turns} an attempt, {} a turn, {} in all", limits.turn_time, limits.total_time)
}
