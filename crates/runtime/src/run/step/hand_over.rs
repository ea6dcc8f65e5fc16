//! What a fresh session must know about earlier ones. It precedes the prompt of its first turn.

use verdone_core::base::excerpt::keep_end;
use verdone_core::base::sanitise::sanitise_line;
use verdone_core::engine::prompt::{HANDOVER, Handover};
use verdone_core::engine::run::{Attempt, State};
use verdone_plan::Story;

use super::StepError;
use super::turn::agents_for;
use crate::run::context::RunContext;

/// How many remaining stories are listed; the plan has the rest.
const MOST_LEFT: usize = 20;
const REASON_BYTES: usize = 250;

/// `None` if the agent has no sessions, continues the same one, or starts its first.
pub(super) fn hand_over(context: &mut RunContext, state: &State, attempt: &Attempt) -> Result<Option<String>, StepError> {
    let agents = agents_for(context, &attempt.place);
    let handed_over = context.agent.handover_to_fresh_session(&agents, attempt.place.turn == 1);
    let Some((why, said)) = handed_over.map(|(why, said)| (why, said.to_owned())) else { return Ok(None) };
    let changed = changed(context)?;
    let handover = Handover {
        why: &why,
        done: &done(context, state),
        changed: &changed,
        failed: &failed(state, attempt),
        left: &remaining_stories(context, state, attempt),
        said: &said,
        // Every prompt contains the guardrails already.
        guardrails: "",
    };
    Ok(Some(handover.render("built-in", HANDOVER)?))
}

fn done(context: &RunContext, state: &State) -> Vec<String> {
    let story = |id| context.plan.plan().story(id).map(named);
    state.results.iter().filter_map(|(id, result)| Some(format!("{} ({})", story(id)?, result.name()))).collect()
}

/// Files changed since the attempt started, without the plan.
fn changed(context: &mut RunContext) -> Result<Vec<String>, StepError> {
    let candidate = context.read_attempt()?;
    let theirs = context.changed_by_agent(&candidate);
    Ok(theirs.iter().map(|change| sanitise_line(&change.path.to_string()).into_owned()).collect())
}

fn failed(state: &State, attempt: &Attempt) -> Vec<String> {
    let story = &attempt.place.story;
    let others = state.last_failures.iter().filter(|(id, _)| *id != story).map(|(id, failure)| (id.as_str(), &failure.reason));
    let own = attempt.feedback.iter().map(|failure| (story.as_str(), &failure.reason));
    others.chain(own).map(|(id, reason)| format!("{id}: {}", keep_end(reason, REASON_BYTES))).collect()
}

/// Remaining stories, the current one first.
fn remaining_stories(context: &RunContext, state: &State, attempt: &Attempt) -> Vec<String> {
    let present = &attempt.place.story;
    let open = context.plan.plan().open().filter(|story| !state.progress.is_settled(&story.id));
    let (now, later): (Vec<&Story>, Vec<&Story>) = open.partition(|story| story.id == *present);
    let mut left: Vec<String> = now.into_iter().map(|story| format!("{}, now", named(story))).collect();
    left.extend(later.iter().take(MOST_LEFT).map(|story| named(story)));
    if later.len() > MOST_LEFT {
        left.push(format!("{} more in the plan", later.len() - MOST_LEFT));
    }
    left
}

fn named(story: &Story) -> String {
    format!("{}: {}", story.id, story.title)
}
