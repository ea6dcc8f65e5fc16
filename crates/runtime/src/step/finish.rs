//! Putting things in order at the end of a run: no process left, progress files told, and committed where git knows them.

use verdone_core::finish::Finish;
use verdone_core::lifecycle::Script;
use verdone_core::machine::{Input, Phase, State};
use verdone_core::plan::progress::{LoopState, LoopStatus};
use verdone_core::plan::{Plan, Status};
use verdone_core::update::{Reporter, Update};
use verdone_core::verdict::StoryVerdict;

use super::StepError;
use super::script::run_script;
use crate::git::PathSet;
use crate::process;
use crate::recover;
use crate::signal::Stop;
use crate::site::Site;
use crate::store::{Store, proven};

pub fn finish(site: &mut Site, state: &State, reporter: &mut dyn Reporter) -> Result<Input, StepError> {
    let grace = site.config.limits.grace.duration();
    site.scripts.end_background(grace, &site.signals);
    site.claude.end(grace, &site.signals);
    process::end_leftovers(&[], grace, &site.signals);
    let order = put_in_order(site, state);
    if let Err(error) = &order {
        reporter.report(Update::Notice { text: &format!("the end of the run could not be recorded: {error}") });
    }
    // Whatever went wrong: the script that tells the user runs.
    let script = run_script(site, state, Script::Finished, reporter);
    order?;
    Ok(Input::Finished { script: script? })
}

fn put_in_order(site: &mut Site, state: &State) -> Result<(), StepError> {
    if let Phase::Stopping { finish } = &state.phase {
        let status = LoopStatus {
            iteration: state.iteration,
            max_iterations: Some(site.config.limits.max_iterations).filter(|max| *max > 0),
            state: loop_state(site, *finish),
        };
        site.plan.record_status(&status)?;
    }
    commit_progress(site, state)
}

/// Complete is only said when every story was proven, by this run or an earlier one.
fn loop_state(site: &Site, finish: Finish) -> LoopState {
    let plan = site.plan.plan();
    match finish {
        Finish::Complete if all_proven(site, plan) => LoopState::Complete,
        Finish::MaxIterations | Finish::Budget | Finish::Timeout => {
            let open = plan.stories.iter().filter(|story| story.status != Status::Done);
            LoopState::ReachedLimit { remaining: open.map(|story| story.id.clone()).collect() }
        }
        Finish::Complete
        | Finish::Manual
        | Finish::NoChanges
        | Finish::Error
        | Finish::HookAbort
        | Finish::Stalled
        | Finish::Blocked => LoopState::InProgress,
    }
}

fn all_proven(site: &Site, plan: &Plan) -> bool {
    let Ok(known) = proven(&Store::of(&site.root), &site.plan_name()) else { return false };
    plan.stories.iter().all(|story| known.get(&story.id).is_some_and(|verdict| *verdict > StoryVerdict::Unverified))
}

/// Progress that came after the last story commit gets one commit of its own, if git knows the files and nothing else changed.
fn commit_progress(site: &mut Site, state: &State) -> Result<(), StepError> {
    let ours: PathSet = site.plan.progress_paths().iter().filter_map(|path| site.git.repo_path(path)).collect();
    let owed = || recover::owes_progress(&Store::of(&site.root), &site.run).unwrap_or(false);
    if ours.is_empty() || state.attempt.is_some() || (state.commits == 0 && !owed()) {
        return Ok(());
    }
    let checkpoint = site.checkpoint("end of the run")?;
    let candidate = site.git.candidate(&checkpoint, &site.candidate_rules())?;
    let only_ours = candidate.changes.iter().all(|change| ours.contains(&change.path));
    if candidate.changes.is_empty() || !only_ours || !candidate.obstacles.is_empty() {
        return Ok(());
    }
    let message = format!("chore: record progress\n\nVerdone-Run: {}\n", site.run);
    // A refusal loses nothing: the files stay as they are, uncommitted.
    let insisted = || matches!(site.signals.stop(), Some(Stop::Insisted(_)));
    let _ = site.git.commit_unless(&candidate, &message, site.config.commit.timeout.duration(), &insisted);
    Ok(())
}
