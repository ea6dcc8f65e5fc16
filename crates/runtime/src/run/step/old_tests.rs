//! Checks with the tests and configuration from before the run. A story may change a test needlessly, or add one that its check does not
//! need, and still pass with the old ones; the next story could then exploit that.

use std::collections::{BTreeMap, BTreeSet};

use verdone_core::base::id::{Oid, StoryId};
use verdone_core::check::{Check, CheckRun, When};
use verdone_core::engine::run::{RegressionReport, State};
use verdone_core::evidence::Evidence;
use verdone_core::evidence::audit::GitNote;
use verdone_core::journal::update::Reporter;
use verdone_core::protect::files_read_by;
use verdone_core::verify::{ChangeKind, CheckState, Outcome, Proof, Tree, VerifyReport, changes_of};

use super::StepError;
use super::verify::scripts;
use crate::run::context::RunContext;
use crate::verify::checks::seen_from;
use crate::verify::{BenchPlace, Trees, TreesRequest, Verification, may_weaken_checks};

/// Reports a verification. Work is `verified` only if the story's own checks also pass
/// with the old tests and configuration. Otherwise an agent wrote what proves it.
pub(super) fn report(
    context: &mut RunContext,
    verification: &mut Verification,
    reporter: &mut dyn Reporter,
) -> Result<VerifyReport, StepError> {
    let report = verification.report();
    let Some(story) = verification.job.story.as_ref().filter(|_| report.proof == Some(Proof::Verified)) else {
        return Ok(report);
    };
    let earlier = changed_tests(context)?;
    if !earlier.any_without_leave {
        return Ok(report);
    }
    let permitted: Vec<String> = earlier.permitted.iter().chain(&story.scope).cloned().collect();
    let tree = trees_of_run(context, &verification.job.attempt, &permitted)?.build(&context.git, Tree::Pristine)?;
    let runs = context.run_checks_in(&mut BenchPlace::default(), &tree, &story.checks, reporter)?;
    verification.observed.interrupted |= runs.iter().any(|run| CheckState::from_run(run) == CheckState::Interrupted);
    let red = runs.into_iter().filter(|run| CheckState::from_run(run) != CheckState::Green);
    verification.observed.red_with_old_tests = red.map(|run| run.name).collect();
    Ok(verification.report())
}

/// If stories changed tests or configuration, the gates must pass on the final files with
/// the tests and configuration from before the first of those changes.
pub(super) fn run_gates(
    context: &mut RunContext,
    state: &State,
    report: &mut RegressionReport,
    reporter: &mut dyn Reporter,
) -> Result<(), StepError> {
    // If gates failed before any work, their result here means nothing.
    if state.baseline.is_some() {
        return Ok(());
    }
    let changed = changed_tests(context)?;
    if changed.by.is_empty() {
        return Ok(());
    }
    let trees = trees_of_run(context, &context.tip, &changed.permitted)?;
    if !may_weaken_checks(&changes_of(trees.plan()).0) {
        return Ok(());
    }
    let tree = trees.build(&context.git, Tree::Pristine)?;
    let gates: Vec<Check> = context.setup.gates.iter().filter(|gate| is_always_due(gate)).cloned().collect();
    let runs = context.run_checks_in(&mut BenchPlace::cold(), &tree, &gates, reporter)?;
    let red = runs.into_iter().filter(|run| CheckState::from_run(run) == CheckState::Red);
    let red: Vec<CheckRun> =
        red.map(|run| CheckRun { name: format!("{} with the tests from before the run", run.name), ..run }).collect();
    if !red.is_empty() {
        report.held = report.held.saturating_sub(changed.by.len() as u32);
        report.broken.extend(changed.by.into_iter().map(|story| (story, red.clone())));
        report.runs.extend(red);
    }
    Ok(())
}

/// Whether every story must pass this gate.
fn is_always_due(gate: &Check) -> bool {
    !gate.terms.advisory && gate.terms.when == When::default()
}

/// Changes to tests and configuration by stories of this branch.
#[derive(Debug, Default)]
struct ChangedTests {
    /// Stories that changed or deleted some without permission.
    by: BTreeSet<StoryId>,
    /// Whether some were changed, deleted or added without permission.
    any_without_leave: bool,
    /// Files that stories may change, or that need review.
    permitted: Vec<String>,
}

fn changed_tests(context: &RunContext) -> Result<ChangedTests, StepError> {
    let mut found = ChangedTests::default();
    let commits = context.git.commits_between(&context.setup.start, &context.tip)?;
    let notes = if commits.is_empty() { BTreeMap::new() } else { context.git.evidence_notes()? };
    for commit in commits {
        let Some(GitNote::Bytes(note)) = notes.get(&commit) else { continue };
        let Ok(evidence) = Evidence::from_note(note) else { continue };
        let is_seen_by_a_person = matches!(evidence.outcome, Outcome::Accepted | Outcome::NeedsReview);
        for change in evidence.protected {
            if change.released || is_seen_by_a_person {
                found.permitted.push(seen_from(&context.folder(), &change.path));
                continue;
            }
            found.any_without_leave = true;
            if change.change != ChangeKind::Added {
                found.by.insert(evidence.story.clone());
            }
        }
    }
    Ok(found)
}

/// All changes of the run's stories up to this tree, treated as one attempt that may change the permitted files.
fn trees_of_run(context: &RunContext, attempt: &Oid, permitted: &[String]) -> Result<Trees, StepError> {
    Ok(Trees::compare(&TreesRequest {
        git: &context.git,
        settings: &context.setup.config.protect,
        folder: &context.folder(),
        scope: permitted,
        check_scripts: &scripts(context),
        subjects: &files_read_by(context.setup.frozen.values().flatten().map(|check| &check.command)),
        start: None,
        base: &context.setup.start,
        attempt,
        ours: context.plan.paths(),
    })?)
}
