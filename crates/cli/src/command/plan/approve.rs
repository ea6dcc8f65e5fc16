//! `verdone plan approve`: shows every command of an agent's plan and asks once.

use verdone_core::done::{Approval, Condition};
use verdone_report::plural;
use verdone_runtime::project::approval::Approvals;
use verdone_runtime::project::config_file::Flags;
use verdone_runtime::project::shown;
use verdone_runtime::session::Loops;

use super::{Context, Outcome, open};
use crate::args::PlanApproveArgs;
use crate::command::users_own::refuse_agents;
use crate::error::CliError;
use crate::question::confirm;
use crate::terminal::{print, printable, printable_line};

pub(super) fn run(args: &PlanApproveArgs, context: &Context) -> Outcome {
    let (project, plan) = open(args.plan.as_deref(), context)?;
    let name = shown(plan.path(), &project.root);
    let fingerprint = plan.document().fingerprint();
    let mut approvals = Approvals::read(&project.root)?;
    // The user's own plan runs without approval. A condition may still require it, and so do stories added during a loop.
    let done = context.settings(&project, &Flags::default())?.resolved.config.done;
    let looping = Loops::new(&project.root).are_about(plan.path()).unwrap_or(true);
    let wanted = looping || done.requires(Condition::PlanApproved.name());
    let here = Approvals::read(&project.root)?.made_here();
    let approved = here.state(&name, || fingerprint.clone()) == Approval::Approved;
    let own = wanted && !approved && approvals.missing(&name, || fingerprint.clone()).is_none();
    if !own && approvals.missing(&name, || fingerprint.clone()).is_none() {
        print(&printable(&format!("{name} needs no approval: it is yours, or already approved.\n")))?;
        return Ok(0);
    }
    let mut out = String::new();
    let mut commands = 0;
    for story in &plan.plan().stories {
        for check in story.checks.iter().chain(&story.maybe_checks) {
            commands += 1;
            out.push_str(&format!("{:<10} {}\n", printable_line(story.id.as_str()), printable_line(check)));
        }
    }
    out.push_str(&format!("{name} would run {}.\n", plural(commands, "command", "commands")));
    print(&printable(&out))?;
    refuse_agents("approve a plan", "verdone plan approve", context)?;
    if !args.yes && !confirmed(context)? {
        return Ok(4);
    }
    if own {
        approvals.approve_own(&name, &fingerprint)?;
    } else {
        approvals.approve(&name, &fingerprint)?;
    }
    print("Approved in its current form.\n")?;
    Ok(0)
}

fn confirmed(context: &Context) -> Result<bool, CliError> {
    if !context.terminal.can_ask {
        return Err(
            CliError::usage("there is no terminal to ask for confirmation").hint("read the commands above, then add --yes")
        );
    }
    Ok(confirm("Run these commands unattended?")?)
}
