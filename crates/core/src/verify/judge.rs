//! The judgement: the only place that decides proof and outcome.

use std::collections::BTreeMap;

use super::counts::CheckState;
use super::criteria::criteria;
use super::facts::{JobFacts, OwnCheckBefore};
use super::feedback::feedback;
use super::job::{PlannedCheck, Tree, VerifyJob};
use super::observed::{BuiltTree, Observed, SeenCondition};
use super::outcome::Outcome;
use super::reason::{Doubt, Failure, Note, Reason};
use super::report::{TreeIds, VerifyReport};
use crate::base::proof::Proof;
use crate::check::CheckRun;
use crate::done::JudgeFact;

/// Judges the observations. Anything missing counts as not run, never as passed.
pub fn judge(job: &VerifyJob, observed: &Observed) -> VerifyReport {
    let seen = JobFacts::new(job, observed);
    let failures = failures(&seen);
    let (proof, doubts, notes) = if failures.is_empty() {
        let (proof, notes) = proof_with_notes(&seen);
        (Some(proof), doubts(&seen, proof), notes)
    } else {
        (None, Vec::new(), Vec::new())
    };
    let reasons: Vec<Reason> = [
        failures.into_iter().map(Reason::Failure).collect::<Vec<_>>(),
        doubts.into_iter().map(Reason::Doubt).collect(),
        notes.into_iter().map(Reason::Note).collect(),
    ]
    .concat();
    let outcome = outcome(job, &reasons);
    let wants_feedback = outcome == Outcome::Failed && job.surface.has_agent() && !seen.was_interrupted();
    VerifyReport {
        surface: job.surface,
        story: job.story.as_ref().map(|story| story.id.clone()),
        outcome,
        proof,
        feedback: wants_feedback.then(|| feedback(&seen, &reasons)),
        reasons,
        trees: TreeIds {
            base: job.base.clone(),
            attempt: job.attempt.clone(),
            pristine: seen.tree(Tree::Pristine).cloned(),
            proof: seen.tree(Tree::Proof).cloned(),
        },
        runs: runs(&seen),
        hidden: seen.checks.iter().filter(|check| check.hidden).map(|check| check.check.name.clone()).collect(),
        counts: seen.count_changes(),
        protected: job.protected.clone(),
        autorun: job.autorun.clone(),
        criteria: criteria(&seen, proof),
        conditions: observed.conditions.clone().unwrap_or_default(),
        judge: observed.judge.clone(),
    }
}

fn outcome(job: &VerifyJob, reasons: &[Reason]) -> Outcome {
    let (mut fails, mut is_doubted, mut agent_can_help) = (false, false, false);
    for reason in reasons {
        match reason {
            Reason::Failure(_) => fails = true,
            Reason::Doubt(_) => {
                is_doubted = true;
                agent_can_help |= reason.advice().is_some();
            }
            Reason::Note(_) => {}
        }
    }
    match (fails, is_doubted) {
        (true, _) => Outcome::Failed,
        (false, _) if job.surface.is_reviewed() => Outcome::Accepted,
        (false, false) => Outcome::Done,
        // Do not spend a turn on something the agent cannot change.
        (false, true) if agent_can_help && job.can_give_feedback() => Outcome::Failed,
        (false, true) => Outcome::NeedsReview,
    }
}

/// Why the attempt itself does not pass.
pub(super) fn failures(seen: &JobFacts<'_>) -> Vec<Failure> {
    let job = seen.job;
    if seen.was_interrupted() {
        return vec![Failure::Interrupted];
    }
    if let Some(why) = &job.obstacle {
        return vec![Failure::CannotCommit { why: why.clone() }];
    }
    if job.nothing_changed() {
        return vec![Failure::NothingChanged];
    }
    let mut failures = red_on_attempt(seen);
    if job.surface.is_reviewed() {
        return failures;
    }
    let files = job.out_of_scope();
    if !files.is_empty() {
        failures.push(Failure::OutOfScope { files });
    }
    for condition in seen.observed.conditions.iter().flatten().filter(|condition| job.requires(condition.name())) {
        match condition.clone() {
            SeenCondition::Missing { name, why, todo } => failures.push(Failure::ConditionMissing { name, why, todo }),
            SeenCondition::Met { .. } | SeenCondition::Unknown { .. } => {}
        }
    }
    failures
}

fn red_on_attempt(seen: &JobFacts<'_>) -> Vec<Failure> {
    let (mut failures, mut not_run) = (Vec::new(), Vec::new());
    for check in seen.required() {
        let (name, said) = (check.check.name.clone(), seen.describe(Tree::Attempt, check));
        match seen.state(Tree::Attempt, check) {
            CheckState::Green => {}
            CheckState::Red => failures.push(Failure::CheckFailed { check: name, said }),
            CheckState::Unknown => failures.push(Failure::CheckUnknown { check: name, said }),
            CheckState::Interrupted | CheckState::NotRun => not_run.push(Failure::CheckNotRun { check: name }),
        }
    }
    // If a check fails, later stages are skipped on purpose.
    if failures.is_empty() { not_run } else { failures }
}

/// Why the result depends on changed tests or configuration.
pub(super) fn dependence(seen: &JobFacts<'_>) -> Vec<Doubt> {
    if seen.job.surface.is_reviewed() {
        return Vec::new();
    }
    let fallen = seen.count_changes().into_iter().filter(|change| !change.allowed);
    let mut doubts: Vec<Doubt> = fallen
        .filter_map(|seen| seen.fall.map(|change| Doubt::CountsFell { check: seen.check, tree: seen.tree, change }))
        .collect();
    if !seen.needs_pristine() {
        return doubts;
    }
    if let Some(BuiltTree::Failed { why }) = &seen.observed.pristine {
        doubts.push(Doubt::PristineNotBuilt { why: why.clone() });
        return doubts;
    }
    let failed = |check: &PlannedCheck| {
        let (said, files) = (seen.describe(Tree::Pristine, check), seen.job.unreleased());
        Doubt::PristineFailed { check: check.check.name.clone(), said, files }
    };
    let checks = seen.pristine_checks();
    let (not_run, ran): (Vec<_>, Vec<_>) =
        checks.iter().partition(|check| seen.state(Tree::Pristine, check) == CheckState::NotRun);
    doubts.extend(ran.into_iter().filter(|check| seen.fails_on_pristine(check)).map(failed));
    // One doubt is enough, so the other checks are skipped on purpose.
    if doubts.is_empty() {
        doubts.extend(not_run.into_iter().map(failed));
    }
    doubts
}

/// Why a person has to review work that passes.
fn doubts(seen: &JobFacts<'_>, proof: Proof) -> Vec<Doubt> {
    let job = seen.job;
    if job.surface.is_reviewed() {
        return Vec::new();
    }
    let mut doubts = dependence(seen);
    let minimum = job.required_proof();
    // If the result depends on changed tests, the weak proof is only a consequence.
    if proof < minimum && doubts.is_empty() {
        doubts.push(Doubt::BelowMinimum { proof, minimum });
    }
    if !job.others.is_empty() {
        let files = job.others.iter().map(|other| other.path.clone()).collect();
        let stories = job.others.iter().map(|other| other.story.clone()).collect();
        doubts.push(Doubt::OtherCheckChanged { files, stories });
    }
    let files: Vec<String> = job.autorun.iter().filter(|change| !change.released).map(|change| change.path.clone()).collect();
    if !files.is_empty() {
        doubts.push(Doubt::AutorunChanged { files });
    }
    // Conditions and judge are only asked about work without other problems.
    if seen.observed.conditions.is_some() || doubts.is_empty() {
        doubts.extend(open_conditions(seen));
    }
    if seen.observed.judge.is_some() || doubts.is_empty() {
        doubts.extend(refutation(seen));
    }
    doubts
}

fn open_conditions(seen: &JobFacts<'_>) -> Vec<Doubt> {
    let unknown = |name: &String| {
        let found = seen.observed.conditions.iter().flatten().find(|condition| condition.name() == name);
        let why = match found {
            Some(SeenCondition::Met { .. } | SeenCondition::Missing { .. }) => return None,
            Some(SeenCondition::Unknown { why, .. }) => why.clone(),
            None => "it was not examined".to_owned(),
        };
        Some(Doubt::ConditionUnknown { name: name.clone(), why })
    };
    seen.job.conditions.iter().filter_map(unknown).collect()
}

fn refutation(seen: &JobFacts<'_>) -> Option<Doubt> {
    let is_asked = seen.job.judge;
    match &seen.observed.judge {
        Some(JudgeFact::Refuted { findings }) => Some(Doubt::JudgeRefuted { findings: findings.clone() }),
        Some(JudgeFact::Holds) => None,
        Some(JudgeFact::Unknown { why }) => is_asked.then(|| Doubt::JudgeUnknown { why: why.clone() }),
        Some(JudgeFact::Off) | None => is_asked.then(|| Doubt::JudgeUnknown { why: "it was not asked".to_owned() }),
    }
}

/// How well work is proven whose checks all pass, and why.
pub(super) fn proof_with_notes(seen: &JobFacts<'_>) -> (Proof, Vec<Note>) {
    let (mut proof, mut notes) = proof_from_checks(seen);
    if proof > Proof::AgentTested && !seen.observed.red_with_old_tests.is_empty() {
        proof = Proof::AgentTested;
        let limits = seen.observed.red_with_old_tests.iter().map(|check| Note::RedWithOldTests { check: check.clone() });
        // Where only one reason is shown, it should be why the proof is not better.
        notes.splice(0..0, limits);
    }
    match seen.job.at_most.filter(|at_most| proof > *at_most) {
        Some(at_most) => {
            notes.push(Note::ProofLimited { at_most });
            (at_most, notes)
        }
        None => (proof, notes),
    }
}

fn proof_from_checks(seen: &JobFacts<'_>) -> (Proof, Vec<Note>) {
    let job = seen.job;
    if seen.required().next().is_none() {
        return (Proof::Unchecked, vec![Note::NoCheck]);
    }
    let mut notes = flaky(seen);
    if !dependence(seen).is_empty() {
        return (Proof::Untested, notes);
    }
    if job.surface.is_reviewed() && seen.needs_pristine() {
        notes.push(Note::PristineSkipped { files: job.unreleased() });
        return (Proof::Untested, notes);
    }
    let limits = proof_limits(seen);
    let was_red = seen.own().any(|own| seen.before(own) == OwnCheckBefore::Red);
    let is_limited = !limits.is_empty() || seen.own().any(|own| seen.exists_only_in_attempt(own));
    notes.extend(own_checks(seen));
    notes.extend(limits);
    if was_red && !is_limited {
        return (Proof::Verified, notes);
    }
    if let Some(check) = seen.shown_by_tests() {
        notes.insert(0, Note::TestsProveWork { check: check.check.name.clone(), files: job.brought_tests() });
        return (Proof::AgentTested, notes);
    }
    // Without a base there is no attempt that could have added tests.
    notes.extend(job.base.is_some().then(|| seen.not_shown_because()));
    (Proof::Untested, notes)
}

/// Why the work is agent-tested at best.
fn proof_limits(seen: &JobFacts<'_>) -> Vec<Note> {
    let files = seen.job.released();
    let released = (!files.is_empty()).then_some(Note::ScopeNamesProtected { files });
    let lowered = seen.count_changes().into_iter().filter(|change| change.tree == Tree::Attempt);
    let lowered = lowered.filter_map(|seen| seen.fall.map(|change| Note::CountsLowered { check: seen.check, change }));
    released.into_iter().chain(lowered).collect()
}

fn own_checks(seen: &JobFacts<'_>) -> Vec<Note> {
    let notes: Vec<Note> =
        seen.own().map(|own| Note::OwnCheck { check: own.check.name.clone(), before: seen.before(own) }).collect();
    if notes.is_empty() && seen.job.story.is_some() { vec![Note::NoOwnCheck] } else { notes }
}

fn flaky(seen: &JobFacts<'_>) -> Vec<Note> {
    let is_flaky = |check: &&PlannedCheck| seen.result(Tree::Attempt, check).is_some_and(|result| result.run.flaky);
    seen.checks.iter().filter(is_flaky).map(|check| Note::Flaky { check: check.check.name.clone() }).collect()
}

/// A result that several checks share is listed under each of their names.
fn runs(seen: &JobFacts<'_>) -> BTreeMap<Tree, Vec<CheckRun>> {
    let on = |tree: Tree| -> Vec<CheckRun> {
        let run = |check: &PlannedCheck| {
            let result = seen.result(tree, check)?;
            let (name, origin) = (check.check.name.clone(), check.check.origin.clone());
            Some(CheckRun { name, origin, advisory: !check.is_required(), ..result.run.clone() })
        };
        seen.checks.iter().filter_map(run).collect()
    };
    Tree::ALL.into_iter().map(|tree| (tree, on(tree))).filter(|(_, runs)| !runs.is_empty()).collect()
}
