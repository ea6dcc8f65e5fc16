//! `verdone land`.

use verdone_core::update::{Reporter, Update};
use verdone_core::verify::{Proof, UnknownProof};
use verdone_report::plural;
use verdone_runtime::config_file::Flags;
use verdone_runtime::project::Project;
use verdone_runtime::run::land::{LandRequest, Landed, land, waiting};
use verdone_runtime::signal::Signals;

use super::reporter::reporter;
use super::{Context, Outcome};
use crate::args::LandArgs;
use crate::error::CliError;
use crate::terminal::{print, print_json, printable_line};

pub(super) fn run(args: &LandArgs, context: &Context) -> Outcome {
    let project = context.project()?;
    if args.dry_run {
        return dry_run(&project, args);
    }
    let proof = args.proof.as_deref().map(str::parse).transpose();
    let proof: Option<Proof> = proof.map_err(|error: UnknownProof| CliError::usage(format!("--proof: {error}")))?;
    let landed = bring(&project, args.branch.as_deref(), proof, args.json, context)?;
    if args.json {
        print_json(&json(&landed))?;
    } else {
        print(&(printable_line(&sentence(&landed)) + "\n"))?;
    }
    Ok(0)
}

/// Lands a branch and says so.
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
    let signals = Signals::install().map_err(|error| CliError::error(format!("signals cannot be handled: {error}")))?;
    let request = LandRequest { project, config: &settings.resolved.config, branch, proof };
    if quiet {
        return Ok(land(&request, &signals, &mut Silent)?);
    }
    Ok(land(&request, &signals, &mut reporter(false, false, &signals, context))?)
}

/// JSON is all that is printed.
struct Silent;

impl Reporter for Silent {
    fn report(&mut self, _: Update<'_>) {}
}

fn dry_run(project: &Project, args: &LandArgs) -> Outcome {
    let all = waiting(project)?;
    let found = all.iter().filter(|waiting| args.branch.as_ref().is_none_or(|branch| waiting.branch == *branch));
    if args.json {
        let list: Vec<_> = found
            .map(|waiting| {
                serde_json::json!({
                    "branch": waiting.branch,
                    "commits": waiting.commits,
                    "target": waiting.target,
                    "fast_forward": waiting.behind == 0,
                })
            })
            .collect();
        print_json(&serde_json::json!(list))?;
        return Ok(0);
    }
    let lines: Vec<String> = found.map(|waiting| printable_line(&waiting.sentence()) + "\n").collect();
    print(&if lines.is_empty() { "Nothing to land.\n".to_owned() } else { lines.concat() })?;
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
