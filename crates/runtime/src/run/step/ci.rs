//! Asks CI about an attempt. CI works on commits, so it gets one with exactly the tree that would be committed, on top of the run's tip.
//! The command belongs to the user: like a lifecycle script, it runs with the user's rights in the project's folder.

use verdone_core::base::id::Oid;
use verdone_core::config::Limits;
use verdone_core::done::{CiFact, CiSettings};
use verdone_core::journal::update::{Reporter, Update};
use verdone_core::plan::Story;

use super::StepError;
use super::turn::within_the_run;
use crate::agent::judge::{ProverContext, ask_ci};
use crate::git::CommitError;
use crate::process::{EnvPlan, Moment, RUN_VARIABLE};
use crate::run::context::RunContext;

/// Waits for the answer, within the run's time limit. A clear answer about a tree is final.
pub(super) fn ask(site: &mut RunContext, story: &Story, tree: &Oid, reporter: &mut dyn Reporter) -> Result<CiFact, StepError> {
    let known = site.ci_answers.iter().find(|(tip, about, _)| *tip == site.tip && about == tree);
    if let Some((.., said)) = known {
        return Ok(said.clone());
    }
    let message = format!(
        "{}: {}\n\nVerdone asks CI about this commit; the work is not verified yet.\n\nVerdone-Run: {}\n",
        story.id, story.title, site.run
    );
    let deadline = site.config.commit.timeout.duration();
    let commit = match site.git.make_ci_commit(&site.run, tree, &site.tip, &message, deadline) {
        Ok(commit) => commit,
        Err(CommitError::Refused { message, .. }) => {
            let said = site.redactor.redact(message.lines().next().unwrap_or_default()).into_owned();
            return Ok(CiFact::Unknown { why: format!("there is no commit that CI could be asked about: {said}") });
        }
        Err(CommitError::Git(error)) => return Err(error.into()),
    };
    reporter.report(Update::Notice { text: &format!("CI is asked about {}", commit.short()) });
    let said = wait_for_answer(site, &commit, reporter);
    if let Err(error) = site.git.drop_ci_commit(&site.run) {
        reporter.report(Update::Notice { text: &format!("the commit for CI is still there: {error}") });
    }
    match &said {
        CiFact::Green { .. } | CiFact::Red { .. } => site.ci_answers.push((site.tip.clone(), tree.clone(), said.clone())),
        CiFact::Off | CiFact::Unknown { .. } => {}
    }
    Ok(said)
}

fn wait_for_answer(site: &RunContext, commit: &Oid, reporter: &mut dyn Reporter) -> CiFact {
    let ci = &site.config.done.ci;
    let limits = within_the_run(&Limits { turn_time: ci.timeout, ..site.config.limits.clone() }, site.clock);
    let settings = CiSettings { timeout: limits.turn_time, ..ci.clone() };
    let court = ProverContext {
        root: &site.root,
        inside: None,
        dir: &site.run_dir,
        env: EnvPlan::default().with(RUN_VARIABLE, site.run.as_str()),
        redactor: &site.redactor,
        limits: &limits,
        seat: None,
    };
    let clock = site.clock;
    let mut on = |moment: Moment<'_>| match moment {
        Moment::Tick => reporter.report(clock.tick()),
        Moment::Line { .. } => {}
    };
    ask_ci(&settings, commit, &court, &site.signals, &mut on)
}
