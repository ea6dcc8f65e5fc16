//! `verdone claim`: what an agent says, kept as what it is.

use verdone_core::config::nearest;
use verdone_core::done::{Condition, DoneSettings};
use verdone_runtime::claims::{ClaimError, Speaker, keep};
use verdone_runtime::config_file::Flags;
use verdone_runtime::process::redactor_from_environment;

use super::{Context, Outcome};
use crate::args::ClaimArgs;
use crate::error::CliError;
use crate::terminal::{print, printable};

pub(super) fn run(args: &ClaimArgs, context: &Context) -> Outcome {
    let project = context.project()?;
    let done = context.settings(&project, &Flags::default())?.resolved.config.done;
    claimable(args, &done)?;
    let speaker = Speaker::find(&project.root, args.session.as_deref())?;
    let redactor = redactor_from_environment(&[]);
    let claim = keep(&project.root, &speaker, &args.name, &args.note, args.complexity, &redactor)?;
    print(&printable(&format!("Kept as a claim, which is no proof: {}: {}\n", claim.name, claim.note)))?;
    Ok(0)
}

fn claimable(args: &ClaimArgs, done: &DoneSettings) -> Result<(), CliError> {
    let name = &args.name;
    match done.can_be_claimed(name) {
        None => {
            let names = done.names();
            let hint = match nearest(name, names.iter().copied()) {
                Some(meant) => format!("did you mean {meant}?"),
                None => "verdone done lists the conditions".to_owned(),
            };
            return Err(CliError::usage(format!("no condition is called {name:?}")).hint(hint));
        }
        Some(false) => {
            let prover = done.prover_of(name).map(|prover| prover.to_string()).unwrap_or_default();
            let text = format!("{name} cannot be claimed: it is proven by {prover}");
            return Err(CliError::usage(text).hint("verdone done says what is missing, and what to do"));
        }
        Some(true) => {}
    }
    let classifies = Condition::of(name) == Some(Condition::TaskClassified);
    match (classifies, args.complexity) {
        (true, None) => Err(CliError::usage("task_classified needs a complexity").hint("add --complexity N, 1 to 10")),
        (false, Some(_)) => Err(CliError::usage("--complexity belongs to task_classified")),
        (true, Some(_)) | (false, None) => Ok(()),
    }
}

impl From<ClaimError> for CliError {
    fn from(error: ClaimError) -> Self {
        match &error {
            ClaimError::NoSession => Self::usage(error.to_string()).hint("name it with --session ID"),
            ClaimError::NoNote => Self::usage(error.to_string()).hint("say why it holds: --note TEXT"),
            ClaimError::TooMany | ClaimError::Io(_) => Self::error(error.to_string()),
        }
    }
}
