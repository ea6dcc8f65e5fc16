//! Verifies exactly what will be committed: marks the plan tentatively, reads the attempt's tree, and judges that tree.

use std::collections::BTreeSet;

use verdone_core::base::id::{Oid, StoryId};
use verdone_core::check::{Check, CommandSpec};
use verdone_core::done::{JudgeRecord, stated_complexity};
use verdone_core::engine::run::{self, Attempt, Input, State};
use verdone_core::journal::update::Reporter;
use verdone_core::plan::minimum_proof;
use verdone_core::policy::OnScope;
use verdone_core::protect::{check_scripts, files_read_by};
use verdone_core::verify::{FeedbackTurn, JobGate, JobStory, Outcome, Proof, Surface, VerifyJob, VerifyReport, changes_of};
use verdone_plan::{Status, Story};

use super::conditions::{self, Requirements};
use super::{StepError, attempt_of, old_tests};
use crate::git::ChangedPath;
use crate::run::context::RunContext;
use crate::verify::{Pause, Trees, TreesRequest, Verification, earlier_checks, may_weaken_checks, other_checks};

pub fn verify(context: &mut RunContext, state: &State, reporter: &mut dyn Reporter) -> Result<Input, StepError> {
    let attempt = attempt_of(state, "verification")?;
    if context.plan.is_committed() {
        context.plan.mark(&attempt.place.story, Status::Done)?;
    }
    let candidate = context.read_attempt()?;
    let changed = context.changed_by_agent(&candidate);
    let mut asked = conditions::asked(context, attempt, &changed)?;
    let mut verification = begin(context, state, attempt, &candidate.tree, &changed, &asked)?;
    verification.job.obstacle.clone_from(&candidate.obstacle);
    let restored = candidate.restored.clone();
    context.attempt.candidate = Some(candidate);
    let mut judge: Option<JudgeRecord> = None;
    loop {
        match context.on_bench(|bench, results| verification.advance(bench, results, reporter))? {
            Pause::Conditions => {
                ask_conditions(context, attempt, &mut asked, &mut verification, reporter)?;
            }
            Pause::Judge => {
                let record = conditions::refute(context, state, attempt, &verification.report(), reporter)?;
                // After a signal, the missing answer is not the judge's fault.
                verification.observed.interrupted = record.proved_nothing() && context.setup.signals.requested().is_some();
                verification.observed.judge = Some(record.said.clone());
                judge = Some(record);
            }
            Pause::Done => break,
        }
    }
    let report = old_tests::report(context, &mut verification, reporter)?;
    conditions::tell_other_loops(context, state, attempt, &asked, &report, reporter);
    if report.outcome == Outcome::Failed {
        context.attempt.candidate = None;
        context.plan.unmark()?;
    }
    let changed = changed.len() as u32;
    Ok(Input::Verified(Box::new(run::Verification { changed, restored, report, judge })))
}

/// What a verification in the middle of a turn found.
#[derive(Debug)]
pub struct MidTurnReport {
    pub report: VerifyReport,
    /// Who is asked only after the turn.
    pub left: Option<&'static str>,
}

/// Verifies the files as they are now, during a turn. The results of its checks count for the verification after the turn, which is the
/// one that decides. Judge and CI are not asked: the agent may still change everything.
pub fn verify_during_turn(
    context: &mut RunContext,
    state: &State,
    reporter: &mut dyn Reporter,
) -> Result<MidTurnReport, StepError> {
    let attempt = attempt_of(state, "verification")?;
    if context.plan.is_committed() {
        context.plan.mark(&attempt.place.story, Status::Done)?;
    }
    let found = verify_candidate(context, state, attempt, reporter);
    context.plan.unmark()?;
    found
}

fn verify_candidate(
    context: &mut RunContext,
    state: &State,
    attempt: &Attempt,
    reporter: &mut dyn Reporter,
) -> Result<MidTurnReport, StepError> {
    let candidate = context.read_attempt()?;
    let changed = context.changed_by_agent(&candidate);
    let mut asked = conditions::asked(context, attempt, &changed)?;
    let asks_ci = asked.asks_ci(context);
    let mut verification = begin(context, state, attempt, &candidate.tree, &changed, &asked)?;
    verification.job.obstacle = candidate.obstacle;
    let left = loop {
        match context.on_bench(|bench, results| verification.advance(bench, results, reporter))? {
            Pause::Conditions if asks_ci => break Some("CI"),
            Pause::Conditions => ask_conditions(context, attempt, &mut asked, &mut verification, reporter)?,
            Pause::Judge => break Some("a second agent"),
            Pause::Done => break None,
        }
    };
    // What was left out counts as not asked for, so that the report says what is known now.
    if left.is_some() {
        verification.job.judge = false;
    }
    if verification.observed.conditions.is_none() {
        verification.job.conditions.clear();
    }
    Ok(MidTurnReport { report: old_tests::report(context, &mut verification, reporter)?, left })
}

/// Asks the conditions. After a signal, a missing answer from CI is not the work's fault.
fn ask_conditions(
    context: &mut RunContext,
    attempt: &Attempt,
    asked: &mut Requirements,
    verification: &mut Verification,
    reporter: &mut dyn Reporter,
) -> Result<(), StepError> {
    let seen = conditions::evaluate(context, attempt, asked, &verification.report(), reporter)?;
    verification.observed.conditions = Some(seen);
    verification.observed.interrupted = asked.ci_is_unknown() && context.setup.signals.requested().is_some();
    Ok(())
}

/// Verifies a tree as the work of this attempt. Conditions and judge were asked about the first tree; only CI is asked again.
pub(super) fn verify_again(
    context: &mut RunContext,
    state: &State,
    attempt: &Attempt,
    tree: &Oid,
    reporter: &mut dyn Reporter,
) -> Result<VerifyReport, StepError> {
    let all = context.git.changed_paths(Some(&context.tip), tree)?;
    let changed: Vec<ChangedPath> = all.into_iter().filter(|change| !context.plan.paths().contains(&change.path)).collect();
    let mut asked = conditions::asked(context, attempt, &changed)?.of_ci(context);
    let mut verification = begin(context, state, attempt, tree, &changed, &asked)?;
    verification.job.feedback = FeedbackTurn::NoneLeft;
    loop {
        match context.on_bench(|bench, results| verification.advance(bench, results, reporter))? {
            Pause::Conditions => ask_conditions(context, attempt, &mut asked, &mut verification, reporter)?,
            Pause::Judge | Pause::Done => return old_tests::report(context, &mut verification, reporter),
        }
    }
}

fn begin(
    context: &RunContext,
    state: &State,
    attempt: &Attempt,
    tree: &Oid,
    changed: &[ChangedPath],
    asked: &Requirements,
) -> Result<Verification, StepError> {
    let story = context.plan.plan().story(&attempt.place.story).ok_or(StepError::NoAttempt("verification"))?;
    let base = context.tip_tree()?;
    let own = context.own_checks(&story.id);
    let mut settings = context.setup.config.protect.clone();
    // These commands run outside workspaces.
    settings.autorun.extend(check_scripts(&context.setup.config.done.ci.command));
    settings.autorun.extend(check_scripts(&context.setup.config.merge.command));
    settings.autorun.extend(check_scripts(&context.setup.config.notify.command));
    let trees = Trees::compare(&TreesRequest {
        git: &context.git,
        settings: &settings,
        folder: &context.folder(),
        scope: &story.scope,
        check_scripts: &scripts(context),
        subjects: &files_read_by(own.iter().map(|check| &check.command)),
        start: Some(&context.setup.start),
        base: &base,
        attempt: tree,
        ours: context.plan.paths(),
    })?;
    let (protected, autorun) = changes_of(trees.plan());
    let open = context.plan.plan().open().filter(|other| other.id != story.id);
    let open = open.map(|other| (&other.id, context.own_checks(&other.id).to_vec()));
    let others = other_checks(&protected, &context.folder(), open);
    let mut gates = context.setup.gates.clone();
    if may_weaken_checks(&protected) {
        gates.extend(of_earlier_stories(context, state, &story.id));
    }
    let job = VerifyJob {
        surface: Surface::Run,
        story: Some(job_story(context, story, own)),
        gates: gates.into_iter().map(JobGate::from).collect(),
        base: Some(base),
        attempt: tree.clone(),
        changed: Some(context.in_project(changed)),
        obstacle: None,
        protected,
        autorun,
        others,
        minimum: if context.setup.unchecked { Proof::Unchecked } else { context.setup.config.done.minimum },
        at_most: None,
        enforce_scope: context.setup.config.policy.on_scope() == OnScope::Enforced,
        // Without a turn, the checks passed before any work, and the settings accept that.
        allow_unchanged: attempt.place.turn == 0,
        stop_at_failing_stage: context.setup.config.gates.stop_at_failing_stage,
        feedback: attempt.feedback_turn(&context.setup.config.limits),
        judge: asked.judge,
        conditions: asked.conditions.clone(),
    };
    Ok(Verification::new(job, Some(trees), &context.results))
}

fn job_story(context: &RunContext, story: &Story, own: &[Check]) -> JobStory {
    JobStory {
        id: StoryId(story.id.0.clone()),
        checks: own.to_vec(),
        criteria: story.criteria.iter().map(|criterion| criterion.text.clone()).collect(),
        scope: story.scope.to_vec(),
        minimum: minimum_proof(story).filter(|_| !context.setup.unchecked),
        complexity: stated_complexity(&context.setup.config.done, story.complexity).value.into(),
    }
}

/// Scripts that checks of the plan run.
pub(super) fn scripts(context: &RunContext) -> BTreeSet<String> {
    let commands: Vec<&CommandSpec> =
        context.setup.frozen.values().flatten().chain(&context.setup.gates).map(|check| &check.command).collect();
    check_scripts(commands)
}

/// The checks of stories that are done, in this run or earlier.
fn of_earlier_stories(context: &RunContext, state: &State, story: &StoryId) -> Vec<Check> {
    let is_done =
        |id: &StoryId| context.setup.done_before.contains(id) || state.results.get(id).is_some_and(|result| result.is_checked());
    let done = context.plan.plan().stories.iter().filter(|other| other.id != *story && is_done(&other.id));
    earlier_checks(context.own_checks(story), done.map(|other| (&other.id, context.own_checks(&other.id).to_vec())))
}
