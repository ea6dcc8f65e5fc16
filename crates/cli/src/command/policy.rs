//! `verdone policy`: one file per subcommand.

mod check;
mod list;
mod test;

use verdone_core::policy::Source;
use verdone_runtime::guard::{PolicyInForce, policy_of};

use super::{Context, Outcome};
use crate::args::PolicyCommand;
use crate::error::CliError;

pub(super) fn run(command: &PolicyCommand, context: &Context) -> Outcome {
    match command {
        PolicyCommand::Check(args) => check::run(args, context),
        PolicyCommand::List(args) => list::run(args, context),
        PolicyCommand::Test(_) => test::run(context),
    }
}

fn in_force(context: &Context) -> Result<PolicyInForce, CliError> {
    let project = context.project()?;
    Ok(policy_of(&project.root, &project.git_top)?)
}

/// Where a rule is defined.
fn place(source: &Source) -> String {
    match source {
        Source::BuiltIn => "built in".to_owned(),
        Source::File { path, line } => format!("{path}:{line}"),
    }
}
