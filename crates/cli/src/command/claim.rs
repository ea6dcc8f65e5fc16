//! `verdone claim`: records what an agent says, as a claim, and renews the state files of other loops.

use verdone_core::done::{Condition, DoneSettings};
use verdone_runtime::process::redactor_from_environment;
use verdone_runtime::project::config_file::Flags;
use verdone_runtime::project::ralph_state;
use verdone_runtime::session::claims::{ClaimError, Speaker, keep};
use verdone_runtime::session::done::{ConditionRequest, renew_state};
use verdone_text::suggest::nearest;

use super::done::report_state_files;
use super::{Context, Outcome};
use crate::args::ClaimArgs;
use crate::error::CliError;
use crate::terminal::{print, printable};

pub(super) fn run(args: &ClaimArgs, context: &Context) -> Outcome {
    let project = context.project()?;
    let config = context.settings(&project, &Flags::default())?.resolved.config;
    claimable(args, &config.done)?;
    if args.session.as_deref().is_some_and(|id| id.trim().is_empty()) {
        return Err(CliError::usage("the session id is empty").hint("inside a session, omit --session; otherwise give its id"));
    }
    let speaker = Speaker::find(&project.root, args.session.as_deref())?;
    let redactor = redactor_from_environment(&[]);
    let claim = keep(&project.root, &speaker, &args.name, &args.note, args.complexity, &redactor)?;
    print(&printable(&format!("Recorded as a claim, not as proof: {}: {}\n", claim.name, claim.note)))?;
    // In a run, the driver writes the state after each verification.
    if let Speaker::Session(session) = &speaker {
        let state_home = ralph_state::home();
        let root = &project.root;
        let about = ConditionRequest { root, session, config: &config, checked: None, about: None, story: None, state_home };
        report_state_files(renew_state(&about));
    }
    Ok(0)
}

fn claimable(args: &ClaimArgs, done: &DoneSettings) -> Result<(), CliError> {
    let name = &args.name;
    let claimed =
        || done.names().into_iter().filter(|name| done.can_be_claimed(name) == Some(true)).collect::<Vec<_>>().join(", ");
    match done.can_be_claimed(name) {
        None if name.trim().is_empty() => {
            let hint = format!("conditions that can be claimed: {}", claimed());
            return Err(CliError::usage("the condition name is empty").hint(hint));
        }
        None => {
            let hint = match nearest(name, done.names()) {
                Some(meant) => format!("did you mean {meant}?"),
                None => format!("conditions that can be claimed: {}", claimed()),
            };
            return Err(CliError::usage(format!("unknown condition {name:?}")).hint(hint));
        }
        Some(false) => {
            let prover = done.prover_of(name).map(|prover| prover.to_string()).unwrap_or_default();
            let text = format!("{name} cannot be claimed: it is proven by {prover}");
            return Err(CliError::usage(text).hint("verdone done shows what is missing and what to do"));
        }
        Some(true) => {}
    }
    let classifies = Condition::from_name(name) == Some(Condition::TaskClassified);
    match (classifies, args.complexity) {
        (true, None) => Err(CliError::usage("task_classified needs a complexity").hint("add --complexity N, 1 to 10")),
        (false, Some(_)) => Err(CliError::usage("--complexity is only for task_classified")),
        (true, Some(_)) | (false, None) => Ok(()),
    }
}

impl From<ClaimError> for CliError {
    fn from(error: ClaimError) -> Self {
        match &error {
            ClaimError::NoSession => Self::usage(error.to_string()).hint("name it with --session ID"),
            ClaimError::NoNote => Self::usage(error.to_string()).hint("say why it is met: --note TEXT"),
            ClaimError::TooMany | ClaimError::Io(_) => Self::error(error.to_string()),
        }
    }
}
