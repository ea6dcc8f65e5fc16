//! Folds events into the state. Total: accepts any event in any state, because the journal is always right.

use verdone_plan::{Progress, ReviewState};

use super::{Attempt, CommittedStory, EndedIteration, Fatal, Feedback, Phase, State, failing_sentence};
use crate::agent::{PromptUse, TurnOutcome};
use crate::base::finish::Finish;
use crate::base::id::StoryId;
use crate::check::CheckRun;
use crate::journal::active::ActiveTime;
use crate::journal::agent_tools::{ClaimStatus, OpenQuestion};
use crate::journal::control::Request;
use crate::journal::event::{Event, Place, Recorded, Rejection, TurnTests, Verified, WaitCause};
use crate::verify::{Outcome, StoryResult, VerifyReport};

/// The exit code for wrong usage or config, which includes an agent that cannot be started.
const EXIT_CONFIG: u8 = 2;

pub fn apply(state: &mut State, recorded: &Recorded) {
    let waits = matches!(&state.phase, Phase::Waiting { why, .. } if why.stops_clock());
    let standing = state.paused || waits || matches!(state.phase, Phase::Stopped { .. });
    state.active.advance(recorded, standing);
    // After the reset, the usage is unknown.
    state.allowance.take_if(|allowance| allowance.resets_at <= recorded.at);
    match &recorded.event {
        Event::RunStarted { run, gates, evidence, seal, reviews, session, .. } => {
            let mut active = ActiveTime::default();
            active.advance(recorded, false);
            let started_at = Some(recorded.at);
            let (gates, evidence) = (gates.clone(), evidence.clone());
            let (phase, seal, session) = (Phase::Preparing, seal.clone(), session.clone());
            let progress = Progress { review: reviews.clone(), ..Progress::default() };
            *state = State {
                run: Some(run.clone()),
                session,
                started_at,
                active,
                phase,
                seal,
                gates,
                evidence,
                progress,
                ..State::default()
            };
        }
        Event::BaselineChecked { green, runs } => {
            state.baseline = (!green).then(|| Feedback::from_runs(runs));
            state.phase = Phase::Selecting;
        }
        Event::StorySelected { iteration, place, title, .. } => {
            state.iteration = *iteration;
            state.attempt = Some(begin(place, title, state));
            state.phase = Phase::Beginning;
        }
        Event::AttemptStarted { base, tree, .. } => {
            state.skips = 0;
            with_attempt(state, |attempt| (attempt.base, attempt.tree) = (base.clone(), tree.clone()));
            state.phase = Phase::RedChecking;
        }
        Event::RedChecked { red, runs, .. } => {
            with_attempt(state, |attempt| {
                attempt.red = Some(*red);
                attempt.red_runs.clone_from(runs);
            });
            state.phase = Phase::Verifying;
        }
        Event::TurnStarted { place } => {
            let notes = std::mem::take(&mut state.notes);
            with_attempt(state, |attempt| {
                // If the same turn is repeated in a fresh session, its prompt repeats the notes.
                attempt.repeats = (attempt.place == *place).then_some(attempt.notes.len());
                if attempt.repeats.is_none() {
                    attempt.notes.clear();
                }
                attempt.notes.extend(notes);
                attempt.unfinished = None;
                attempt.place = place.clone();
            });
            state.phase = Phase::Turn;
        }
        Event::TurnEnded { outcome, usage, exit_code, tests, session, allowance, claim, .. } => {
            turn_ended(state, outcome, tests);
            match outcome.prompt_use() {
                PromptUse::Used => with_attempt(state, |attempt| attempt.notes.clear()),
                PromptUse::Repeated => {}
                PromptUse::Lost => return_notes(state),
            }
            with_attempt(state, |attempt| {
                attempt.claim.clone_from(claim);
                attempt.agent_exit = exit_code.unwrap_or_else(|| outcome.exit_code());
                if let Some(cost) = usage.cost_usd.filter(|cost| cost.is_finite()) {
                    attempt.cost_usd = Some(attempt.cost_usd.unwrap_or(0.0) + cost);
                }
                if let Some(session) = session.as_ref().filter(|session| !attempt.sessions.contains(&session.id)) {
                    attempt.sessions.push(session.id.clone());
                }
            });
            if let Some(allowance) = allowance.as_ref().filter(|allowance| allowance.resets_at > recorded.at) {
                state.allowance = Some(allowance.clone());
            }
            state.cost_usd += usage.cost_usd.unwrap_or(0.0);
            state.phase = Phase::Verifying;
        }
        Event::WaitStarted { place, why, until, .. } => {
            match why {
                WaitCause::ServiceError => state.service_errors += 1,
                WaitCause::UsageLimit => state.usage_waits += 1,
            }
            state.phase = Phase::Waiting { why: *why, until: *until, turn: place.clone() };
        }
        Event::Verified(verified) => {
            state.cost_usd += verified.cost_usd().unwrap_or(0.0);
            with_attempt(state, |attempt| fold_verified(attempt, verified));
        }
        Event::CommitStarted { tree, proof, outcome, gates, previous, .. } => {
            with_attempt(state, |attempt| {
                attempt.gates.clone_from(gates);
                attempt.previous.clone_from(previous);
            });
            state.phase = Phase::Committing { tree: tree.clone(), proof: *proof, outcome: *outcome };
        }
        Event::Committed { place, proof, outcome, evidence, commit, base, .. } => {
            let story = place.story.clone();
            state.committed.push(CommittedStory { story, commit: commit.clone(), base: base.clone() });
            state.evidence = evidence.clone().or_else(|| state.evidence.take());
            let result = StoryResult { outcome: *outcome, proof: Some(*proof) };
            if *outcome == Outcome::NeedsReview {
                state.progress.review.insert(place.story.clone(), ReviewState::Stacked);
            }
            state.commits += 1;
            record_result(state, &place.story, result);
        }
        Event::Marked { place, proof, .. } => record_result(state, &place.story, StoryResult::done(*proof)),
        Event::ReviewNeeded { place, work, proof, .. } => {
            let is_stacked = state.committed.iter().any(|committed| committed.commit == *work);
            let waiting = if is_stacked { ReviewState::Stacked } else { ReviewState::Aside };
            state.progress.review.insert(place.story.clone(), waiting);
            let result = StoryResult { outcome: Outcome::NeedsReview, proof: Some(*proof) };
            state.results.insert(place.story.clone(), result);
            if let Some(last) = state.last_iteration.as_mut().filter(|last| last.story == place.story) {
                last.result = Some(result);
            }
            (state.consecutive_failures, state.unchanged_iterations) = (0, 0);
        }
        Event::Accepted { story, proof, evidence, .. } => {
            // If other work was stacked on it, its evidence is not the latest.
            if state.progress.review.remove(story) != Some(ReviewState::Stacked) {
                state.evidence = Some(evidence.clone());
            }
            state.results.insert(story.clone(), StoryResult { outcome: Outcome::Accepted, proof: Some(*proof) });
        }
        Event::Refused { story, by } => {
            state.progress.review.remove(story);
            state.progress.failed.insert(story.clone(), format!("rejected by {by}"));
            state.results.insert(story.clone(), StoryResult::FAILED);
        }
        Event::CommitRefused { tree, message, .. } => {
            with_attempt(state, |attempt| {
                attempt.refused = Some(tree.clone());
                attempt.feedback = Some(Feedback::plain(format!("the commit was refused:\n{message}")));
            });
        }
        Event::AttemptRejected { rejection, reason, .. } => {
            return_notes(state);
            let told = state.attempt.as_ref().and_then(|attempt| attempt.feedback.clone());
            if let Some(attempt) = &state.attempt
                && !spends_nothing(rejection)
            {
                let failure = told.unwrap_or_else(|| Feedback::plain(reason.clone()));
                state.last_failures.insert(attempt.place.story.clone(), failure);
            }
            if let Some(finish) = ends_the_run(rejection).filter(|_| state.fatal.is_none()) {
                state.fatal = Some(Fatal { finish, reason: reason.clone(), exit_code: finish.exit_code() });
            }
            state.phase = Phase::Keeping { rejection: rejection.clone() };
        }
        Event::AttemptKept { place, files, .. } => was_kept(state, place, *files),
        Event::AttemptDropped { .. } => {
            state.attempt = None;
            state.phase = Phase::Selecting;
        }
        // After the run has ended, landing is done by another command.
        Event::LandingStarted { .. } if !matches!(state.phase, Phase::Stopped { .. }) => state.phase = Phase::Landing,
        Event::Landed { .. } | Event::LandingRefused { .. } if state.phase == Phase::Landing => state.phase = Phase::Selecting,
        Event::RegressionStarted { at_end } => state.phase = Phase::Regressing { at_end: *at_end },
        Event::RegressionChecked { .. } => {
            state.since_regression = 0;
            state.phase = Phase::Selecting;
        }
        Event::Regressed { story, runs, again } => regressed(state, story, runs, *again),
        Event::Reopened { .. } => state.phase = Phase::Selecting,
        Event::StoryFailed { story, reason } => {
            state.progress.failed.insert(story.clone(), reason.clone());
        }
        Event::IterationSkipped { .. } => {
            state.skips += 1;
            end_iteration(state, None);
            state.phase = Phase::Selecting;
        }
        Event::Asked { request } => ask(state, request),
        Event::StopRequested { signal } => state.stop = state.stop.or(Some(*signal)),
        Event::RunStopping { finish, .. } => state.phase = Phase::Stopping { finish: *finish },
        Event::RunStopped { finish, exit_code, .. } => state.phase = Phase::Stopped { finish: *finish, exit_code: *exit_code },
        Event::ScriptRan { .. }
        | Event::GuardFailed { .. }
        | Event::WaitEnded { .. }
        | Event::LandingStarted { .. }
        | Event::Landed { .. }
        | Event::LandingRefused { .. }
        | Event::Reapplied { .. }
        | Event::Undone { .. }
        | Event::Retired => {}
    }
}

/// Records a story's result. The attempt at it is over.
fn record_result(state: &mut State, story: &StoryId, result: StoryResult) {
    state.questions.remove(story);
    state.progress.asked.remove(story);
    state.refusals.remove(story);
    state.results.insert(story.clone(), result);
    state.last_failures.remove(story);
    state.since_regression += 1;
    (state.consecutive_failures, state.unchanged_iterations, state.crashes) = (0, 0, 0);
    end_iteration(state, Some(result));
    state.phase = Phase::Selecting;
}

/// Whether the reason for the rejection has nothing to do with the attempt itself.
fn spends_nothing(rejection: &Rejection) -> bool {
    match rejection {
        Rejection::Stopped
        | Rejection::Crashed
        | Rejection::UsageLimit
        | Rejection::ServiceError
        | Rejection::NeedsReview
        | Rejection::Blocked => true,
        Rejection::ChecksFailed
        | Rejection::NothingChanged
        | Rejection::NoProgress
        | Rejection::TurnFailed
        | Rejection::TestsFailed
        | Rejection::CommitRefused
        | Rejection::Unfinished
        | Rejection::AlreadyGreen => false,
    }
}

/// A usage limit ends the run like any other limit, whoever set it.
fn ends_the_run(rejection: &Rejection) -> Option<Finish> {
    match rejection {
        Rejection::Crashed | Rejection::ServiceError => Some(Finish::Error),
        Rejection::UsageLimit => Some(Finish::Budget),
        Rejection::ChecksFailed
        | Rejection::NothingChanged
        | Rejection::NoProgress
        | Rejection::TurnFailed
        | Rejection::TestsFailed
        | Rejection::CommitRefused
        | Rejection::AlreadyGreen
        | Rejection::NeedsReview
        | Rejection::Unfinished
        | Rejection::Blocked
        | Rejection::Stopped => None,
    }
}

fn begin(place: &Place, title: &str, state: &State) -> Attempt {
    let feedback = state.last_failures.get(&place.story).cloned();
    Attempt { since_ms: state.active.ms(), feedback, ..Attempt::new(place.clone(), title) }
}

fn with_attempt(state: &mut State, change: impl FnOnce(&mut Attempt)) {
    if let Some(attempt) = &mut state.attempt {
        change(attempt);
    }
}

fn turn_ended(state: &mut State, outcome: &TurnOutcome, tests: &TurnTests) {
    if outcome.shows_working_service() {
        (state.service_errors, state.usage_waits) = (0, 0);
    }
    match outcome {
        TurnOutcome::Crashed { .. } | TurnOutcome::ApiError { retryable: false, .. } => state.crashes += 1,
        TurnOutcome::Ended
        | TurnOutcome::TimedOut { .. }
        | TurnOutcome::Idle { .. }
        | TurnOutcome::Looping { .. }
        | TurnOutcome::MaxTurns { .. }
        | TurnOutcome::Refused { .. } => state.crashes = 0,
        // The agent's budget is the rest of the run's budget.
        TurnOutcome::Budget { .. } => state.out_of_budget = true,
        // The run waits for the first two to pass.
        TurnOutcome::ApiError { retryable: true, .. } | TurnOutcome::UsageLimit { .. } | TurnOutcome::Interrupted => {}
        TurnOutcome::NotRunnable { reason } => {
            state.fatal = Some(Fatal {
                finish: Finish::Error,
                reason: format!("the agent could not be started: {reason}"),
                exit_code: EXIT_CONFIG,
            });
        }
        TurnOutcome::Auth { .. } | TurnOutcome::UnknownModel { .. } => {
            state.fatal = Some(fatal(Finish::Error, outcome, EXIT_CONFIG));
        }
        TurnOutcome::Billing { .. } => state.fatal = Some(fatal(Finish::Budget, outcome, Finish::Budget.exit_code())),
        TurnOutcome::GuardDead { .. } => state.fatal = Some(fatal(Finish::Error, outcome, Finish::Error.exit_code())),
    }
    if let (TurnOutcome::Refused { reason }, Some(attempt)) = (outcome, &state.attempt) {
        state.refusals.entry(attempt.place.story.clone()).or_default().push(reason.clone());
    }
    // After a wait the turn is repeated with the same prompt, so the agent needs no feedback about the wait.
    if matches!(outcome, TurnOutcome::ApiError { retryable: true, .. } | TurnOutcome::UsageLimit { .. }) {
        return;
    }
    let unfinished = state.attempt.as_ref().and_then(|attempt| attempt.unfinished.clone());
    let reason = match &tests.ended_turn {
        Some(reason) => Some(reason.clone()),
        None if *outcome == TurnOutcome::Ended && unfinished.is_some() => unfinished.map(|left| unfinished_words(&left)),
        // A repeated turn continues with the same prompt.
        None if waited_out(outcome) => return,
        None if *outcome == TurnOutcome::Ended => None,
        None => Some(format!("the last turn {}", outcome.describe())),
    };
    with_attempt(state, |attempt| {
        attempt.failing.clone_from(&tests.failing);
        if let Some(reason) = reason {
            attempt.feedback =
                Some(Feedback { tests: tests.failing.clone(), advice: advice(outcome), ..Feedback::plain(reason) });
        }
    });
}

/// What the agent has to do differently after a turn with this outcome.
fn advice(outcome: &TurnOutcome) -> Vec<String> {
    let text =
        "Do not repeat a call that gives the same result. Change something first, or say why you cannot continue and stop.";
    if matches!(outcome, TurnOutcome::Looping { .. }) { vec![text.to_owned()] } else { Vec::new() }
}

fn waited_out(outcome: &TurnOutcome) -> bool {
    matches!(outcome, TurnOutcome::UsageLimit { .. } | TurnOutcome::ApiError { retryable: true, .. })
}

fn fatal(finish: Finish, outcome: &TurnOutcome, exit_code: u8) -> Fatal {
    Fatal { finish, reason: format!("the agent {}", outcome.describe()), exit_code }
}

fn fold_verified(attempt: &mut Attempt, verified: &Verified) {
    let report = &verified.report;
    attempt.changed |= verified.changed > 0;
    attempt.judge.clone_from(&verified.judge);
    if let Some(cost) = verified.cost_usd() {
        attempt.cost_usd = Some(attempt.cost_usd.unwrap_or(0.0) + cost);
    }
    if report.outcome == Outcome::Failed {
        attempt.doubt_told |= report.is_doubted();
        attempt.feedback = Some(Feedback { tests: attempt.failing.clone(), ..Feedback::from_report(report) });
        count_failure(attempt, report);
    } else {
        attempt.feedback = None;
    }
    attempt.report = Some(Box::new(report.clone()));
}

fn count_failure(attempt: &mut Attempt, report: &VerifyReport) {
    let failure = (Some(report.trees.attempt.clone()), report.problems().join("\n"));
    let count = if attempt.same_failure.0.as_ref() == Some(&failure) { attempt.same_failure.1 + 1 } else { 1 };
    attempt.same_failure = (Some(failure), count);
}

fn was_kept(state: &mut State, place: &Place, files: u32) {
    let rejection = match &state.phase {
        Phase::Keeping { rejection } => rejection.clone(),
        _ => Rejection::Crashed,
    };
    let counts = !spends_nothing(&rejection) && rejection != Rejection::CommitRefused;
    if counts {
        *state.progress.attempts.entry(place.story.clone()).or_insert(0) += 1;
        state.consecutive_failures += 1;
        // Without a verification, only the kept work shows whether files changed.
        let unseen = rejection == Rejection::TestsFailed && files > 0;
        let changed = unseen || state.attempt.as_ref().is_some_and(|attempt| attempt.changed);
        state.unchanged_iterations = if changed { 0 } else { state.unchanged_iterations + 1 };
    }
    if rejection == Rejection::CommitRefused {
        let told = state.attempt.as_ref().and_then(|attempt| attempt.feedback.as_ref()).map(|told| told.reason.clone());
        let reason = told.unwrap_or_else(|| "the commit was refused".to_owned());
        state.fatal = Some(Fatal { finish: Finish::Blocked, reason, exit_code: Finish::Blocked.exit_code() });
    }
    end_iteration(state, counts.then_some(StoryResult::FAILED));
    state.phase = Phase::Selecting;
}

/// Another story's work may have broken it, so the next prompt says which checks fail now.
fn regressed(state: &mut State, story: &StoryId, runs: &[CheckRun], again: bool) {
    let mut failure = Feedback::from_runs(runs);
    failure.regressed = true;
    if again && state.fatal.is_none() {
        let reason = format!("{story} was fixed once and is broken again: {}", failing_sentence(runs));
        state.fatal = Some(Fatal { finish: Finish::Stalled, reason, exit_code: Finish::Stalled.exit_code() });
    }
    state.last_failures.insert(story.clone(), failure);
    state.reopened.insert(story.clone());
    state.results.remove(story);
    state.progress.failed.remove(story);
    state.skipped_now.remove(story);
    // Work that no longer passes cannot be reviewed.
    state.progress.review.remove(story);
    // The committed attempt counts, so that the next one gets a new number.
    *state.progress.attempts.entry(story.clone()).or_insert(0) += 1;
    match &mut state.phase {
        Phase::Reopening { stories } => stories.push(story.clone()),
        phase => *phase = Phase::Reopening { stories: vec![story.clone()] },
    }
}

fn end_iteration(state: &mut State, result: Option<StoryResult>) {
    let Some(attempt) = state.attempt.take() else { return };
    let duration_ms = state.active.ms().saturating_sub(attempt.since_ms);
    let exit_code = attempt.agent_exit;
    state.last_iteration = Some(EndedIteration { story: attempt.place.story, result, exit_code, duration_ms });
}

/// The next prompt gets the notes that no turn has used.
fn return_notes(state: &mut State) {
    let mut notes = state.attempt.as_mut().map(|attempt| std::mem::take(&mut attempt.notes)).unwrap_or_default();
    notes.append(&mut state.notes);
    state.notes = notes;
}

fn ask(state: &mut State, request: &Request) {
    match request {
        Request::StopAfterStory => {
            state.stop_after_story = true;
            state.paused = false;
        }
        Request::Pause => state.paused = true,
        Request::Resume => state.paused = false,
        // The signal that comes with it is recorded as an event.
        Request::Stop => {}
        Request::Skip { story, now } => {
            state.progress.failed.insert(story.clone(), "skipped by the user".to_owned());
            if *now {
                state.skipped_now.insert(story.clone());
            }
        }
        Request::Retry { story } => {
            state.questions.remove(story);
            state.progress.asked.remove(story);
            state.refusals.remove(story);
            state.progress.failed.remove(story);
            state.progress.attempts.remove(story);
            state.skipped_now.remove(story);
        }
        Request::Note { text } => state.notes.push(text.clone()),
        Request::Claim { story, status, summary, .. } => claim(state, story, *status, summary),
        Request::Question { story, reason, question, .. } => {
            state.progress.asked.insert(story.clone());
            let (reason, question) = (reason.clone(), question.clone());
            state.questions.insert(story.clone(), OpenQuestion { story: story.clone(), reason, question, answer: None });
        }
        Request::Answer { story, text } => answer(state, story, text),
        Request::Merge { story, summary } => {
            state.merges.insert(story.clone(), summary.clone());
        }
    }
}

fn claim(state: &mut State, story: &StoryId, status: ClaimStatus, summary: &str) {
    let unfinished = match status {
        ClaimStatus::Partial => Some(summary.to_owned()),
        // A blocked story comes with its question.
        ClaimStatus::Success | ClaimStatus::Blocked => None,
    };
    with_attempt(state, |attempt| {
        if attempt.place.story == *story {
            attempt.unfinished = unfinished;
        }
    });
}

/// After the answer, the story can be worked on again.
fn answer(state: &mut State, story: &StoryId, text: &str) {
    let Some(question) = state.questions.get_mut(story) else { return };
    question.answer = Some(text.to_owned());
    state.progress.asked.remove(story);
}

fn unfinished_words(left: &str) -> String {
    format!("the agent said that the story is not finished: {left}")
}
