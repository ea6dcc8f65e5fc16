//! What the agent's tools ask of the run.

use super::*;
use crate::journal::agent_tools::ClaimStatus;

fn asks(question: &str) -> Input {
    let (story, reason, question) = (StoryId::from("A"), "unclear".to_owned(), question.to_owned());
    Input::Asked(Request::Question { story, reason, question, carried: false })
}

fn claims(status: ClaimStatus) -> Input {
    Input::Asked(Request::Claim { story: StoryId::from("A"), status, summary: "half of it".to_owned(), tests_passed: true })
}

#[test]
fn a_question_sets_the_story_aside_uncounted_until_it_is_answered() {
    let mut bench = Bench::with(|_| {});
    bench.give(asks("Which one?"));
    bench.turn(TurnOutcome::Ended, 0.0);
    assert_eq!(bench.effect, Some(Effect::Keep), "work without the answer is not verified");
    assert_eq!(bench.reason(), "asks the user: Which one?");
    bench.until(&Effect::Select);
    let story = StoryId::from("A");
    assert!(bench.state.progress.attempts.is_empty() && bench.state.fatal.is_none() && bench.state.consecutive_failures == 0);
    assert!(bench.state.progress.asked.contains(&story) && bench.state.progress.failed.is_empty(), "it did not fail");
    let view = RunView::from_journal(&bench.journal);
    assert_eq!(view.open_questions().count(), 1);
    bench.give(Input::Asked(Request::Answer { story: story.clone(), text: "this one".to_owned() }));
    assert!(bench.state.progress.asked.is_empty());
    assert_eq!(bench.state.questions[&story].answer.as_deref(), Some("this one"));
    let view = RunView::from_journal(&bench.journal);
    assert_eq!((view.open_questions().count(), view.questions.len()), (0, 1));
    bench.until(&Effect::RedCheck);
    bench.give(Input::RedChecked { red: Red::Red, runs: Vec::new() });
    bench.turn(TurnOutcome::Ended, 0.0);
    bench.verify(CheckOutcome::Passed);
    bench.until(&Effect::Select);
    assert!(bench.state.questions.is_empty(), "a story that is done has no question");
    assert!(RunView::from_journal(&bench.journal).questions.is_empty());
}

#[test]
fn an_answer_to_nobody_changes_nothing_and_a_skipped_story_stays_skipped() {
    let mut bench = Bench::with(|_| {});
    let answer = || Input::Asked(Request::Answer { story: StoryId::from("A"), text: "x".to_owned() });
    bench.give(answer());
    assert!(bench.state.questions.is_empty());
    bench.give(asks("Which one?"));
    bench.give(Input::Asked(Request::Skip { story: StoryId::from("A"), now: false }));
    bench.give(answer());
    assert_eq!(bench.state.progress.failed[&StoryId::from("A")], "skipped by the user");
}

#[test]
fn a_story_that_the_agent_calls_unfinished_gets_another_turn_and_then_fails() {
    let mut bench = Bench::with(|limits| limits.turns = 2);
    bench.give(claims(ClaimStatus::Partial));
    bench.turn(TurnOutcome::Ended, 0.0);
    assert_eq!(bench.effect, Some(Effect::Turn), "nothing is verified");
    let told = bench.attempt().feedback.clone().unwrap();
    assert!(told.reason.contains("half of it"), "{told:?}");
    bench.give(claims(ClaimStatus::Partial));
    bench.give(claims(ClaimStatus::Success));
    bench.turn(TurnOutcome::Ended, 0.0);
    assert_eq!(bench.effect, Some(Effect::Verify), "the last claim counts");
    bench.verify(RED);
    assert_eq!(bench.effect, Some(Effect::Keep));
    let mut bench = Bench::with(|limits| limits.turns = 1);
    bench.give(claims(ClaimStatus::Partial));
    bench.turn(TurnOutcome::Ended, 0.0);
    bench.until(&Effect::Select);
    assert_eq!(bench.state.progress.attempts[&StoryId::from("A")], 1, "it counts as an attempt");
}
