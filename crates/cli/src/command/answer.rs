//! `verdone answer`: lists the questions of agents, and answers one.

use std::collections::BTreeSet;

use verdone_core::base::id::StoryId;
use verdone_core::base::sanitise::sanitise_line;
use verdone_core::journal::control::Request;
use verdone_core::journal::view::RunView;
use verdone_report::questions as question_list;
use verdone_runtime::process::RUN_VARIABLE;
use verdone_runtime::store::inbox::Inbox;
use verdone_runtime::store::{Store, StoredRun};

use super::ask::LONGEST_NOTE;
use super::chosen_run::{brief_view, is_going};
use super::{Context, Outcome};
use crate::args::AnswerArgs;
use crate::error::CliError;
use crate::terminal::{print, printable};

pub(super) fn run(args: &AnswerArgs, context: &Context) -> Outcome {
    let project = context.project()?;
    let runs = latest_of_each_plan(&Store::new(&project.root))?;
    let Some((_, latest)) = runs.first() else {
        return Err(CliError::usage("no run was started here yet").hint("verdone run PLAN"));
    };
    let mut view = latest.clone();
    view.questions = runs.iter().flat_map(|(_, view)| view.questions.clone()).collect();
    let (Some(id), Some(text)) = (&args.story, &args.text) else {
        print(&question_list(&view, &context.terminal.report_style()))?;
        return Ok(0);
    };
    if context.environment.contains_key(RUN_VARIABLE) {
        return Err(CliError::usage("an agent cannot answer its own question").hint("run `verdone answer` in another terminal"));
    }
    let text = sanitise_line(text).trim().to_owned();
    if text.is_empty() {
        return Err(CliError::usage("the answer is empty"));
    }
    if text.len() > LONGEST_NOTE {
        return Err(CliError::usage(format!("the answer is too long: at most {LONGEST_NOTE} bytes")));
    }
    let story = asked(&view, id)?;
    let has_it = |(_, view): &&(StoredRun, RunView)| view.questions.iter().any(|question| question.story == story);
    let (stored, _) = runs.iter().find(has_it).unwrap_or(&runs[0]);
    let posted = Inbox::new(&stored.dir).post(&Request::Answer { story: story.clone(), text });
    posted.map_err(|error| CliError::error(format!("cannot reach the run: {error}")))?;
    let who = if is_going(&project, stored) { "The run" } else { "The next run of the plan" };
    print(&printable(&format!("{who} works on {story} again, with your answer in the prompt.\n")))?;
    Ok(0)
}

/// The latest run of each plan has the open questions of earlier runs of that plan.
fn latest_of_each_plan(store: &Store) -> Result<Vec<(StoredRun, RunView)>, CliError> {
    let mut plans = BTreeSet::new();
    let mut found = Vec::new();
    let ids = store.ids().map_err(|error| CliError::error(format!("cannot read .verdone/runs: {error}")))?;
    for stored in ids.into_iter().rev().map(|id| store.run(id)) {
        let mut view = brief_view(&stored)?;
        if plans.insert(view.plan.clone()) {
            stored.add_pending_requests(&mut view);
            found.push((stored, view));
        }
    }
    Ok(found)
}

/// The story of a question, so that a typo is an error and not a silent success.
fn asked(view: &RunView, id: &str) -> Result<StoryId, CliError> {
    let same = |story: &StoryId| story.as_str().eq_ignore_ascii_case(id);
    if let Some(question) = view.questions.iter().find(|question| same(&question.story)) {
        return Ok(question.story.clone());
    }
    let known: Vec<&str> = view.questions.iter().map(|question| question.story.as_str()).collect();
    let error = CliError::usage(format!("no agent asked about {id:?}"));
    Err(if known.is_empty() { error } else { error.hint(format!("questions about: {}", known.join(", "))) })
}
