use super::*;
use crate::check::tests::ran;
use crate::check::{CheckOutcome, CheckRun};
use crate::done::Outcome;
use crate::plan::Document;
use crate::verdict::Red;

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
    let complete = Work::Complete { verified: 5, unproven: 2 };
    let table = vec![
        (StopFacts { holder: Holder::Nobody, ..red() }, usual.clone(), "foreign"),
        (StopFacts { holder: Holder::Ended(LoopStatusName::Complete), ..red() }, usual.clone(), "ended"),
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
        (loops(Held { same: 2, ..held() }), usual.clone(), "check_failed"),
        (loops(Held { same: 3, ..held() }), usual.clone(), "same"),
        (loops(Held { same: 300, ..held() }), StopSettings { same_limit: 0, ..usual.clone() }, "check_failed"),
        (loops(Held { blocks: 24, ..held() }), usual.clone(), "check_failed"),
        (loops(Held { blocks: 25, ..held() }), usual.clone(), "reached_limit"),
        (loops(Held { blocks: 900, max_blocks: 0, ..held() }), usual.clone(), "check_failed"),
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
        let record = StopRecord::of(&facts, &decide(&facts, &settings));
        assert_eq!(record.cause, expected);
    }
}

#[test]
fn a_block_names_the_check_its_lines_the_place_and_then_what_is_pending() {
    let work = Open {
        marked: Some(("F1".into(), Proof::Untested)),
        stories: vec![("F3".into(), "Log out".to_owned())],
        tasks: vec!["Write docs".to_owned()],
        ..open()
    };
    let held = Held { has_progress: true, blocks: 2, ..held() };
    let text = words::block(&held, &work, &["The settings were changed.".to_owned()]);
    let order = [
        "CONTINUATION: Verdone loop, iteration 3 of 25.",
        "The task: Do it",
        "story F1 is untested",
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
    let text = words::block(&Held { task: hostile.clone(), ..held() }, &work, &vec![hostile.clone(); 20]);
    assert_eq!(text.chars().count(), LONGEST);
    assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}') && text.ends_with('…'));
    for why in
        [Yield::Limit { blocks: 1, remaining: vec![hostile.clone(); 100] }, Yield::Fault { times: 3, cause: hostile.clone() }]
    {
        assert!(!why.words().contains(['\n', '\u{1b}']) && why.words().chars().count() < 4_000);
    }
}

fn state(text: &str) -> LoopState {
    let document = Document::parse("plan.md", text.as_bytes()).unwrap();
    let frozen =
        document.plan().open().map(|story| (story.id.clone(), Frozen { title: story.title.clone(), ..Frozen::default() }));
    LoopState {
        version: 1,
        status: LoopStatusName::Active,
        task: String::new(),
        plan: None,
        started_at: String::new(),
        max_blocks: 25,
        blocks: 0,
        base: Base::default(),
        settings: None,
        tree: None,
        start: None,
        git: None,
        checkpoint: None,
        open: frozen.collect(),
        done_before: None,
        marked: Vec::new(),
        reopened: Vec::new(),
        at_most: std::collections::BTreeMap::new(),
        alarms: Vec::new(),
        current: None,
        gates_were_red: false,
        same: Same::default(),
        waits: 0,
        let_go: None,
        incomplete: None,
        red: std::collections::BTreeMap::new(),
    }
}

#[test]
fn a_tick_of_somebody_else_is_a_claim_and_a_story_that_is_gone_is_not_done() {
    let before = "- [x] US-001: a\n- [ ] US-002: b\n- [ ] US-003: c\n";
    let mut state = state(before);
    let look = |text: &str, state: &LoopState| {
        let mut plan = Document::parse("plan.md", text.as_bytes()).unwrap().plan().clone();
        let found = survey(&mut plan, state);
        let current = found.current.map(|index| plan.stories[index].id.to_string());
        (current, found.claimed.len(), found.gone.len())
    };
    assert_eq!(look(before, &state), (Some("US-002".to_owned()), 0, 0));
    let ticked = "- [x] US-001: a\n- [x] US-002: b\n- [x] US-003: c\n";
    assert_eq!(look(ticked, &state), (Some("US-002".to_owned()), 2, 0));
    assert_eq!(look("- [x] US-001: a\n- [x] US-002: b\n", &state), (Some("US-002".to_owned()), 1, 1));
    state.marked.push(marked("US-002"));
    assert_eq!(look(ticked, &state), (Some("US-003".to_owned()), 1, 0));
    state.current = Some(Current { story: "US-003".into(), base: Base::default(), was_red: false });
    assert_eq!(look("- [ ] US-000: new\n- [x] US-002: b\n- [ ] US-003: c\n", &state).0.as_deref(), Some("US-003"));
    state.marked.push(marked("US-003"));
    assert_eq!(look(ticked, &state), (None, 0, 0));
}

#[test]
fn a_story_is_worth_no_more_than_it_was_whoever_opens_it_again() {
    let mut state = state("- [ ] US-001: a\n- [ ] US-002: b\n- [ ] US-003: c\n");
    let verdicts = |state: &LoopState| ["US-001", "US-002", "US-003"].map(|id| state.at_most(&id.into()));
    state.marked = vec![Marked { verdict: Proof::Untested, ..marked("US-001") }, marked("US-002")];
    state.saw_before(&"US-002".into(), Red::Red);
    state.saw_before(&"US-003".into(), Red::Green);
    assert_eq!(verdicts(&state), [Proof::Untested, Proof::Verified, Proof::Untested]);
}

fn marked(id: &str) -> Marked {
    Marked {
        story: id.into(),
        verdict: Proof::Verified,
        tree: String::new(),
        work: None,
        at: String::new(),
        commit: None,
        told: None,
    }
}

#[test]
fn the_same_tree_and_reasons_are_counted_in_a_row() {
    let mut state = state("- [ ] US-001: a\n");
    let (red, other) = (reasons_of(&open()), reasons_of(&Open::default()));
    assert_ne!(red, other);
    let counts = [("t1", &red), ("t1", &red), ("t2", &red), ("t2", &other), ("t2", &other), ("t2", &other)]
        .map(|(tree, why)| state.count_same(tree, why));
    assert_eq!(counts, [1, 2, 1, 1, 2, 3]);
}

fn missing(name: &str, prover: Prover) -> Judged {
    let outcome = Outcome::Missing { why: "it is not so".to_owned(), todo: "Do it".to_owned() };
    Judged { name: name.to_owned(), required: true, outcome, prover }
}

#[test]
fn conditions_that_do_not_hold_are_told_after_failing_checks_and_nothing_twice() {
    let report = DoneReport {
        conditions: vec![
            missing("plan_approved", Prover::Plan),
            missing("tasks_closed", Prover::Record),
            missing("state_files", Prover::State),
            Judged { required: false, ..missing("memory_search", Prover::Record) },
        ],
    };
    let mut alone = Open::default();
    alone.add_conditions(&report);
    let names: Vec<&str> = alone.missing.iter().map(|(_, words)| words.split(':').next().unwrap()).collect();
    assert_eq!(names, ["plan_approved", "tasks_closed", "state_files"]);
    assert_eq!(name(&facts(Work::Open(alone.clone())), &StopSettings::default()), "condition");
    let mut known = Open { tasks: vec!["Write docs".to_owned()], ..open() };
    known.missing.push((BlockCause::OtherTool, "loop.json says no".to_owned()));
    known.add_conditions(&report);
    assert_eq!(known.missing.len(), 2, "{:?}", known.missing);
    let StopDecision::Block { cause, reason } = decide(&facts(Work::Open(known)), &StopSettings::default()) else { panic!() };
    assert_eq!(cause, BlockCause::CheckFailed);
    let at = |part: &str| reason.find(part).unwrap_or_else(|| panic!("no {part:?} in {reason}"));
    assert!(at("The check `tests`") < at("plan_approved:") && at("plan_approved:") < at("THE STORY"), "{reason}");
    // The caps of a loop stay what they are.
    let mut tired = facts(Work::Open(alone));
    tired.holder = Holder::Loop(Held { blocks: 25, ..held() });
    assert_eq!(name(&tired, &StopSettings::default()), "reached_limit");
    tired.holder = Holder::Loop(Held { same: 3, ..held() });
    assert_eq!(name(&tired, &StopSettings::default()), "same");
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
fn work_that_a_human_should_look_at_is_never_told_as_if_it_were_verified() {
    for (verified, unproven, told) in [
        (0, 0, "COMPLETE: every gate is green"),
        (0, 1, "COMPLETE, BUT UNPROVEN: every gate is green, and a human has to look"),
        (1, 0, "COMPLETE: the one story of the loop was verified"),
        (
            1,
            1,
            "COMPLETE: the one story of the loop passed, but is unproven (no check of its own was red before, a check of its own was changed, or",
        ),
        (2, 0, "COMPLETE: all 2 stories of the loop were verified"),
        (2, 1, "COMPLETE: all 2 stories of the loop passed, 1 of them unproven"),
    ] {
        let words = Yield::Complete { verified, unproven }.words();
        assert!(words.starts_with(told), "{words}");
    }
}
