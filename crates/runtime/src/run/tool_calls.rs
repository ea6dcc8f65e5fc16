//! Answers the agent's tool calls during its turn, between two moments of supervising it. So only one thread writes the journal, and no
//! check runs while leftovers of the turn are ended. The agent waits for its answer meanwhile; if a part of it does not, and edits files,
//! only that answer is outdated.
//!
//! No call closes a story: the verification after the turn decides.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use verdone_core::base::id::StoryId;
use verdone_core::base::sanitise::sanitise_line;
use verdone_core::check::{Check, CheckOrigin, Stage};
use verdone_core::engine::run::{Feedback, State};
use verdone_core::journal::agent_tools::{
    AddStory, Added, Answer, Call, ClaimStatus, Claimed, CompleteStory, NextStoryAnswer, Query, QuestionStatus, Recalled,
    ReportBlocked, Resource, StageAnswer, StatusAnswer, StoryAnswer, VerificationAnswer,
};
use verdone_core::journal::control::Request;
use verdone_core::journal::update::Reporter;
use verdone_core::verify::Outcome;
use verdone_plan::{Status, Story};

use crate::base::active_clock::Stopwatch;
use crate::run::context::RunContext;
use crate::run::merge_request;
use crate::run::step::{self, MidTurnReport, Noted, StepError};
use crate::session::tools::knowledge;
use crate::store::inbox::Inbox;

const WAIT_FOR_ANSWER: &str =
    "End your turn now: the run continues with other stories, and the next session for this story gets the answer.";

/// Answers one call, if one has arrived: limits and signals of the turn must be looked at before the next. Returns how long a
/// verification took that the agent asked for.
pub(super) fn serve(context: &mut RunContext, state: &State, reporter: &mut dyn Reporter) -> Option<Duration> {
    let (query, mut caller) = context.tools.as_ref()?.next(&context.setup.signals)?;
    let clock = Stopwatch::start();
    let answer = match &query {
        Query::Call(call) => answer(context, state, call, reporter),
        Query::Read(resource) => read(context, state, *resource),
    };
    let took = clock.elapsed();
    caller.answer(&answer.unwrap_or_else(|error| failed(&error)), &context.setup.signals);
    verifies(&query).then_some(took)
}

fn verifies(query: &Query) -> bool {
    match query {
        Query::Call(Call::CompleteStory(claim)) => claim.status == ClaimStatus::Success,
        Query::Call(Call::Verify(_) | Call::RequestMerge(_)) => true,
        Query::Call(
            Call::NextStory(_)
            | Call::GetStory(_)
            | Call::ReportBlocked(_)
            | Call::Recall(_)
            | Call::AddGuardrail(_)
            | Call::AddStory(_)
            | Call::Status(_),
        )
        | Query::Read(_) => false,
    }
}

/// Verdone's own failure. The verification after the turn may still work.
fn failed(error: &StepError) -> Answer {
    Answer::error(&format!("Verdone could not do it: {error}"), "end your turn when the story is done: it is verified then")
}

fn answer(context: &mut RunContext, state: &State, call: &Call, reporter: &mut dyn Reporter) -> Result<Answer, StepError> {
    match call {
        Call::CompleteStory(claim) => complete_story(context, state, claim, reporter),
        Call::NextStory(_) => Ok(next_story(context, state)),
        Call::GetStory(call) => Ok(get_story(context, state, &call.story)),
        Call::Verify(call) => verify(context, state, call.stage.as_deref(), reporter),
        Call::ReportBlocked(blocked) => report_blocked(context, state, blocked, reporter),
        Call::RequestMerge(request) => merge_request::answer(context, state, request, reporter),
        Call::Recall(call) => {
            Ok(Answer::new(&Recalled { found: knowledge::recall(&context.setup.root, &context.git, &call.query)? }))
        }
        Call::AddGuardrail(call) => Ok(add_guardrail(context, state, &call.text)),
        Call::AddStory(story) => Ok(add_story(context, story)),
        Call::Status(_) => Ok(status(context, state)),
    }
}

/// Leaves a request for the run, as another terminal would, and waits until it is in the journal.
pub(super) fn record(context: &RunContext, request: &Request, reporter: &mut dyn Reporter) -> Result<(), StepError> {
    Inbox::new(&context.setup.run_dir).post(request).map_err(step::io_error("recording the call"))?;
    reporter.report(context.setup.clock.tick());
    Ok(())
}

/// Hostile text for the journal.
pub(super) fn clean(context: &RunContext, text: &str) -> String {
    sanitise_line(&context.setup.redactor.redact(text)).trim().to_owned()
}

/// The story of this turn, or an error if another one is named.
pub(super) fn own_story(context: &RunContext, state: &State, named: &str) -> Result<StoryId, Answer> {
    let own = state.attempt.as_ref().map(|attempt| attempt.place.story.clone());
    let meant = context.plan.plan().story_meant(&StoryId::from(named)).map(|story| story.id.clone());
    match (own, meant) {
        (Some(own), Some(meant)) if own == meant => Ok(own),
        (Some(own), _) => {
            let todo = format!("name {own}; the run selects the next story itself");
            Err(Answer::error(&format!("this session works on {own}, not on {named:?}"), &todo))
        }
        (None, _) => Err(Answer::error("no story is being worked on", "end your turn")),
    }
}

fn complete_story(
    context: &mut RunContext,
    state: &State,
    claim: &CompleteStory,
    reporter: &mut dyn Reporter,
) -> Result<Answer, StepError> {
    let story = match own_story(context, state, &claim.story) {
        Ok(story) => story,
        Err(refused) => return Ok(refused),
    };
    let summary = clean(context, &claim.summary);
    let CompleteStory { status, tests_passed, .. } = *claim;
    let request = Request::Claim { story: story.clone(), status, summary: summary.clone(), tests_passed };
    record(context, &request, reporter)?;
    match status {
        ClaimStatus::Success => claim_success(context, state, story, reporter),
        ClaimStatus::Partial => Ok(Answer::new(&Claimed {
            story,
            verification: None,
            should_continue: true,
            what_to_do: "Your note is recorded, and the story stays open. Continue with it, or end your turn: the next prompt \
                         repeats the note."
                .to_owned(),
        })),
        ClaimStatus::Blocked => {
            let (reason, question) = ("the agent cannot complete the story".to_owned(), summary);
            report_blocked(context, state, &ReportBlocked { story: story.0.clone(), reason, question }, reporter)
        }
    }
}

fn claim_success(
    context: &mut RunContext,
    state: &State,
    story: StoryId,
    reporter: &mut dyn Reporter,
) -> Result<Answer, StepError> {
    let MidTurnReport { report, left } = step::verify_during_turn(context, state, reporter)?;
    let (should_continue, what_to_do) = match (report.outcome, left) {
        (Outcome::Done | Outcome::Accepted, None) => (false, "End your turn now: Verdone commits the story.".to_owned()),
        (Outcome::Done | Outcome::Accepted, Some(left)) => {
            (false, format!("The checks pass. End your turn now: {left} is asked next."))
        }
        (Outcome::NeedsReview, _) => (false, "End your turn now: a person has to review the work.".to_owned()),
        (Outcome::Failed, _) => (true, "Fix what fails, then call complete_story again.".to_owned()),
    };
    let verification = Some(VerificationAnswer::new(&report));
    Ok(Answer::new(&Claimed { story, verification, should_continue, what_to_do }))
}

fn verify(
    context: &mut RunContext,
    state: &State,
    named: Option<&str>,
    reporter: &mut dyn Reporter,
) -> Result<Answer, StepError> {
    let Some(wanted) = named.map(|name| Stage::from(name.to_owned())) else {
        let MidTurnReport { report, .. } = step::verify_during_turn(context, state, reporter)?;
        return Ok(Answer::new(&VerificationAnswer::new(&report)));
    };
    let is_it = |check: &&Check| check.origin == CheckOrigin::Gate(wanted.clone());
    let gates: Vec<Check> = context.setup.gates.iter().filter(is_it).cloned().collect();
    if gates.is_empty() {
        let stage_of = |gate: &Check| match &gate.origin {
            CheckOrigin::Gate(other) => Some(other.name().to_owned()),
            CheckOrigin::Story | CheckOrigin::AgentTest => None,
        };
        let known: BTreeSet<String> = context.setup.gates.iter().filter_map(stage_of).collect();
        let known: Vec<String> = known.into_iter().collect();
        let todo = format!("stages with gates: {}", known.join(", "));
        return Ok(Answer::error(&format!("no gate has the stage {:?}", wanted.name()), &todo));
    }
    let tree = context.read_attempt()?.tree;
    let runs = context.run_checks(&tree, &gates, reporter)?;
    let feedback = Feedback::from_runs(&runs);
    Ok(Answer::new(&StageAnswer::of_runs(wanted.name(), feedback.reason, &feedback.failed)))
}

fn report_blocked(
    context: &mut RunContext,
    state: &State,
    blocked: &ReportBlocked,
    reporter: &mut dyn Reporter,
) -> Result<Answer, StepError> {
    let story = match own_story(context, state, &blocked.story) {
        Ok(story) => story,
        Err(refused) => return Ok(refused),
    };
    let (reason, question) = (clean(context, &blocked.reason), clean(context, &blocked.question));
    let in_turn = context.attempt.question.as_ref().filter(|(turn, _)| *turn == context.turns_run);
    let (should_continue, what_to_do) =
        match QuestionStatus::of(&question, state.questions.get(&story), in_turn.map(|(_, asked)| asked.as_str())) {
            QuestionStatus::New => {
                record(
                    context,
                    &Request::Question { story: story.clone(), reason, question: question.clone(), carried: false },
                    reporter,
                )?;
                context.attempt.question = Some((context.turns_run, question));
                (false, format!("The question is recorded. {WAIT_FOR_ANSWER}"))
            }
            QuestionStatus::AlreadyAsked => (false, format!("The question was already asked. {WAIT_FOR_ANSWER}")),
            QuestionStatus::Answered(answer) => (true, format!("The question was already asked. The answer: {answer}")),
            QuestionStatus::OneTooMany => {
                return Ok(Answer::error(
                    "a turn can ask one question, and this one has",
                    "end your turn and wait for the answer",
                ));
            }
        };
    Ok(Answer::new(&Claimed { story, verification: None, should_continue, what_to_do }))
}

fn story_answer(context: &RunContext, state: &State, story: &Story) -> StoryAnswer {
    let checks = context.own_checks(&story.id).iter().map(Check::shown_to_agent).collect();
    StoryAnswer { question: state.questions.get(&story.id).cloned(), ..StoryAnswer::new(story, checks) }
}

fn next_story(context: &RunContext, state: &State) -> Answer {
    let own = state.attempt.as_ref().and_then(|attempt| context.plan.plan().story(&attempt.place.story));
    Answer::new(&match own {
        Some(story) => NextStoryAnswer::Story { story: Box::new(story_answer(context, state, story)) },
        None => NextStoryAnswer::AllDone,
    })
}

fn get_story(context: &RunContext, state: &State, id: &str) -> Answer {
    match context.plan.plan().story_meant(&StoryId::from(id)) {
        Some(story) => Answer::new(&story_answer(context, state, story)),
        None => knowledge::no_story(context.plan.plan(), id),
    }
}

fn add_guardrail(context: &RunContext, state: &State, text: &str) -> Answer {
    let added = |what: &str| Answer::new(&Added { what_was_done: what.to_owned() });
    match step::add_note(context, state, &clean(context, text)) {
        Ok(Noted::Added) => added("added to the lessons in .verdone/guardrails.md; later prompts quote it if there is room"),
        Ok(Noted::AlreadyThere) => added("it is already in .verdone/guardrails.md"),
        Ok(Noted::NotWanted) => Answer::error("the user does not want this lesson", "continue without it"),
        Err(error) => Answer::error(&format!("cannot write .verdone/guardrails.md: {error}"), "continue without it"),
    }
}

/// A change of a committed plan would be lost with an attempt that fails. A story brings no check, so without gates it could never be done.
fn may_add_stories(context: &RunContext) -> bool {
    context.setup.config.run.add_stories && !context.plan.is_committed() && !context.setup.gates.is_empty()
}

fn add_story(context: &mut RunContext, story: &AddStory) -> Answer {
    let (title, criteria) =
        (clean(context, &story.title), story.criteria.iter().map(|text| clean(context, text)).collect::<Vec<_>>());
    if may_add_stories(context) {
        match context.plan.add_story(&title, &criteria) {
            Ok(Some(id)) => return Answer::new(&Added { what_was_done: format!("added to the plan as {id}") }),
            // It waits with the other proposals.
            Ok(None) => {}
            Err(error) => return Answer::error(&format!("cannot change the plan: {error}"), "mention the story when you stop"),
        }
    }
    let mut text = format!("- [ ] {title}\n");
    for criterion in &criteria {
        text.push_str(&format!("  - {criterion}\n"));
    }
    if let Some(reason) = &story.reason {
        text.push_str(&format!("  - Reason: {}\n", clean(context, reason)));
    }
    match knowledge::propose(&context.setup.root, &text) {
        Ok(()) => Answer::new(&Added {
            what_was_done: format!("proposed in {}; the user decides whether it becomes part of the plan", knowledge::PROPOSALS),
        }),
        Err(error) => {
            Answer::error(&format!("cannot write {}: {error}", knowledge::PROPOSALS), "mention the story when you stop")
        }
    }
}

fn status(context: &RunContext, state: &State) -> Answer {
    let plan = context.plan.plan();
    let with = |wanted: Outcome| {
        let results = state.results.iter().filter(|(_, result)| result.outcome == wanted);
        results.map(|(story, _)| story.clone()).collect()
    };
    let place = state.attempt.as_ref().map(|attempt| &attempt.place);
    Answer::new(&StatusAnswer {
        run: Some(context.setup.run.as_str().to_owned()),
        in_run: true,
        plan: context.plan_name(),
        stories: plan.stories.len(),
        open: plan.open().count(),
        story: place.map(|place| place.story.clone()),
        attempt: place.map(|place| place.attempt),
        turn: place.map(|place| place.turn),
        done: plan.stories.iter().filter(|story| story.status == Status::Done).map(|story| story.id.clone()).collect(),
        needs_review: with(Outcome::NeedsReview),
        failed: state.progress.failed.keys().cloned().collect(),
        questions: state.questions.values().cloned().collect(),
    })
}

fn read(context: &RunContext, state: &State, resource: Resource) -> Result<Answer, StepError> {
    let text = match resource {
        Resource::Plan => context.plan.document().text().to_owned(),
        Resource::Guardrails => knowledge::guardrails(&context.setup.root),
        Resource::LastFailure => last_failure(state),
        Resource::Evidence => knowledge::evidence_text(&context.git)?,
    };
    Ok(Answer { is_error: false, body: Value::String(text) })
}

fn last_failure(state: &State) -> String {
    let told = state.attempt.as_ref().and_then(|attempt| attempt.feedback.as_ref());
    told.map(|told| VerificationAnswer::of_runs(Outcome::Failed, vec![told.reason.clone()], &told.failed).to_markdown())
        .unwrap_or_default()
}
