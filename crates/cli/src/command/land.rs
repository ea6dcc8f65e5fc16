//! `verdone land`.

use verdone_core::journal::update::{Reporter, Update};
use verdone_core::verify::{Proof, UnknownProof};
use verdone_report::plural;
use verdone_runtime::process::signal::Signals;
use verdone_runtime::project::Project;
use verdone_runtime::project::config_file::Flags;
use verdone_runtime::run::land::{LandRequest, Landable, Landed, Waiting, land, preview};

use super::reporter::reporter;
use super::{Context, Outcome};
use crate::args::LandArgs;
use crate::error::CliError;
use crate::terminal::{print, print_json, printable_line};

pub(super) fn run(args: &LandArgs, context: &Context) -> Outcome {
    let project = context.project()?;
    let proof = args.proof.as_deref().map(str::parse).transpose();
    let proof: Option<Proof> = proof.map_err(|error: UnknownProof| CliError::usage(format!("--proof: {error}")))?;
    if args.dry_run {
        return dry_run(&project, args, proof, context);
    }
    let landed = bring(&project, args.branch.as_deref(), proof, args.json, context)?;
    if args.json {
        print_json(&json(&landed))?;
    } else {
        print(&(printable_line(&sentence(&landed)) + "\n"))?;
    }
    Ok(0)
}

/// Lands a branch and reports it.
pub(super) fn land_branch(project: &Project, branch: Option<&str>, context: &Context) -> Result<(), CliError> {
    let landed = bring(project, branch, None, false, context)?;
    Ok(print(&(printable_line(&sentence(&landed)) + "\n"))?)
}

fn bring(
    project: &Project,
    branch: Option<&str>,
    proof: Option<Proof>,
    quiet: bool,
    context: &Context,
) -> Result<Landed, CliError> {
    let settings = context.settings(project, &Flags::default())?;
    let signals = Signals::install().map_err(|error| CliError::error(format!("cannot install signal handlers: {error}")))?;
    let request = LandRequest { project, config: &settings.resolved.config, branch, proof };
    if quiet {
        return Ok(land(&request, &signals, &mut Silent)?);
    }
    Ok(land(&request, &signals, &mut reporter(false, false, &signals, context))?)
}

/// Reports nothing: with --json, only JSON is printed.
struct Silent;

impl Reporter for Silent {
    fn report(&mut self, _: Update<'_>) {}
}

fn dry_run(project: &Project, args: &LandArgs, proof: Option<Proof>, context: &Context) -> Outcome {
    let settings = context.settings(project, &Flags::default())?;
    let config = &settings.resolved.config;
    let found = preview(&LandRequest { project, config, branch: args.branch.as_deref(), proof })?;
    if args.json {
        let list: Vec<_> = found
            .iter()
            .map(|(waiting, landable)| {
                serde_json::json!({
                    "branch": waiting.branch,
                    "commits": waiting.commits,
                    "landable": landable.count,
                    "held_back": landable.held_back.as_ref().map(|held| &held.reason),
                    "target": waiting.target,
                    "fast_forward": waiting.behind == 0,
                })
            })
            .collect();
        print_json(&serde_json::json!(list))?;
        return Ok(0);
    }
    let line = |(waiting, landable): &(Waiting, Landable)| {
        let stays = landable.held_back.as_ref().map_or_else(String::new, |held| {
            let count = match landable.count {
                0 => "none of them can land".to_owned(),
                1 => "only 1 of them lands".to_owned(),
                count => format!("only {count} of them land"),
            };
            format!("; {count}: {}", held.reason)
        });
        printable_line(&format!("{}{stays}", waiting.sentence())) + "\n"
    };
    let lines: String = found.iter().map(line).collect();
    print(if lines.is_empty() { "Nothing to land.\n" } else { &lines })?;
    Ok(0)
}

fn sentence(landed: &Landed) -> String {
    let Landed { branch, into, from, to, commits, left, reapplied } = landed;
    if *commits == 0 {
        return format!("Nothing to land: {into} has every commit of {branch}.");
    }
    let how = if *reapplied { ", re-applied and verified again" } else { "" };
    let left = if *left > 0 {
        format!("; {} on {branch}", plural(*left as usize, "commit stays", "commits stay"))
    } else {
        String::new()
    };
    let commits = plural(*commits as usize, "commit", "commits");
    format!("Landed {commits} on {into}{how}: {}..{}{left}", from.short(), to.short())
}

fn json(landed: &Landed) -> serde_json::Value {
    serde_json::json!({
        "branch": landed.branch,
        "into": landed.into,
        "from": landed.from,
        "to": landed.to,
        "commits": landed.commits,
        "left": landed.left,
        "reapplied": landed.reapplied,
    })
}
