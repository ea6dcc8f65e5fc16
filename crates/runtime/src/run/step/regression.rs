//! Regression: runs each distinct command of done stories once on the current tree, within the time limit. Unticks stories that are broken.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use verdone_core::base::id::{Oid, StoryId};
use verdone_core::base::span::Span;
use verdone_core::check::{Check, CheckOutcome, CheckRun};
use verdone_core::engine::run::{Input, Phase, RegressionReport, State};
use verdone_core::journal::update::Reporter;
use verdone_core::verify::{CheckState, StoryResult};
use verdone_plan::Status;

use super::finish::{REOPEN_ONE, REOPEN_SEVERAL, commit_plan};
use super::{StepError, old_tests};
use crate::run::context::RunContext;
use crate::store::{Store, proven};
use crate::verify::BenchPlace;

/// How many stories of earlier runs are checked: the last ones in the plan.
const MOST_EARLIER: usize = 500;

pub fn regression(context: &mut RunContext, state: &State, reporter: &mut dyn Reporter) -> Result<Input, StepError> {
    let earlier = match context.setup.only {
        Some(_) => BTreeMap::new(),
        None => proven(&Store::new(&context.setup.root), &context.plan_name()).unwrap_or_default(),
    };
    let due = due(context, state, &earlier);
    let tree = context.tip_tree()?;
    let mut report = recheck(context, &due, &tree, reporter)?;
    if report.broken.is_empty() && report.not_checked.is_empty() && context.setup.signals.requested().is_none() {
        old_tests::run_gates(context, state, &mut report, reporter)?;
    }
    Ok(Input::Regressed(report))
}

/// Unticks broken stories, in a separate commit if git tracks the plan.
pub fn reopen(context: &mut RunContext, state: &State) -> Result<Input, StepError> {
    let Phase::Reopening { stories } = &state.phase else { return Err(StepError::NoAttempt("the reopening of stories")) };
    for story in stories {
        if !context.plan.is_committed() {
            context.plan.mark_users_file(story, Status::Open)?;
        } else if context.plan.plan().story(story).is_some_and(|story| story.status == Status::Done) {
            context.plan.mark(story, Status::Open)?;
            context.plan.forget_mark();
        }
    }
    let subject = if stories.len() == 1 { REOPEN_ONE } else { REOPEN_SEVERAL };
    let commit = commit_plan(context, subject)?;
    Ok(Input::Reopened { commit })
}

/// A command with the stories that it proves.
type Due = Vec<(Check, Vec<StoryId>)>;

/// Stories marked done in the plan that have evidence: from this run and, unless the run is about a single story, from earlier ones.
fn due(context: &RunContext, state: &State, earlier: &BTreeMap<StoryId, StoryResult>) -> Due {
    let evident = |result: Option<&StoryResult>| result.is_some_and(|result| result.is_checked());
    let done: Vec<&StoryId> = context.plan.plan().stories.iter().filter(|s| s.status == Status::Done).map(|s| &s.id).collect();
    let (now, before): (Vec<&StoryId>, Vec<&StoryId>) = done
        .into_iter()
        .filter(|id| evident(state.results.get(*id)) || evident(earlier.get(*id)))
        .partition(|id| state.results.contains_key(*id));
    let before = before.iter().rev().take(MOST_EARLIER).copied();
    let mut due: Due = Vec::new();
    let mut places = BTreeMap::new();
    for story in now.into_iter().chain(before) {
        for check in context.own_checks(story) {
            let place = *places.entry(check.command.display()).or_insert_with(|| {
                due.push((check.clone(), Vec::new()));
                due.len() - 1
            });
            due[place].1.push(story.clone());
        }
    }
    due
}

fn recheck(context: &mut RunContext, due: &Due, tree: &Oid, reporter: &mut dyn Reporter) -> Result<RegressionReport, StepError> {
    let (begun, time) = (context.setup.clock.elapsed(), context.setup.config.regression.time.limit());
    let mut report = RegressionReport::default();
    let mut broken: BTreeMap<StoryId, Vec<CheckRun>> = BTreeMap::new();
    let mut skipped = BTreeSet::new();
    // Start without a cache: what earlier stories left there must not prove anything.
    let mut place = BenchPlace::cold();
    let mut interrupted = false;
    let left = |context: &RunContext| time.map(|time| time.saturating_sub(context.setup.clock.elapsed().saturating_sub(begun)));
    for (check, stories) in due {
        // It just passed on exactly this tree, in this run.
        if context.green.as_ref().is_some_and(|(green, commands)| green == tree && commands.contains(&check.command)) {
            continue;
        }
        let left_now = left(context);
        let (bounded, cut) = limit_time(check, left_now);
        let run = if interrupted || left_now == Some(Duration::ZERO) {
            None
        } else {
            context.run_checks_in(&mut place, tree, &[bounded], reporter)?.pop()
        };
        let Some(run) = run.filter(|run| !(cut && matches!(run.outcome, CheckOutcome::TimedOut { .. }))) else {
            skipped.extend(stories.iter().cloned());
            continue;
        };
        if run.outcome == CheckOutcome::Interrupted {
            interrupted = true;
            skipped.extend(stories.iter().cloned());
        } else if CheckState::from_run(&run) != CheckState::Green {
            for story in stories {
                broken.entry(story.clone()).or_default().push(run.clone());
            }
        }
        report.runs.push(run);
    }
    let all: BTreeSet<&StoryId> = due.iter().flat_map(|(_, stories)| stories).collect();
    let holds = |story: &StoryId| !broken.contains_key(story) && !skipped.contains(story);
    report.held = all.iter().filter(|story| holds(story)).count() as u32;
    report.not_checked = skipped.into_iter().filter(|story| !broken.contains_key(story)).collect();
    report.broken = broken.into_iter().collect();
    Ok(report)
}

/// Limits a check to the time left. Returns whether that is less than its own limit.
pub(super) fn limit_time(check: &Check, left: Option<Duration>) -> (Check, bool) {
    let cut = left.filter(|left| check.timeout.limit().is_none_or(|own| *left < own));
    match cut {
        Some(left) => (Check { timeout: Span::from_millis(left.as_millis().max(1) as u64), ..check.clone() }, true),
        None => (check.clone(), false),
    }
}
