//! What is verified is what is committed: mark the plan tentatively, read the attempt's tree, and check exactly that tree in a
//! workspace that the agent never wrote to.

use verdone_core::check::{CheckOrigin, CheckOutcome, CheckRun};
use verdone_core::event::VerifyOutcome;
use verdone_core::machine::{Attempt, Input, State, Verification};
use verdone_core::plan::Status;
use verdone_core::proof::criteria;
use verdone_core::update::Reporter;

use super::agent_test::agent_test;
use super::as_before::as_before;
use super::brief::outside_scope;
use super::done::hold_to_conditions;
use super::{StepError, attempt_of};
use crate::site::{Candidate, Site};
use crate::tamper;

pub fn verify(site: &mut Site, state: &State, reporter: &mut dyn Reporter) -> Result<Input, StepError> {
    let attempt = attempt_of(state, "verification")?;
    if site.plan.is_committed() {
        site.plan.mark(&attempt.place.story, Status::Done)?;
    }
    let candidate = site.read_attempt()?;
    let mut verification = check(site, state, attempt, &candidate, reporter)?;
    site.candidate = Some(candidate);
    // Before anybody is asked who costs money.
    tamper::look(site, attempt, &mut verification)?;
    hold_to_conditions(site, state, attempt, &mut verification, reporter)?;
    if verification.outcome != VerifyOutcome::Passed {
        site.candidate = None;
        site.plan.unmark()?;
    }
    Ok(Input::Verified(verification))
}

fn check(
    site: &mut Site,
    state: &State,
    attempt: &Attempt,
    candidate: &Candidate,
    reporter: &mut dyn Reporter,
) -> Result<Verification, StepError> {
    let by_agent = site.changed_by_agent(candidate);
    let answer = |outcome, reason: Option<String>, runs: Vec<CheckRun>| Verification {
        outcome,
        tree: Some(candidate.tree.clone()),
        changed: by_agent.len() as u32,
        runs,
        reason,
        restored: candidate.restored.clone(),
        alarms: Vec::new(),
        agent_test: None,
        as_before: None,
        judge: None,
        criteria: Vec::new(),
    };
    if let Some(obstacle) = candidate.obstacle.clone().or_else(|| outside_scope(site, attempt, &by_agent)) {
        return Ok(answer(VerifyOutcome::Refused, Some(obstacle), Vec::new()));
    }
    if by_agent.is_empty() && attempt.place.turn > 0 {
        return Ok(answer(VerifyOutcome::NothingChanged, None, Vec::new()));
    }
    let tree = &candidate.tree;
    let checks = site.checks_of(&attempt.place.story, &candidate.changes);
    let mut runs = site.run_checks(tree, &checks, reporter)?;
    let green = runs.len() == checks.len() && !runs.iter().any(CheckRun::blocks);
    let tested = if green { agent_test(site, attempt, tree, &by_agent, reporter)? } else { None };
    let before = if green { as_before(site, state, attempt, tree, &by_agent, reporter)? } else { None };
    let tests = || tested.iter().flat_map(|tested| tested.tests.before.iter().chain(&tested.tests.after));
    let same = || before.iter().flat_map(|before| &before.runs);
    if runs.iter().chain(tests()).chain(same()).any(|run| run.outcome == CheckOutcome::Interrupted) {
        return Ok(answer(VerifyOutcome::Interrupted, None, runs));
    }
    site.memory.note(tree, &checks, &runs);
    let wrong = tested.as_ref().filter(|tested| tested.wrong);
    runs.extend(wrong.iter().flat_map(|tested| tested.tests.after.iter().cloned()));
    let outcome = if green && wrong.is_none() { VerifyOutcome::Passed } else { VerifyOutcome::Failed };
    let mut verification = answer(outcome, None, runs);
    verification.agent_test = tested.map(|tested| tested.tests);
    verification.as_before = before;
    if let Some(story) = site.plan.plan().story(&attempt.place.story) {
        let doubted = verification.as_before.as_ref().is_some_and(|before| !before.holds());
        let proves = |run: &&CheckRun| !(doubted && run.origin == CheckOrigin::Story);
        let runs: Vec<CheckRun> = verification.runs.iter().filter(proves).cloned().collect();
        verification.criteria = criteria(story, &runs, verification.agent_test.as_ref());
    }
    Ok(verification)
}
