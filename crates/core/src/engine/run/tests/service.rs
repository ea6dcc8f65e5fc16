//! The agent's service fails, or money runs out: what the run waits for, what a wait uses up, and how the run ends.

mod agent_requests;
mod end_of_waits;
mod outage;

use jiff::SignedDuration;

use super::*;
use crate::agent::AllowanceUse;
use crate::base::money::Usd;
use crate::base::span::Span;
use crate::done::{JudgeFact, JudgeRecord};
use crate::evidence::Evidence;
use crate::journal::control::Request;
use crate::journal::view::RunView;

const AT: Timestamp = Timestamp::UNIX_EPOCH;
/// In seconds, later than every time in the journal.
const LATER: i64 = 2_000_000_000;

/// A run in its first turn. The test supplies the inputs.
struct Bench {
    rules: Rules,
    state: State,
    journal: Vec<Recorded>,
    now: Duration,
    effect: Option<Effect>,
}

impl Bench {
    fn with(limits: impl FnOnce(&mut Limits)) -> Self {
        let mut bench = Self::before_its_turn(limits);
        bench.give(Input::RedChecked { red: Red::Red, runs: Vec::new() });
        bench
    }

    fn before_its_turn(limits: impl FnOnce(&mut Limits)) -> Self {
        let mut rules = rules();
        limits(&mut rules.limits);
        let (state, journal, now) = (State::default(), Vec::new(), Duration::ZERO);
        let mut bench = Self { rules, state, journal, now, effect: None };
        bench.give(start());
        bench.until(&Effect::RedCheck);
        bench
    }

    #[expect(clippy::needless_pass_by_value, reason = "inputs are made where they are given")]
    fn give(&mut self, input: Input) -> Option<&Effect> {
        let decision = decide(&self.state, &self.rules, self.now, &input);
        record(&mut self.state, &mut self.journal, decision.events, self.now);
        // A request or a signal does not change the effect in flight.
        self.effect = decision.effect.or(self.effect.take());
        self.effect.as_ref()
    }

    /// Answers effects that have only one possible answer, until this effect or the end of the run.
    fn until(&mut self, effect: &Effect) {
        for _ in 0..20 {
            if self.effect.as_ref() == Some(effect) || matches!(self.state.phase, Phase::Stopped { .. }) {
                return;
            }
            let done = self.state.results.contains_key(&StoryId::from("A"));
            let input = match self.effect.as_ref().unwrap() {
                Effect::Script(_) => Input::ScriptRan(None),
                Effect::Prepare => Input::Prepared { baseline: Vec::new() },
                Effect::Select => {
                    let story = StoryId::from(if done { "B" } else { "A" });
                    Input::Selected(Choice::Story { story, title: "t".to_owned(), number: 1, of: 2, open: 2 })
                }
                Effect::Reset => ready(),
                Effect::Commit => {
                    Input::Committed { commit: Oid::from("c"), tree: Oid::from("t"), files: 1, evidence: None, noted: true }
                }
                Effect::Keep => Input::Kept { kept: Oid::from("k"), files: 1 },
                Effect::Finish => Input::Finished { landed: None, script: None },
                other => panic!("{other:?} has to be answered by the test"),
            };
            self.give(input);
        }
    }

    fn turn(&mut self, outcome: TurnOutcome, cost: f64) {
        self.turn_with(outcome, cost, None);
    }

    /// `allowance` is the percentage used and the time of the reset.
    fn turn_with(&mut self, outcome: TurnOutcome, cost: f64, allowance: Option<(u32, i64)>) {
        let allowance = allowance.map(|(percent, resets)| {
            let (window, resets_at) = ("five_hour".to_owned(), Timestamp::from_second(resets).unwrap());
            AllowanceUse { window, percent, resets_at }
        });
        assert_eq!(self.effect, Some(Effect::Turn));
        let usage = Usage { cost_usd: Some(cost), ..Usage::default() };
        self.give(Input::TurnEnded(TurnReport { at: AT, usage, allowance, ..turn_report(outcome) }));
    }

    fn verify(&mut self, outcome: CheckOutcome) {
        self.verify_with(outcome, None);
    }

    /// With a judge's answer.
    fn verify_with(&mut self, outcome: CheckOutcome, judge: Option<JudgeRecord>) {
        let said = judge.as_ref().map_or(JudgeFact::Holds, |judge| judge.said.clone());
        let report = match (outcome, said) {
            (CheckOutcome::Passed, JudgeFact::Refuted { findings }) => {
                report(Outcome::Failed, Some(Proof::Verified), vec![Reason::Doubt(Doubt::JudgeRefuted { findings })])
            }
            (CheckOutcome::Passed, JudgeFact::Unknown { why }) => {
                report(Outcome::NeedsReview, Some(Proof::Verified), vec![Reason::Doubt(Doubt::JudgeUnknown { why })])
            }
            (CheckOutcome::Passed, JudgeFact::Holds | JudgeFact::Off) => done(Proof::Verified),
            _ => failed(vec![check_failed()]),
        };
        self.verify_as(report, judge);
    }

    /// On a new tree.
    fn verify_as(&mut self, report: VerifyReport, judge: Option<JudgeRecord>) {
        assert_eq!(self.effect, Some(Effect::Verify));
        let trees = TreeIds::of_attempt(Oid(format!("tree {}", self.journal.len())));
        let report = VerifyReport { trees, ..report };
        self.give(Input::Verified(Box::new(Verification { judge, ..verification(report) })));
    }

    fn attempt(&self) -> &Attempt {
        self.state.attempt.as_ref().unwrap()
    }

    fn waits_for(&self) -> SignedDuration {
        assert_eq!(self.effect, Some(Effect::Wait));
        let Phase::Waiting { until, .. } = self.state.phase else { panic!("{:?}", self.state.phase) };
        until.duration_since(AT)
    }

    /// Continues to the end of the run, which must be this one, and must not count against the story.
    #[track_caller]
    fn ends(&mut self, finish: Finish, exit_code: u8) {
        self.until(&Effect::RedCheck);
        assert_eq!(self.state.phase, Phase::Stopped { finish, exit_code }, "{:#?}", self.journal.last());
        assert_eq!((self.state.progress.attempts.len(), self.state.consecutive_failures), (0, 0));
    }

    fn reason(&self) -> String {
        let told = self.journal.iter().rev().find_map(|recorded| match &recorded.event {
            Event::AttemptRejected { reason, .. } | Event::RunStopping { reason, .. } => Some(reason.clone()),
            _ => None,
        });
        told.unwrap()
    }
}

fn limit_until(resets_at: Option<i64>) -> TurnOutcome {
    TurnOutcome::UsageLimit { reason: "used up".to_owned(), resets_at: resets_at.map(|at| Timestamp::from_second(at).unwrap()) }
}

fn overloaded() -> TurnOutcome {
    TurnOutcome::ApiError { reason: "overloaded".to_owned(), status: Some(529), retryable: true }
}

const RED: CheckOutcome = CheckOutcome::Failed { code: 1 };

#[test]
fn a_wait_spends_neither_a_turn_nor_an_attempt() {
    for outcome in [limit_until(Some(3)), limit_until(None), overloaded()] {
        let mut bench = Bench::with(|_| {});
        let place = bench.attempt().place.clone();
        bench.turn(outcome.clone(), 0.0);
        bench.waits_for();
        let before = bench.journal.len();
        assert_eq!(bench.give(Input::Waited { over: false }), Some(&Effect::Wait));
        assert_eq!(bench.journal.len(), before, "a moment of a wait is nothing to write down");
        assert_eq!(bench.give(Input::Waited { over: true }), Some(&Effect::Turn));
        assert_eq!(bench.attempt().place, place, "{outcome:?}");
        assert_eq!((bench.state.progress.attempts.len(), bench.state.crashes), (0, 0));
        bench.turn(TurnOutcome::Ended, 0.0);
        bench.verify(CheckOutcome::Passed);
        assert_eq!(bench.effect, Some(Effect::Commit));
    }
}

#[test]
fn a_usage_limit_is_waited_for_until_a_moment_after_its_reset() {
    let cases = [(Some(3_600), 3_601), (Some(-60), 10), (Some(0), 10), (None, 15 * 60)];
    for (resets, seconds) in cases {
        let mut bench = Bench::with(|_| {});
        bench.turn(limit_until(resets), 0.0);
        assert_eq!(bench.waits_for(), SignedDuration::from_secs(seconds), "{resets:?}");
    }
}

#[test]
fn a_usage_limit_that_never_ends_is_not_waited_for_for_ever() {
    let mut bench = Bench::with(|limits| (limits.api_errors, limits.turns) = (1, 9));
    let wait_30_times = |bench: &mut Bench| {
        for _ in 0..30 {
            bench.turn(limit_until(Some(3)), 0.0);
            assert_eq!(bench.give(Input::Waited { over: true }), Some(&Effect::Turn));
        }
    };
    wait_30_times(&mut bench);
    bench.turn(TurnOutcome::Ended, 0.0);
    bench.verify(RED);
    wait_30_times(&mut bench);
    assert_eq!(bench.attempt().place.turn, 2, "a turn that works forgives the waits before it");
    bench.turn(limit_until(Some(3)), 0.0);
    assert_eq!(bench.effect, Some(Effect::Keep));
    bench.ends(Finish::Budget, 3);
}

#[test]
fn without_waiting_a_usage_limit_ends_the_run_as_a_limit() {
    let mut bench = Bench::with(|limits| limits.wait_for_usage = false);
    bench.turn(limit_until(Some(3_600)), 0.0);
    assert_eq!(bench.effect, Some(Effect::Keep));
    assert!(bench.reason().contains("1970-01-01T01:00:00Z"), "{}", bench.reason());
    bench.ends(Finish::Budget, 3);
}

#[test]
fn near_its_limit_the_next_turn_waits_for_the_reset_and_spends_nothing() {
    let near = Some((97, LATER));
    for (pause_at, waits) in [(95, true), (97, true), (98, false), (0, false)] {
        let mut bench = Bench::with(|_| {});
        bench.rules.pause_at = pause_at;
        bench.turn_with(TurnOutcome::Ended, 0.0, near);
        bench.verify(RED);
        assert_eq!(bench.effect, Some(if waits { Effect::Wait } else { Effect::Turn }), "{pause_at}");
        if waits {
            assert_eq!(bench.waits_for(), SignedDuration::from_secs(LATER + 1));
            bench.give(Input::Asked(Request::Note { text: "hello".to_owned() }));
            assert_eq!(bench.give(Input::Waited { over: true }), Some(&Effect::Turn));
        }
        assert_eq!((bench.attempt().place.turn, bench.state.progress.attempts.len()), (2, 0), "{pause_at}");
        assert_eq!(bench.attempt().notes.len(), usize::from(waits));
    }
    // Also before the first turn of the next story, and after a turn that failed.
    let mut bench = Bench::with(|_| {});
    bench.rules.pause_at = 95;
    bench.turn_with(TurnOutcome::Crashed { reason: "why".to_owned() }, 0.0, near);
    assert_eq!(bench.waits_for(), SignedDuration::from_secs(LATER + 1));
    bench.give(Input::Waited { over: true });
    bench.turn_with(TurnOutcome::Ended, 0.0, near);
    bench.verify(CheckOutcome::Passed);
    bench.until(&Effect::RedCheck);
    bench.give(Input::RedChecked { red: Red::Red, runs: Vec::new() });
    assert_eq!(bench.waits_for(), SignedDuration::from_secs(LATER + 1));
    bench.give(Input::Waited { over: true });
    assert_eq!((bench.attempt().place.story.as_str(), bench.attempt().place.turn), ("B", 1));
}

#[test]
fn an_allowance_whose_reset_has_passed_is_waited_for_by_nobody() {
    let mut bench = Bench::with(|_| {});
    bench.rules.pause_at = 95;
    bench.turn_with(TurnOutcome::Ended, 0.0, Some((99, -1)));
    bench.verify(RED);
    assert_eq!((bench.effect, bench.state.allowance), (Some(Effect::Turn), None));
}

#[test]
fn without_waiting_a_limit_that_is_near_ends_the_run_as_a_limit() {
    let mut bench = Bench::with(|limits| limits.wait_for_usage = false);
    bench.rules.pause_at = 95;
    bench.turn_with(TurnOutcome::Ended, 0.0, Some((97, LATER)));
    bench.verify(RED);
    assert_eq!(bench.effect, Some(Effect::Keep));
    let told = "97% of the five-hour allowance is used (agent.claude.pause_at = 95); it resets at 2033-05-18T03:33:20Z";
    assert_eq!(bench.reason(), told);
    bench.ends(Finish::Budget, 3);
}

#[test]
fn errors_of_the_service_in_a_row_are_bounded_and_each_is_waited_for_longer() {
    let mut bench = Bench::with(|limits| limits.api_errors = 3);
    for (least, most) in [(1_500, 2_500), (3_000, 5_000), (6_000, 10_000)] {
        bench.turn(overloaded(), 0.0);
        let waited = bench.waits_for().as_millis();
        assert!((least..=most).contains(&waited), "{waited} ms");
        bench.give(Input::Waited { over: true });
    }
    bench.turn(overloaded(), 0.0);
    assert_eq!(bench.state.phase, Phase::Keeping { rejection: Rejection::ServiceError });
    bench.ends(Finish::Error, 1);
}

#[test]
fn a_turn_that_works_forgives_the_errors_before_it() {
    let mut bench = Bench::with(|limits| (limits.api_errors, limits.turns) = (1, 9));
    for turn in 1..5 {
        bench.turn(overloaded(), 0.0);
        bench.give(Input::Waited { over: true });
        assert_eq!(bench.attempt().place.turn, turn);
        bench.turn(TurnOutcome::Ended, 0.0);
        bench.verify(RED);
    }
}

#[test]
fn what_failed_before_the_wait_is_told_again_and_the_wait_is_not() {
    let mut bench = Bench::with(|_| {});
    bench.turn(overloaded(), 0.0);
    bench.give(Input::Waited { over: true });
    assert_eq!(bench.attempt().feedback, None, "a first turn has nothing to mend");
    bench.turn(TurnOutcome::Ended, 0.0);
    bench.verify(RED);
    let told = bench.attempt().feedback.clone();
    assert!(told.is_some() && bench.attempt().place.turn == 2);
    bench.turn(limit_until(Some(3)), 0.0);
    bench.give(Input::Waited { over: true });
    assert_eq!(bench.attempt().feedback, told);
}

#[test]
fn notes_of_the_user_are_kept_when_a_turn_is_made_again() {
    let note = |text: &str| Input::Asked(Request::Note { text: text.to_owned() });
    let mut bench = Bench::before_its_turn(|_| {});
    bench.give(note("one"));
    bench.give(Input::RedChecked { red: Red::Red, runs: Vec::new() });
    assert_eq!(bench.attempt().notes, ["one"]);
    assert_eq!(bench.attempt().repeats, None);
    bench.turn(overloaded(), 0.0);
    bench.give(note("two"));
    bench.give(Input::Waited { over: true });
    assert_eq!(
        (bench.attempt().notes.as_slice(), bench.attempt().repeats),
        (["one", "two"].map(String::from).as_slice(), Some(1))
    );
    bench.turn(TurnOutcome::Ended, 0.0);
    bench.verify(RED);
    assert_eq!(bench.attempt().notes, [""; 0], "the agent has heard them");
    assert_eq!(bench.attempt().repeats, None, "the next turn has its own prompt");
}

#[test]
fn a_story_that_is_skipped_during_a_wait_is_given_up_at_once() {
    let mut bench = Bench::before_its_turn(|_| {});
    bench.give(Input::Asked(Request::Note { text: "hello".to_owned() }));
    bench.give(Input::RedChecked { red: Red::Red, runs: Vec::new() });
    bench.turn(limit_until(Some(3_600)), 0.0);
    bench.give(Input::Asked(Request::Skip { story: StoryId::from("A"), now: false }));
    assert_eq!(bench.give(Input::Waited { over: false }), Some(&Effect::Keep));
    assert_eq!(bench.reason(), "skipped by the user");
    bench.until(&Effect::Select);
    assert!(bench.state.progress.attempts.is_empty() && bench.state.fatal.is_none());
    assert_eq!(bench.state.notes, ["hello"], "no turn has used it");
    assert_eq!(RunView::from_journal(&bench.journal).unused_notes(), ["hello"]);
}

#[test]
fn a_story_that_is_skipped_now_gets_no_further_step() {
    let skip = |story: &str| Input::Asked(Request::Skip { story: StoryId::from(story), now: true });
    let before_check = || Bench::before_its_turn(|_| {});
    let before_turn = || Bench::with(|_| {});
    let before_verification = || {
        let mut bench = Bench::with(|_| {});
        bench.turn(TurnOutcome::Ended, 0.0);
        bench
    };
    let before_commit = || {
        let mut bench = before_verification();
        bench.verify(CheckOutcome::Passed);
        bench
    };
    for (effect, mut bench) in [
        (Effect::RedCheck, before_check()),
        (Effect::Turn, before_turn()),
        (Effect::Verify, before_verification()),
        (Effect::Commit, before_commit()),
    ] {
        bench.give(skip("B"));
        assert_eq!(bench.effect.as_ref(), Some(&effect));
        assert!(!bench.state.calls_off(&effect), "{effect:?}: another story");
        bench.give(skip("A"));
        assert!(bench.state.calls_off(&effect), "{effect:?}");
        assert_eq!(bench.give(Input::CalledOff), Some(&Effect::Keep), "{effect:?}");
        assert_eq!(bench.reason(), "skipped by the user");
        assert!(!bench.state.calls_off(&Effect::Keep));
    }
    // If it arrives while the last check runs, there may be nothing left to interrupt.
    let mut bench = before_verification();
    bench.give(skip("A"));
    bench.verify(CheckOutcome::Passed);
    assert_eq!(bench.effect, Some(Effect::Keep));
    // A retry takes it back.
    let mut bench = before_turn();
    bench.give(skip("A"));
    bench.give(Input::Asked(Request::Retry { story: StoryId::from("A") }));
    assert!(!bench.state.calls_off(&Effect::Turn));
}

#[test]
fn a_signal_ends_a_wait_and_none_begins_after_it() {
    let mut bench = Bench::with(|_| {});
    bench.turn(overloaded(), 0.0);
    assert_eq!(bench.give(Input::Signal(StopSignal::Sigterm)), Some(&Effect::Wait));
    assert_eq!(bench.give(Input::Waited { over: false }), Some(&Effect::Keep));
    bench.ends(Finish::Manual, 143);

    let mut bench = Bench::with(|_| {});
    bench.give(Input::Signal(StopSignal::Sigint));
    bench.turn(limit_until(None), 0.0);
    assert_eq!(bench.effect, Some(Effect::Keep));
    bench.ends(Finish::Manual, 130);
}

#[test]
fn a_run_that_is_out_of_time_does_not_go_on_after_a_wait() {
    let mut bench = Bench::with(|limits| limits.total_time = Span::from_secs(10));
    bench.turn(overloaded(), 0.0);
    bench.now = Duration::from_secs(10);
    assert_eq!(bench.give(Input::Waited { over: true }), Some(&Effect::Keep));
    bench.ends(Finish::Timeout, 3);
}

#[test]
fn money_that_is_spent_between_two_turns_ends_the_run_without_blame() {
    let capped = |limits: &mut Limits| limits.cost_usd = Usd::try_from(1.0).unwrap();
    let mut bench = Bench::with(capped);
    bench.turn(TurnOutcome::Ended, 0.6);
    bench.verify(RED);
    bench.turn(TurnOutcome::Ended, 0.4);
    bench.verify(RED);
    assert_eq!(bench.effect, Some(Effect::Keep));
    assert_eq!(bench.reason(), "1.00 USD were spent, and the limit is 1.00 (limits.cost_usd)");
    bench.ends(Finish::Budget, 3);

    // Waiting is also pointless if there is no money for the turn afterwards.
    let mut bench = Bench::with(capped);
    bench.turn(limit_until(Some(3_600)), 1.5);
    assert_eq!(bench.effect, Some(Effect::Keep));
    bench.ends(Finish::Budget, 3);
}

#[test]
fn what_a_judge_costs_is_spent_by_the_run_and_by_the_attempt() {
    let judge = |cost: f64| {
        let usage = Usage { cost_usd: Some(cost), ..Usage::default() };
        Some(JudgeRecord { usage, session: Some("s2".to_owned()), said: JudgeFact::Holds, ..JudgeRecord::new("claude") })
    };
    let capped = |limits: &mut Limits| limits.cost_usd = Usd::try_from(1.0).unwrap();
    let mut bench = Bench::with(capped);
    bench.turn(TurnOutcome::Ended, 0.3);
    bench.verify_with(RED, judge(0.3));
    assert_eq!((bench.effect.clone(), bench.attempt().cost_usd), (Some(Effect::Turn), Some(0.6)));
    bench.turn(TurnOutcome::Ended, 0.1);
    bench.verify_with(RED, judge(0.3));
    assert_eq!(bench.effect, Some(Effect::Keep), "it is spent before it is in the state");
    bench.ends(Finish::Budget, 3);

    let mut bench = Bench::with(capped);
    bench.turn(TurnOutcome::Ended, 0.3);
    bench.verify_with(CheckOutcome::Passed, judge(f64::NAN));
    let result = (Proof::Verified, Outcome::Done);
    let evidence = Evidence::for_attempt(&bench.state, bench.attempt(), result, bench.attempt().report.as_ref().unwrap());
    let judge = evidence.judge.unwrap();
    assert_eq!((judge.session.as_deref(), evidence.cost_usd), (Some("s2"), Some(0.3)), "what is no number costs nothing");
}

#[test]
fn a_judge_that_gives_no_clear_answer_spends_no_turn_and_leaves_the_story_to_a_person() {
    let after = |said: JudgeFact, change: fn(&mut Limits)| {
        let mut bench = Bench::with(change);
        bench.turn(TurnOutcome::Ended, 0.3);
        let usage = Usage { cost_usd: Some(0.3), ..Usage::default() };
        bench.verify_with(CheckOutcome::Passed, Some(JudgeRecord { said, usage, ..JudgeRecord::new("claude") }));
        let rejection = bench.journal.iter().find_map(|recorded| match &recorded.event {
            Event::AttemptRejected { rejection, .. } => Some(rejection.clone()),
            _ => None,
        });
        (bench.effect.clone(), rejection)
    };
    let unknown = || JudgeFact::Unknown { why: "the judge reached a usage limit".to_owned() };
    let refuted = JudgeFact::Refuted { findings: vec!["a:1: wrong".to_owned()] };
    let short = |limits: &mut Limits| limits.cost_usd = Usd::try_from(0.5).unwrap();
    assert_eq!(after(unknown(), |_| {}), (Some(Effect::Keep), Some(Rejection::NeedsReview)));
    assert_eq!(after(unknown(), short), (Some(Effect::Keep), Some(Rejection::NeedsReview)), "a review costs nothing");
    assert_eq!(after(refuted.clone(), |_| {}), (Some(Effect::Turn), None), "what was found is fed back");
    assert_eq!(after(refuted, short), (Some(Effect::Keep), Some(Rejection::Stopped)), "a turn of feedback has to be paid");
    assert_eq!(after(JudgeFact::Holds, |_| {}), (Some(Effect::Commit), None));
}
