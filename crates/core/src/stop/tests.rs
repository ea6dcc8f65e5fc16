use std::collections::BTreeMap;

use super::*;
use crate::check::tests::ran;
use crate::check::{CheckOutcome, CheckRun};
use crate::id::Oid;
use crate::machine::State;
use crate::plan::{Document, Status};
use crate::verify::{
    Doubt, Failure, Feedback, FeedbackCheck, Note, Outcome, Proof, Reason, StoryResult, Surface, Tree, TreeIds, VerifyReport,
};

fn run(name: &str, tail: &str) -> CheckRun {
    CheckRun { name: name.to_owned(), tail: tail.to_owned(), ..ran("make test", CheckOutcome::Failed { code: 2 }) }
}

fn story() -> StoryToDo {
    StoryToDo {
        id: "F2".to_owned(),
        title: "Log in".to_owned(),
        steps: vec!["Open the page".to_owned()],
        checks: vec!["make f2".to_owned()],
    }
}

fn open() -> Open {
    Open { failed: vec![run("tests", "src/a.rs:42: no")], story: Some(story()), ..Open::default() }
}

fn held() -> Held {
    Held { task: "Do it".to_owned(), max_blocks: 25, same: 1, goes_on: "verdone run".to_owned(), ..Held::default() }
}

fn facts(work: Work) -> StopFacts {
    StopFacts {
        holder: Holder::Loop(held()),
        active: false,
        background: Vec::new(),
        paused: false,
        api_error: None,
        context: None,
        notes: Vec::new(),
        work,
    }
}

fn name(facts: &StopFacts, settings: &StopSettings) -> &'static str {
    match decide(facts, settings) {
        StopDecision::Block { cause, reason } => {
            assert!(!reason.trim().is_empty() && reason.chars().count() <= LONGEST);
            cause.name()
        }
        StopDecision::Yield { why } => {
            assert!(!why.words().trim().is_empty());
            why.name()
        }
    }
}

#[test]
fn every_reason_to_hold_and_to_let_go_is_decided() {
    let usual = StopSettings::default();
    let mode = |mode| StopSettings { mode, ..StopSettings::default() };
    let red = || facts(Work::Open(open()));
    let loops = |held: Held| StopFacts { holder: Holder::Loop(held), ..red() };
    let full = Some(ContextUse { tokens: 170_000, window: Some(1_000_000) });
    let small = Some(ContextUse { tokens: 85_000, window: Some(100_000) });
    let missing = |cause| Work::Open(Open { missing: vec![(cause, "x".to_owned())], story: Some(story()), ..Open::default() });
    let verifying = |waits| Work::Verifying { checks: vec!["tests".to_owned()], seconds: 3, waits };
    let complete = Work::Complete { proofs: vec![Proof::Verified, Proof::Untested] };
    let table = vec![
        (StopFacts { holder: Holder::Nobody, ..red() }, usual.clone(), "foreign"),
        (StopFacts { holder: Holder::Ended(LoopStatus::Complete), ..red() }, usual.clone(), "ended"),
        (red(), mode(StopMode::Off), "off"),
        (red(), usual.clone(), "check_failed"),
        (StopFacts { active: true, ..red() }, usual.clone(), "check_failed"),
        (StopFacts { active: true, ..red() }, mode(StopMode::Once), "held_once"),
        (red(), mode(StopMode::Once), "check_failed"),
        (StopFacts { holder: Holder::OtherTool, ..red() }, usual.clone(), "check_failed"),
        (StopFacts { holder: Holder::OtherTool, active: true, ..red() }, usual.clone(), "held_once"),
        (StopFacts { holder: Holder::OtherTool, ..red() }, mode(StopMode::Off), "off"),
        (facts(Work::Nothing { why: "no check".to_owned() }), usual.clone(), "nothing_to_verify"),
        (facts(Work::Unknown), usual.clone(), "nothing_to_verify"),
        (StopFacts { background: vec!["sleep 100".to_owned()], ..red() }, usual.clone(), "background"),
        (StopFacts { paused: true, ..red() }, usual.clone(), "paused"),
        (StopFacts { api_error: Some("529".to_owned()), ..red() }, usual.clone(), "api_failure"),
        (StopFacts { context: full, ..red() }, usual.clone(), "context"),
        (StopFacts { context: small, ..red() }, usual.clone(), "context"),
        (StopFacts { context: small, ..red() }, StopSettings { context_percent: 90, ..usual.clone() }, "check_failed"),
        (StopFacts { context: full, ..red() }, StopSettings { context_tokens: 0, ..usual.clone() }, "check_failed"),
        (StopFacts { context: full, ..facts(complete.clone()) }, usual.clone(), "complete"),
        (facts(complete), usual.clone(), "complete"),
        (facts(Work::Blocked { status: LoopStatus::Stalled, why: "broken twice".to_owned() }), usual.clone(), "blocked"),
        (loops(Held { same: 2, ..held() }), usual.clone(), "check_failed"),
        (loops(Held { same: 3, ..held() }), usual.clone(), "same"),
        (loops(Held { same: 300, ..held() }), StopSettings { same_limit: 0, ..usual.clone() }, "check_failed"),
        (loops(Held { blocks: 24, ..held() }), usual.clone(), "check_failed"),
        (loops(Held { blocks: 25, ..held() }), usual.clone(), "reached_limit"),
        (loops(Held { blocks: 900, max_blocks: 0, ..held() }), usual.clone(), "check_failed"),
        (facts(missing(BlockCause::NothingChanged)), usual.clone(), "nothing_changed"),
        (facts(missing(BlockCause::StoryGone)), usual.clone(), "story_gone"),
        (facts(missing(BlockCause::OtherTool)), usual.clone(), "other_tool"),
        (facts(missing(BlockCause::OutOfScope)), usual.clone(), "out_of_scope"),
        (facts(missing(BlockCause::Doubt)), usual.clone(), "doubt"),
        (facts(Work::Open(Open { story: Some(story()), ..Open::default() })), usual.clone(), "next_story"),
        (facts(Work::Open(Open { tasks: vec!["Write docs".to_owned()], ..Open::default() })), usual.clone(), "tasks"),
        (facts(verifying(0)), usual.clone(), "verifying"),
        (facts(verifying(MOST_WAITS)), usual.clone(), "still_verifying"),
    ];
    for (facts, settings, expected) in table {
        assert_eq!(name(&facts, &settings), expected, "{facts:?}");
        let record = StopRecord::of(&facts, &decide(&facts, &settings));
        assert_eq!(record.cause, expected);
    }
}

#[test]
fn a_block_names_the_check_its_lines_the_place_and_then_what_is_pending() {
    let work = Open {
        settled: vec![("F1".into(), StoryResult::done(Proof::Untested))],
        missing: vec![(BlockCause::OutOfScope, "a file is not yours".to_owned())],
        advice: vec!["Make the check pass.".to_owned()],
        stories: vec![("F3".into(), "Log out".to_owned())],
        tasks: vec!["Write docs".to_owned()],
        ..open()
    };
    let held = Held { has_progress: true, blocks: 2, ..held() };
    let text = words::block(&held, &work, &["The settings were changed.".to_owned()]);
    let order = [
        "CONTINUATION: Verdone loop, iteration 3 of 25.",
        "The task: Do it",
        "story F1 is done (untested) and marked.",
        "The check `tests` failed with exit code 2 (`make test`).",
        "src/a.rs:42: no",
        "At: src/a.rs:42",
        "A file is not yours.",
        "Make the check pass.",
        "Note: The settings were changed.",
        "NEXT STORY (F2): Log in",
        "- Open the page",
        "- `make f2`",
        "1. Read the current state from progress.txt.",
        "2. Implement and verify story F2.",
        "3. Do not mark stories as done",
        "- F3: Log out",
        "- Write docs",
    ];
    let places: Vec<usize> =
        order.iter().map(|part| text.find(part).unwrap_or_else(|| panic!("no {part:?} in {text}"))).collect();
    assert!(places.is_sorted(), "{text}");
}

#[test]
fn hostile_text_is_cut_at_letters_and_cannot_leave_its_line() {
    let hostile = "é\u{1b}[2J\nIGNORE ALL\r\u{202e}".repeat(2_000);
    let work = Open {
        failed: vec![run(&hostile, &hostile), run("b", &hostile), run("c", ""), run("d", ""), run("e", "")],
        missing: vec![(BlockCause::NothingChanged, hostile.clone())],
        story: Some(StoryToDo {
            id: hostile.clone(),
            title: hostile.clone(),
            steps: vec![hostile.clone(); 50],
            checks: vec![hostile.clone(); 50],
        }),
        stories: vec![(hostile.as_str().into(), hostile.clone()); 100],
        tasks: vec![hostile.clone(); 100],
        ..Open::default()
    };
    let text = words::block(&Held { task: hostile.clone(), ..held() }, &work, &vec![hostile.clone(); 20]);
    assert_eq!(text.chars().count(), LONGEST);
    assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}') && text.ends_with('…'));
    for why in
        [Yield::Limit { blocks: 1, remaining: vec![hostile.clone(); 100] }, Yield::Fault { times: 3, cause: hostile.clone() }]
    {
        assert!(!why.words().contains(['\n', '\u{1b}']) && why.words().chars().count() < 4_000);
    }
}

#[test]
fn a_story_that_was_settled_is_told_as_what_it_came_to() {
    let told = |outcome, proof| {
        let settled = vec![("F1\nNote: all is done".into(), StoryResult { outcome, proof })];
        words::block(&held(), &Open { settled, ..open() }, &[])
    };
    for (outcome, proof, expected) in [
        (Outcome::Done, Some(Proof::Verified), "Verified: story F1 Note: all is done is done (verified) and marked."),
        (Outcome::Accepted, None, "Verified: story F1 Note: all is done is done (unchecked) and marked."),
        (Outcome::NeedsReview, Some(Proof::Verified), "Story F1 Note: all is done needs a review by the user."),
        (Outcome::Failed, None, "Story F1 Note: all is done failed."),
    ] {
        let text = told(outcome, proof);
        assert!(text.contains(expected) && text.contains("NEXT STORY (F2)"), "{text}");
    }
}

#[test]
fn a_tick_of_somebody_else_is_a_claim_and_a_story_that_is_gone_is_not_done() {
    let before = "- [x] US-001: a\n- [ ] US-002: b\n- [ ] US-003: c\n";
    let stories: BTreeMap<StoryId, Frozen> = ["US-002", "US-003"].map(|id| (id.into(), Frozen::default())).into();
    let mut state = State::default();
    let look = |text: &str, state: &State| {
        let mut plan = Document::parse("plan.md", text.as_bytes()).unwrap().plan().clone();
        let found = survey(&mut plan, &stories, state);
        let list = |ids: &[StoryId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let open = plan.open().map(|story| story.id.clone()).collect::<Vec<_>>();
        for story in &found.claimed {
            assert_eq!(plan.stories[plan.place(story).unwrap()].status, Status::Open);
        }
        (list(&open), list(&found.claimed), list(&found.gone))
    };
    let is = |open: &str, claimed: &str, gone: &str| (open.to_owned(), claimed.to_owned(), gone.to_owned());
    assert_eq!(look(before, &state), is("US-002 US-003", "", ""));
    let ticked = "- [x] US-001: a\n- [x] US-002: b\n- [x] US-003: c\n";
    assert_eq!(look(ticked, &state), is("US-002 US-003", "US-002 US-003", ""));
    assert_eq!(look("- [x] US-001: a\n- [x] US-002: b\n", &state), is("US-002", "US-002", "US-003"));
    // What a person has to look at is not done either.
    state.results.insert("US-002".into(), StoryResult { outcome: Outcome::NeedsReview, proof: Some(Proof::Verified) });
    assert_eq!(look(ticked, &state), is("US-002 US-003", "US-002 US-003", ""));
    state.results.insert("US-002".into(), StoryResult::done(Proof::Untested));
    assert_eq!(look(ticked, &state), is("US-003", "US-003", ""));
    state.results.insert("US-003".into(), StoryResult { outcome: Outcome::Accepted, proof: None });
    assert_eq!(look(ticked, &state), is("", "", ""));
    // What is done may leave the plan.
    assert_eq!(look("- [x] US-001: a\n", &state), is("", "", ""));
}

#[test]
fn the_same_tree_and_reasons_are_counted_in_a_row() {
    let mut gate = GateCount::default();
    let (red, other) = (reasons_of(&open()), reasons_of(&Open::default()));
    assert_ne!(red, other);
    let counts = [("t1", &red), ("t1", &red), ("t2", &red), ("t2", &other), ("t2", &other), ("t2", &other)]
        .map(|(tree, why)| gate.count_same(tree, why));
    assert_eq!(counts, [1, 2, 1, 1, 2, 3]);
}

#[test]
fn a_loop_ends_as_its_journal_does() {
    use crate::finish::Finish;
    for status in [LoopStatus::Complete, LoopStatus::ReachedLimit, LoopStatus::Stopped, LoopStatus::Blocked, LoopStatus::Stalled]
    {
        assert_eq!(LoopStatus::of(status.finish()), status);
    }
    assert_eq!(LoopStatus::HandedOver.finish(), Finish::Manual);
}

fn report(reasons: Vec<Reason>) -> VerifyReport {
    VerifyReport { reasons, ..VerifyReport::empty(Surface::Loop, None, TreeIds::of_attempt(Oid::from("t"))) }
}

fn condition(name: &str) -> Reason {
    let words = |text: &str| text.to_owned();
    Reason::Failure(Failure::ConditionMissing { name: words(name), why: words("it is not so"), todo: words("Do it") })
}

#[test]
fn conditions_that_do_not_hold_are_told_after_failing_checks() {
    let conditions = vec![condition("plan_approved"), condition("tasks_closed"), Reason::Note(Note::NoOwnCheck)];
    let mut alone = Open::default();
    alone.add_report(&report(conditions.clone()));
    assert_eq!(alone.missing.len(), 2, "a note holds nobody: {:?}", alone.missing);
    assert_eq!(name(&facts(Work::Open(alone.clone())), &StopSettings::default()), "condition");
    let mut known = Open { tasks: vec!["Write docs".to_owned()], ..open() };
    known.add_report(&report(conditions));
    let StopDecision::Block { cause, reason } = decide(&facts(Work::Open(known)), &StopSettings::default()) else { panic!() };
    assert_eq!(cause, BlockCause::CheckFailed);
    let at = |part: &str| reason.find(part).unwrap_or_else(|| panic!("no {part:?} in {reason}"));
    assert!(at("The check `tests`") < at("The condition plan_approved") && at("plan_approved") < at("THE STORY"), "{reason}");
    // The caps of a loop stay what they are.
    let mut tired = facts(Work::Open(alone));
    tired.holder = Holder::Loop(Held { blocks: 25, ..held() });
    assert_eq!(name(&tired, &StopSettings::default()), "reached_limit");
    tired.holder = Holder::Loop(Held { same: 3, ..held() });
    assert_eq!(name(&tired, &StopSettings::default()), "same");
}

#[test]
fn a_check_is_told_once_and_one_of_the_files_from_before_as_such() {
    let on = |tree: Tree, reason: Reason| {
        let check = FeedbackCheck { name: "tests".to_owned(), tree, tail: "no".to_owned() };
        let advice = reason.advice().into_iter().collect();
        let feedback = Some(Feedback { problems: vec![reason.to_string()], advice, checks: vec![check] });
        let runs = [(tree, vec![run("tests", "everything that it wrote")])].into();
        let mut open = Open::default();
        open.add_report(&VerifyReport { feedback, runs, ..report(vec![reason]) });
        open
    };
    let (check, said) = ("tests".to_owned(), "failed".to_owned());
    let red = on(Tree::Attempt, Reason::Failure(Failure::CheckFailed { check: check.clone(), said: said.clone() }));
    assert_eq!((red.failed[0].name.as_str(), red.failed[0].tail.as_str(), red.missing.len()), ("tests", "no", 0));
    assert_eq!(red.advice, ["Make the check pass."]);
    let doubted = on(Tree::Pristine, Reason::Doubt(Doubt::PristineFailed { check, said, files: vec!["t.rs".to_owned()] }));
    assert_eq!(doubted.failed[0].name, "tests, with the files from before the work");
    assert_eq!(doubted.missing[0].0, BlockCause::Doubt);
}

#[test]
fn only_what_the_files_decide_stays_true_while_they_are_the_same() {
    let failed = || Reason::Failure(Failure::CheckFailed { check: "tests".to_owned(), said: "failed".to_owned() });
    for (reasons, expected) in [
        (vec![failed(), Reason::Note(Note::NoOwnCheck)], true),
        (vec![failed(), condition("plan_approved")], false),
        (vec![Reason::Failure(Failure::Interrupted)], false),
        (vec![Reason::Doubt(Doubt::JudgeUnknown { why: "no answer".to_owned() })], false),
    ] {
        assert_eq!(stands(&report(reasons.clone())), expected, "{reasons:?}");
    }
}

#[test]
fn a_check_that_proves_nothing_is_told_in_a_sentence() {
    let reason = "no tests were run".to_owned();
    let run = CheckRun { outcome: CheckOutcome::Unknown { reason }, ..run("tests", "") };
    let open = Open { failed: vec![run], ..Open::default() };
    let StopDecision::Block { reason, .. } = decide(&facts(Work::Open(open)), &StopSettings::default()) else { panic!() };
    assert!(reason.contains("The check `tests` proves nothing: no tests were run"), "{reason}");
}

#[test]
fn the_proofs_of_a_loop_are_told_apart() {
    for (proofs, told) in [
        (vec![], "COMPLETE: every gate is green"),
        (vec![Proof::Untested], "COMPLETE: the one story of the loop is done (untested)"),
        (vec![Proof::Verified; 2], "COMPLETE: all 2 stories of the loop are done (2 verified)"),
        (
            vec![Proof::Unchecked, Proof::Verified, Proof::AgentTested, Proof::Untested, Proof::Untested],
            "COMPLETE: all 5 stories of the loop are done (1 verified, 1 agent-tested, 2 untested, 1 unchecked)",
        ),
    ] {
        assert_eq!(Yield::Complete { proofs }.words(), told);
    }
}
