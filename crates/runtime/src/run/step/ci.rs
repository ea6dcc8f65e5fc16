//! Asks CI about an attempt. CI works on commits, so it gets one with exactly the tree that would be committed, on top of the run's tip.
//! The command belongs to the user: like a lifecycle script, it runs with the user's rights in the project's folder.

use verdone_core::base::id::Oid;
use verdone_core::config::Limits;
use verdone_core::done::{CiFact, CiSettings};
use verdone_core::journal::update::{Reporter, Update};
use verdone_plan::Story;

use super::StepError;
use super::turn::within_the_run;
use crate::agent::judge::{ProverContext, ask_ci};
use crate::git::CommitError;
use crate::process::{EnvPlan, Moment, RUN_VARIABLE};
use crate::run::context::RunContext;

/// Waits for the answer, within the run's time limit. A clear answer about a tree is final.
pub(super) fn ask(context: &mut RunContext, story: &Story, tree: &Oid, reporter: &mut dyn Reporter) -> Result<CiFact, StepError> {
    let known = context.ci_answers.iter().find(|(tip, about, _)| *tip == context.tip && about == tree);
    if let Some((.., said)) = known {
        return Ok(said.clone());
    }
    let message = format!(
        "{}: {}\n\nVerdone asks CI about this commit; the work is not verified yet.\n\nVerdone-Run: {}\n",
        story.id, story.title, context.setup.run
    );
    let deadline = context.setup.config.commit.timeout.duration();
    let commit = match context.git.make_ci_commit(&context.setup.run, tree, &context.tip, &message, deadline) {
        Ok(commit) => commit,
        Err(CommitError::Refused { message, .. }) => {
            let said = context.setup.redactor.redact(message.lines().next().unwrap_or_default()).into_owned();
            return Ok(CiFact::Unknown { why: format!("could not create a commit for CI: {said}") });
        }
        Err(CommitError::Git(error)) => return Err(error.into()),
    };
    reporter.report(Update::Notice { text: &format!("asking CI about {}", commit.short()) });
    let said = wait_for_answer(context, &commit, reporter);
    if let Err(error) = context.git.drop_ci_commit(&context.setup.run) {
        reporter.report(Update::Notice { text: &format!("could not remove the commit for CI: {error}") });
    }
    match &said {
        CiFact::Green { .. } | CiFact::Red { .. } => context.ci_answers.push((context.tip.clone(), tree.clone(), said.clone())),
        CiFact::Off | CiFact::Unknown { .. } => {}
    }
    Ok(said)
}

fn wait_for_answer(context: &RunContext, commit: &Oid, reporter: &mut dyn Reporter) -> CiFact {
    let ci = &context.setup.config.done.ci;
    let limits = within_the_run(&Limits { turn_time: ci.timeout, ..context.setup.config.limits.clone() }, context.setup.clock);
    let settings = CiSettings { timeout: limits.turn_time, ..ci.clone() };
    let court = ProverContext {
        root: &context.setup.root,
        inside: None,
        dir: &context.setup.run_dir,
        env: EnvPlan::default().with(RUN_VARIABLE, context.setup.run.as_str()),
        redactor: &context.setup.redactor,
        limits: &limits,
        seat: None,
    };
    let clock = context.setup.clock;
    let mut on = |moment: Moment<'_>| match moment {
        Moment::Tick => reporter.report(clock.tick()),
        Moment::Line { .. } => {}
    };
    ask_ci(&settings, commit, &court, &context.setup.signals, &mut on)
}
