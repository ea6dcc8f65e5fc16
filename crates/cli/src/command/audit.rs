//! `verdone audit`.

use verdone_core::evidence::audit::{Audit, RerunOutcome, audit};
use verdone_report::audit_markdown;
use verdone_runtime::audit::{Allowed, gather, rerun};
use verdone_runtime::git::Git;
use verdone_runtime::process::signal::Signals;
use verdone_runtime::project::Project;
use verdone_runtime::project::config_file::Flags;
use verdone_runtime::store::Store;

use super::{Context, Outcome};
use crate::args::AuditArgs;
use crate::error::{CliError, Kind};
use crate::terminal::{print, print_json, printable, say};

pub(super) fn run(args: &AuditArgs, context: &Context) -> Outcome {
    let project = context.project()?;
    let git = Git::open(&project.root)?;
    let mut found = audit(&gather(&git, &Store::new(&project.root), args.range.as_deref())?);
    let stopped = if args.rerun { run_again(&mut found, &git, &project, args.yes, context)? } else { None };
    if args.json {
        print_json(&serde_json::json!(found))?;
    } else if args.markdown {
        print(&audit_markdown(&found))?;
    } else {
        print(&verdone_report::audit(&found, &context.terminal.report_style()))?;
    }
    Ok(stopped.unwrap_or_else(|| exit_code(&found)))
}

/// Runs the checks again; returns an exit code if a signal interrupted them.
fn run_again(found: &mut Audit, git: &Git, project: &Project, yes: bool, context: &Context) -> Result<Option<u8>, CliError> {
    let signals = Signals::install().map_err(|error| CliError::error(format!("cannot install signal handlers: {error}")))?;
    let settings = context.settings(project, &Flags::default())?;
    let plan = context.plan_request(project, &settings, None);
    let allowed = Allowed::for_project(project, git, &plan, settings.resolved.config, yes);
    rerun(found, project, &allowed, &signals, &mut |story, check| {
        let line = format!("verifying {} ({}) again: {check}", story.name(), story.commit.short());
        say(&format!("{}\n", printable(&line)));
    })?;
    if not_run(found) {
        say(
            "note: commands that are not in your plan, settings or runs were not run; read them, then: verdone audit --rerun --yes\n",
        );
    }
    Ok(signals.requested().map(verdone_core::base::finish::StopSignal::exit_code))
}

/// Whether any command from a note was not run.
fn not_run(found: &Audit) -> bool {
    found.stories.iter().flat_map(|story| &story.reruns).any(|run| run.outcome == RerunOutcome::NotAllowed)
}

fn exit_code(found: &Audit) -> u8 {
    if !found.holds {
        return Kind::Error.exit_code();
    }
    if (found.stories.is_empty() && found.squashed.is_empty()) || not_run(found) { Kind::Human.exit_code() } else { 0 }
}
