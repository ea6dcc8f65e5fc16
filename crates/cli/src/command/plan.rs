//! `verdone plan`: one file per subcommand.

mod approve;
mod lint;
mod new;
mod show;

use verdone_runtime::project::Project;
use verdone_runtime::project::config_file::Flags;
use verdone_runtime::project::plan_file::{self, PlanFile};

use super::{Context, Outcome};
use crate::args::PlanCommand;
use crate::error::CliError;

pub(super) use new::run_planning_mode;

pub(super) fn run(command: &PlanCommand, context: &Context) -> Outcome {
    match command {
        PlanCommand::New(args) => new::run(args, context),
        PlanCommand::Approve(args) => approve::run(args, context),
        PlanCommand::Lint(args) => lint::run(args, context),
        PlanCommand::Show(args) => show::run(args, context),
    }
}

/// The named plan, or else the one from the settings.
pub(super) fn open(plan: Option<&str>, context: &Context) -> Result<(Project, PlanFile), CliError> {
    let project = context.project()?;
    let settings = context.settings(&project, &Flags::default())?;
    let location = plan_file::find(&context.plan_request(&project, &settings, plan))?;
    Ok((project, PlanFile::open(location)?))
}
