use verdone_plan::{Document, Progress, Selection, select};

use super::*;
use crate::base::finish::Finish;
use crate::base::id::Oid;
use crate::check::tests::ran;
use crate::check::{CheckOutcome, CheckRun};
use crate::config::Config;
use crate::engine::run::State;
use crate::plan::DIALECT;
use crate::verify::{Doubt, Failure, Note, Outcome, Reason, Surface, TreeIds, VerifyReport};

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

fn held() -> LoopCounters {
    LoopCounters {
        task: "Do it".to_owned(),
        max_blocks: 25,
        same: 1,
        goes_on: "verdone run".to_owned(),
        ..LoopCounters::default()
    }
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
            assert!(!why.describe().trim().is_empty());
            why.name()
        }
    }
}

#[test]
fn every_reason_to_hold_and_to_let_go_is_decided() {
    let usual = StopSettings::default();
    let mode = |mode| StopSettings { mode, ..StopSettings::default() };
    let red = || facts(Work::Open(open()));
    let loops = |held: LoopCounters| StopFacts { holder: Holder::Loop(held), ..red() };
    let full = Some(ContextUse { tokens: 170_000, window: Some(1_000_000) });
    let small = Some(ContextUse { tokens: 85_000, window: Some(100_000) });
    let missing = |cause| Work::Open(Open { missing: vec![(cause, "x".to_owned())], story: Some(story()), ..Open::default() });
    let verifying = |waits| Work::Verifying { checks: vec!["tests".to_owned()], seconds: 3, waits };
    let complete = Work::Complete { proofs: vec![Proof::Verified, Proof::Untested] };
    let blocked = Work::Blocked { status: LoopStatus::Stalled, why: "broken again".to_owned() };
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
        (StopFacts { context: full, ..facts(blocked) }, usual.clone(), "blocked"),
        (loops(LoopCounters { same: 2, ..held() }), usual.clone(), "check_failed"),
        (loops(LoopCounters { same: 3, ..held() }), usual.clone(), "same"),
        (loops(LoopCounters { same: 300, ..held() }), StopSettings { same_limit: 0, ..usual.clone() }, "check_failed"),
        (loops(LoopCounters { blocks: 24, ..held() }), usual.clone(), "check_failed"),
        (loops(LoopCounters { blocks: 25, ..held() }), usual.clone(), "reached_limit"),
        (loops(LoopCounters { blocks: 900, max_blocks: 0, ..held() }), usual.clone(), "check_failed"),
        (facts(missing(BlockCause::NothingChanged)), usual.clone(), "nothing_changed"),
        (facts(missing(BlockCause::StoryGone)), usual.clone(), "story_gone"),
        (facts(missing(BlockCause::OtherTool)), usual.clone(), "other_tool"),
        (facts(Work::Open(Open { story: Some(story()), ..Open::default() })), usual.clone(), "next_story"),
        (facts(Work::Open(Open { tasks: vec!["Write docs".to_owned()], ..Open::default() })), usual.clone(), "tasks"),
        (facts(verifying(0)), usual.clone(), "verifying"),
        (facts(verifying(MOST_WAITS)), usual.clone(), "still_verifying"),
    ];
    for (facts, settings, expected) in table {
        assert_eq!(name(&facts, &settings), expected, "{facts:?}");
        let record = StopRecord::from_decision(&facts, &decide(&facts, &settings));
        assert_eq!(record.cause, expected);
    }
}

#[test]
fn a_block_names_the_check_its_lines_the_place_and_then_what_is_pending() {
    let work = Open {
        settled: vec![("F1".into(), StoryResult::done(Proof::Untested))],
        stories: vec![("F3".into(), "Log out".to_owned())],
        tasks: vec!["Write docs".to_owned()],
        ..open()
    };
    let held = LoopCounters { has_progress: true, blocks: 2, ..held() };
    let text = messages::block(&held, &work, &["The settings were changed.".to_owned()]);
    let order = [
        "CONTINUATION: Verdone loop, iteration 3 of 25.",
        "The task: Do it",
        "story F1 is done (untested)",
        "The check `tests` failed with exit code 2 (`make test`).",
        "src/a.rs:42: no",
        "At: src/a.rs:42",
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
    let text = messages::block(&LoopCounters { task: hostile.clone(), ..held() }, &work, &vec![hostile.clone(); 20]);
    assert_eq!(text.chars().count(), LONGEST);
    assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}') && text.ends_with('…'));
    for why in [
        ReleaseReason::Limit { blocks: 1, remaining: vec![hostile.clone(); 100] },
        ReleaseReason::Fault { times: 3, cause: hostile.clone() },
    ] {
        assert!(!why.describe().contains(['\n', '\u{1b}']) && why.describe().chars().count() < 4_000);
    }
}

#[test]
fn a_tick_of_somebody_else_is_a_claim_and_a_story_that_is_gone_is_not_done() {
    let before = "- [x] US-001: a\n- [ ] US-002: b\n- [ ] US-003: c\n";
    let document = Document::parse("plan.md", before.as_bytes(), &DIALECT).unwrap();
    let stories = document.plan().open().map(|story| (story.id.clone(), Frozen::default())).collect();
    let mut state = State::default();
    let look = |text: &str, state: &State| {
        let mut plan = Document::parse("plan.md", text.as_bytes(), &DIALECT).unwrap().plan().clone();
        let found = find_plan_drift(&mut plan, &stories, state);
        let next = match select(&plan, &Progress::default(), None) {
            Selection::Story { index } => Some(plan.stories[index].id.to_string()),
            Selection::AllDone | Selection::NothingRunnable { .. } => None,
        };
        (next, found.claimed.len(), found.gone.len())
    };
    assert_eq!(look(before, &state), (Some("US-002".to_owned()), 0, 0));
    let ticked = "- [x] US-001: a\n- [x] US-002: b\n- [x] US-003: c\n";
    assert_eq!(look(ticked, &state), (Some("US-002".to_owned()), 2, 0));
    assert_eq!(look("- [x] US-001: a\n- [x] US-002: b\n", &state), (Some("US-002".to_owned()), 1, 1));
    state.results.insert("US-002".into(), StoryResult::done(Proof::Untested));
    assert_eq!(look(ticked, &state), (Some("US-003".to_owned()), 1, 0));
    // Work that waits for a review is not done.
    state.results.insert("US-003".into(), StoryResult { outcome: Outcome::NeedsReview, proof: Some(Proof::Untested) });
    assert_eq!(look(ticked, &state).1, 1);
    state.results.insert("US-003".into(), StoryResult::done(Proof::Verified));
    assert_eq!(look(ticked, &state), (None, 0, 0));
}

#[test]
fn the_same_tree_and_reasons_are_counted_in_a_row() {
    let mut count = GateCount::default();
    let (red, other) = (reasons_of(&open()), reasons_of(&Open::default()));
    assert_ne!(red, other);
    let counts = [("t1", &red), ("t1", &red), ("t2", &red), ("t2", &other), ("t2", &other), ("t2", &other)]
        .map(|(tree, why)| count.count_same(tree, why));
    assert_eq!(counts, [1, 2, 1, 1, 2, 3]);
}

#[test]
fn the_machine_of_a_loop_has_no_limit_but_the_gates_own() {
    let rules = rules(&Config::default());
    let limits = &rules.limits;
    assert_eq!((limits.attempts, limits.turns, limits.max_iterations, limits.no_progress, limits.no_changes), (0, 0, 0, 0, 0));
    assert!(limits.total_time.limit().is_none() && limits.cost_usd.limit().is_none());
    assert!(rules.red_baseline && !rules.land_each && rules.regression.at_end);
}

#[test]
fn every_way_a_loop_ends_has_its_word_in_the_journal_and_back() {
    for status in [LoopStatus::Complete, LoopStatus::ReachedLimit, LoopStatus::Stopped, LoopStatus::Blocked, LoopStatus::Stalled]
    {
        assert_eq!(LoopStatus::from_finish(status.finish()), status);
    }
    assert_eq!(LoopStatus::HandedOver.finish(), Finish::Manual);
}

fn reported(reasons: Vec<Reason>) -> VerifyReport {
    let empty = VerifyReport::empty(Surface::Loop, Some("F2".into()), TreeIds::of_attempt(Oid::from("t")));
    VerifyReport { reasons, ..empty }
}

#[test]
fn every_reason_has_its_cause_and_only_what_files_decide_stands() {
    let condition = Failure::ConditionMissing { name: "seen".to_owned(), why: "no".to_owned(), todo: "Look".to_owned() };
    let below = Doubt::BelowMinimum { proof: Proof::Untested, minimum: Proof::Verified };
    let files = || vec!["x".to_owned()];
    let table = [
        (Reason::Failure(Failure::NothingChanged), BlockCause::NothingChanged, true),
        (Reason::Failure(Failure::OutOfScope { files: files() }), BlockCause::OutOfScope, true),
        (Reason::Failure(condition), BlockCause::Condition, false),
        (Reason::Failure(Failure::CannotCommit { why: "too large".to_owned() }), BlockCause::CheckFailed, true),
        (Reason::Doubt(below), BlockCause::Doubt, false),
        (Reason::Doubt(Doubt::AutorunChanged { files: files() }), BlockCause::Doubt, false),
    ];
    for (reason, cause, stays) in table {
        let report = reported(vec![reason, Reason::Note(Note::NoOwnCheck)]);
        let mut open = Open::default();
        open.add_verify_report(&report);
        assert_eq!((open.missing.len(), cause_of(&open), stands(&report)), (1, cause, stays), "{report:?}");
    }
}

#[test]
fn a_check_that_nobody_can_tell_anything_from_is_told_in_a_sentence() {
    let reason = "no tests were run".to_owned();
    let run = CheckRun { outcome: CheckOutcome::Unknown { reason }, ..run("tests", "") };
    let open = Open { failed: vec![run], ..Open::default() };
    let StopDecision::Block { reason, .. } = decide(&facts(Work::Open(open)), &StopSettings::default()) else { panic!() };
    assert!(reason.contains("The check `tests` proves nothing: no tests were run"), "{reason}");
}

#[test]
fn proofs_are_counted_apart_when_a_loop_is_complete() {
    let (verified, tested, untested) = (Proof::Verified, Proof::AgentTested, Proof::Untested);
    for (proofs, told) in [
        (vec![], "COMPLETE: every gate is green"),
        (vec![verified], "COMPLETE: the one story of the loop is done (verified)"),
        (vec![untested], "COMPLETE: the one story of the loop is done (untested)"),
        (vec![verified, verified], "COMPLETE: all 2 stories of the loop are done (2 verified)"),
        (
            vec![untested, verified, tested],
            "COMPLETE: all 3 stories of the loop are done (1 verified, 1 agent-tested, 1 untested)",
        ),
    ] {
        assert_eq!(ReleaseReason::Complete { proofs }.describe(), told);
    }
}
