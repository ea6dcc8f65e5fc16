//! The loop's laws, over generated worlds: a world answers each effect in some way, and the laws hold whatever it answers.

mod service;

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::check::{CheckOrigin, CheckOutcome, CommandSpec, Stage};
use crate::event::Recorded;
use crate::tamper::{AlarmKind, Response, Severity};

/// A source of answers: one number decides each of them.
struct World {
    choices: Vec<u8>,
    at: usize,
    open: Vec<StoryId>,
    done: Vec<StoryId>,
    clock: Duration,
}

impl World {
    fn new(choices: Vec<u8>, stories: usize) -> Self {
        let open = (1..=stories).map(|n| StoryId(format!("US-{n:03}"))).collect();
        Self { choices, at: 0, open, done: Vec::new(), clock: Duration::ZERO }
    }

    fn pick(&mut self, of: u8) -> u8 {
        self.at += 1;
        self.choices.get(self.at % self.choices.len().max(1)).copied().unwrap_or(0).wrapping_add(self.at as u8) % of
    }

    fn runs(&mut self) -> Vec<CheckRun> {
        let outcomes = [
            CheckOutcome::Passed,
            CheckOutcome::Passed,
            CheckOutcome::Failed { code: 1 },
            CheckOutcome::TimedOut { after_ms: 5 },
            CheckOutcome::Unknown { reason: "not found".to_owned() },
        ];
        (0..self.pick(3))
            .map(|n| CheckRun {
                name: format!("check {n}"),
                origin: if n == 0 { CheckOrigin::Story } else { CheckOrigin::Gate(Stage::Correctness) },
                command: CommandSpec::Shell("true".to_owned()),
                outcome: outcomes[usize::from(self.pick(5))].clone(),
                duration_ms: 1,
                output_digest: String::new(),
                output: None,
                tail: String::new(),
                cached: false,
                flaky: false,
                advisory: n > 0 && self.pick(4) == 0,
                tests: None,
            })
            .collect()
    }

    fn answer(&mut self, effect: &Effect, state: &State) -> Input {
        self.clock += Duration::from_secs(1);
        if self.pick(40) == 0 {
            return Input::Failed { message: "disk full".to_owned() };
        }
        match effect {
            Effect::KeepChanges if self.pick(4) == 0 => Input::ChangesKept(None),
            Effect::KeepChanges => Input::ChangesKept(Some(Box::new(aside()))),
            Effect::SetAside => Input::SetAside,
            Effect::PutBack if self.pick(3) == 0 => {
                Input::PutBack(PutBack::Refused { reason: "overlap".to_owned(), overlap: vec!["a".to_owned()] })
            }
            Effect::PutBack => Input::PutBack(PutBack::Done { files: 1 }),
            Effect::Prepare => Input::Prepared { baseline: Vec::new() },
            Effect::Select => Input::Selected(self.choose(state)),
            Effect::Checkpoint => Input::Checkpointed(checkpoint()),
            Effect::RedCheck => {
                let red = [Red::Red, Red::Green, Red::Unknown, Red::Absent][usize::from(self.pick(4))];
                Input::RedChecked { red, runs: self.runs() }
            }
            Effect::Turn => Input::TurnEnded(self.turn()),
            // However long it takes, it ends.
            Effect::Wait => Input::Waited { over: self.clock.as_secs().is_multiple_of(2) },
            Effect::Verify => Input::Verified(self.verification()),
            Effect::Commit if self.pick(4) == 0 => Input::CommitRefused { message: "no".to_owned() },
            Effect::Commit => {
                let story = state.attempt.as_ref().map(|attempt| attempt.place.story.clone());
                self.open.retain(|id| Some(id) != story.as_ref());
                self.done.extend(story);
                Input::Committed {
                    commit: Oid::from("c"),
                    tree: Oid::from("t"),
                    files: 1,
                    evidence: Some("sha256:e".to_owned()),
                    noted: true,
                }
            }
            Effect::RollBack => Input::RolledBack { kept: Oid::from("k"), before: checkpoint(), files: 1 },
            Effect::Regression => Input::Regressed(self.regression()),
            Effect::Reopen => {
                if let Phase::Reopening { stories } = &state.phase {
                    self.done.retain(|id| !stories.contains(id));
                    self.open.extend(stories.iter().cloned());
                }
                Input::Reopened { commit: None }
            }
            Effect::Finish => Input::Finished { script: self.script(Script::Finished) },
            Effect::Script(script) => Input::ScriptRan(self.script(*script)),
        }
    }

    /// Some of what was done is broken, seldom.
    fn regression(&mut self) -> RegressionReport {
        let done = self.done.clone();
        let broken: Vec<StoryId> = done.into_iter().filter(|_| self.pick(4) == 0).collect();
        let broken = broken.into_iter().map(|story| (story, self.runs())).collect();
        let runs = self.runs();
        let done = self.done.clone();
        let doubted = done.into_iter().filter(|_| self.pick(5) == 0).collect::<Vec<_>>();
        let doubted = doubted.into_iter().map(|story| Doubted { story, by: Vec::new(), seen: AsBefore::default() }).collect();
        RegressionReport { held: 1, runs, broken, not_checked: Vec::new(), doubted }
    }

    fn agent_test(&mut self) -> Option<AgentTest> {
        let unproven = (self.pick(4) == 0).then(|| "why".to_owned());
        (self.pick(3) > 0).then(|| AgentTest { before: self.runs(), after: self.runs(), unproven, ..AgentTest::default() })
    }

    fn as_before(&mut self) -> Option<AsBefore> {
        let unproven = (self.pick(4) == 0).then(|| "why".to_owned());
        (self.pick(3) == 0).then(|| AsBefore {
            files: vec!["own.sh".to_owned()],
            runs: self.runs(),
            unproven,
            ..AsBefore::default()
        })
    }

    fn script(&mut self, script: Script) -> Option<ScriptRun> {
        let exit = match self.pick(12) {
            0 => ScriptExit::Code(1),
            1 if self.pick(6) == 0 => ScriptExit::Code(2),
            2 => ScriptExit::TimedOut { after_ms: 1 },
            3 => ScriptExit::Code(0),
            _ => return None,
        };
        Some(ScriptRun { script, exit, duration_ms: 1, output: None })
    }

    fn choose(&self, state: &State) -> Choice {
        let runnable = self.open.iter().find(|id| !state.progress.failed.contains_key(id));
        match runnable {
            Some(id) => Choice::Story { story: id.clone(), title: "T".to_owned(), number: 1, of: 3, open: self.open.len() },
            None if self.open.is_empty() => Choice::AllDone,
            None => Choice::NothingRunnable { reason: "all failed".to_owned() },
        }
    }

    fn turn(&mut self) -> TurnReport {
        let reason = || "why".to_owned();
        let outcome = match self.pick(12) {
            0 => TurnOutcome::Crashed { reason: "exit code 1".to_owned() },
            1 => TurnOutcome::TimedOut { after_ms: 1 },
            2 => TurnOutcome::Idle { after_ms: 1 },
            3 if self.pick(4) == 0 => TurnOutcome::GuardDead { reason: reason() },
            3 => TurnOutcome::ApiError { reason: reason(), status: Some(529), retryable: true },
            4 if self.pick(4) == 0 => TurnOutcome::Budget { reason: reason() },
            4 => TurnOutcome::UsageLimit { reason: reason(), resets_at: None },
            5 => TurnOutcome::Refused { reason: reason() },
            6 => TurnOutcome::MaxTurns { reason: reason() },
            _ => TurnOutcome::Ended,
        };
        let failing: Vec<String> = (0..self.pick(3)).map(|n| format!("{n} failed")).collect();
        let ended_turn = (self.pick(10) == 0).then(|| "the tests failed".to_owned());
        let tests = TurnTests { failing, ended_turn };
        TurnReport {
            at: Timestamp::UNIX_EPOCH,
            outcome,
            duration_ms: 1,
            usage: Usage::default(),
            prompt: None,
            output: None,
            leftovers: 0,
            tests,
            session: None,
            allowance: None,
            claim: None,
        }
    }

    fn alarms(&mut self) -> Vec<Alarm> {
        let severity = match self.pick(6) {
            0 => Severity::High,
            1 => Severity::Medium,
            2 => Severity::Low,
            _ => return Vec::new(),
        };
        let (kind, path, text) = (AlarmKind::TestDeleted, "tests/a.rs".to_owned(), "works".to_owned());
        vec![Alarm { kind, severity, path, line: None, text, expected: false }]
    }

    /// The runtime may be wrong about the outcome: the runs beside it are not made to agree with it.
    fn verification(&mut self) -> Verification {
        let outcome = match self.pick(8) {
            0 => VerifyOutcome::NothingChanged,
            1 => VerifyOutcome::Failed,
            2 => VerifyOutcome::Unsettled,
            3 => VerifyOutcome::HistoryMoved,
            4 => VerifyOutcome::Refused,
            _ => VerifyOutcome::Passed,
        };
        let tree = (self.pick(9) > 0).then(|| Oid(format!("tree{}", self.pick(3))));
        let changed = u32::from(self.pick(4));
        Verification {
            outcome,
            tree,
            changed,
            agent_test: self.agent_test(),
            as_before: self.as_before(),
            judge: None,
            criteria: Vec::new(),
            runs: self.runs(),
            reason: None,
            restored: Vec::new(),
            debris: Vec::new(),
            left_out: Vec::new(),
            refs_moved: Vec::new(),
            alarms: self.alarms(),
        }
    }
}

fn checkpoint() -> Checkpoint {
    Checkpoint { id: Oid::from("cp"), head: Some(Oid::from("head")), branch: Some("main".to_owned()) }
}

fn aside() -> Aside {
    let checkpoint = checkpoint();
    Aside { clean: checkpoint.clone(), checkpoint, stash: Oid::from("st"), files: vec!["a".to_owned()] }
}

fn start() -> Input {
    Input::Start(Box::new(Event::RunStarted {
        run: RunId::from("r"),
        version: "0".to_owned(),
        plan: "plan.md".to_owned(),
        format: "plan_md".to_owned(),
        agent: "command".to_owned(),
        mode: "building".to_owned(),
        stories: 3,
        open: 3,
        branch: None,
        head: None,
        frozen: String::new(),
        max_iterations: 0,
        unverified: false,
        gates: None,
        evidence: None,
    }))
}

/// Runs a world to its end, or for `steps` steps.
fn play(rules: &Rules, mut world: World, steps: usize, signal_at: Option<usize>) -> (State, Vec<Recorded>) {
    let (mut state, mut journal) = (State::default(), Vec::new());
    let mut input = start();
    for step in 0..steps {
        if signal_at == Some(step) {
            let decision = decide(&state, rules, world.clock, &Input::Signal(StopSignal::Sigint));
            assert!(decision.effect.is_none());
            record(&mut state, &mut journal, decision.events, world.clock);
        }
        let decision = decide(&state, rules, world.clock, &input);
        record(&mut state, &mut journal, decision.events, world.clock);
        let Some(effect) = decision.effect else { break };
        input = world.answer(&effect, &state);
    }
    (state, journal)
}

fn record(state: &mut State, journal: &mut Vec<Recorded>, events: Vec<Event>, now: Duration) {
    for event in events {
        // The wall clock jumps about: nothing may depend on it.
        let at = Timestamp::from_second([1_900_000_000, 7, 1_000_000_000][journal.len() % 3]).unwrap();
        let active_ms = Some(now.as_millis() as u64);
        let recorded = Recorded { v: 1, seq: journal.len() as u64 + 1, at, active_ms, event };
        apply(state, &recorded);
        journal.push(recorded);
    }
}

fn rules(red_check: RedPolicy, unverified: bool) -> Rules {
    Rules {
        limits: Limits { max_iterations: 0, ..Limits::default() },
        red_check,
        red_baseline: false,
        unverified,
        fail_behavior: FailBehavior::Continue,
        allow_dirty: false,
        pause_at: 0,
        tamper: TamperSettings::default(),
        own_check: OwnCheck::Gates,
        regression: Regression::default(),
    }
}

fn any_rules() -> impl Strategy<Value = Rules> {
    let policy = prop_oneof![Just(RedPolicy::Flag), Just(RedPolicy::Accept), Just(RedPolicy::Refuse)];
    let own_check = prop_oneof![Just(OwnCheck::Gates), Just(OwnCheck::AgentTest)];
    let regression = (any::<bool>(), 0_u32..4).prop_map(|(at_end, every)| Regression { at_end, every, ..Regression::default() });
    (policy, any::<bool>(), any::<bool>(), own_check, regression).prop_map(
        |(policy, unverified, allow_dirty, own_check, regression)| Rules {
            allow_dirty,
            own_check,
            regression,
            ..rules(policy, unverified)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_run_always_ends(rules in any_rules(), choices in prop::collection::vec(any::<u8>(), 1..64), stories in 0_usize..6) {
        let (state, journal) = play(&rules, World::new(choices, stories), 5_000, None);
        let stopped = matches!(state.phase, Phase::Stopped { .. });
        prop_assert!(stopped, "phase {:?} after {} events", state.phase, journal.len());
    }

    #[test]
    fn a_replayed_journal_gives_the_same_state(rules in any_rules(), choices in prop::collection::vec(any::<u8>(), 1..64), steps in 1_usize..200) {
        let (state, journal) = play(&rules, World::new(choices, 4), steps, None);
        let mut again = State::default();
        for recorded in &journal {
            let line = serde_json::to_string(recorded).unwrap();
            apply(&mut again, &serde_json::from_str(&line).unwrap());
        }
        prop_assert_eq!(state, again);
    }

    #[test]
    fn only_what_passed_is_committed(rules in any_rules(), choices in prop::collection::vec(any::<u8>(), 1..64)) {
        let (_, journal) = play(&rules, World::new(choices, 4), 5_000, None);
        for (n, recorded) in journal.iter().enumerate() {
            let Event::CommitStarted { place, tree, verdict, .. } = &recorded.event else { continue };
            let Event::Verified { place: checked, outcome, tree: checked_tree, changed, runs, alarms, agent_test, .. } = &journal[n - 1].event else {
                panic!("a commit without a verification before it");
            };
            prop_assert_eq!(place, checked);
            prop_assert_eq!(outcome, &VerifyOutcome::Passed);
            prop_assert_eq!(Some(tree), checked_tree.as_ref());
            prop_assert!(runs.iter().all(|run| run.advisory || run.outcome.passed()));
            let tested = rules.own_check == OwnCheck::AgentTest && agent_test.as_ref().is_some_and(|test| test.proves());
            prop_assert!(
                runs.iter().any(|run| !run.advisory) || tested || rules.unverified && *verdict == StoryVerdict::Unverified,
                "what is advisory proves nothing"
            );
            prop_assert!(*changed > 0 || place.turn == 0);
            prop_assert!(alarms.iter().all(|alarm| alarm.severity == Severity::Low));
        }
    }

    #[test]
    fn a_rejected_attempt_is_rolled_back_and_never_committed(rules in any_rules(), choices in prop::collection::vec(any::<u8>(), 1..64)) {
        let (_, journal) = play(&rules, World::new(choices, 4), 5_000, None);
        let mut rejected = None;
        for recorded in &journal {
            match &recorded.event {
                Event::AttemptRejected { place, .. } => rejected = Some(place.clone()),
                Event::RolledBack { .. } | Event::RunStopping { .. } => rejected = None,
                Event::CommitStarted { .. } | Event::Committed { .. } | Event::TurnStarted { .. } | Event::StorySelected { .. } => {
                    prop_assert_eq!(&rejected, &None);
                }
                _ => {}
            }
        }
    }

    #[test]
    fn verified_needs_a_red_check_of_its_own(rules in any_rules(), choices in prop::collection::vec(any::<u8>(), 1..64)) {
        let (_, journal) = play(&rules, World::new(choices, 4), 5_000, None);
        let (mut last_red, mut tested, mut same) = (Red::Absent, false, true);
        for recorded in &journal {
            match &recorded.event {
                Event::RedChecked { red, .. } => last_red = *red,
                Event::Verified { agent_test, as_before, .. } => {
                    tested = agent_test.as_ref().is_some_and(|test| test.proves());
                    same = as_before.as_ref().is_none_or(|seen| seen.holds());
                }
                Event::Committed { verdict: StoryVerdict::Verified, .. } => {
                    let differs = rules.own_check == OwnCheck::AgentTest && last_red == Red::Absent && tested;
                    prop_assert!(last_red == Red::Red && same || differs, "{:?}", last_red);
                }
                _ => {}
            }
        }
    }

    #[test]
    fn after_a_stop_request_no_new_work_begins(choices in prop::collection::vec(any::<u8>(), 1..64), at in 1_usize..60) {
        let (state, journal) = play(&rules(RedPolicy::Flag, false), World::new(choices, 4), 5_000, Some(at));
        let asked = journal.iter().position(|r| matches!(r.event, Event::StopRequested { .. }));
        if let Some(asked) = asked {
            let begun = journal[asked..].iter().any(|r| matches!(r.event, Event::StorySelected { .. } | Event::TurnStarted { .. }));
            prop_assert!(!begun);
        }
        let stopped = matches!(state.phase, Phase::Stopped { .. });
        prop_assert!(stopped);
    }

    #[test]
    fn changes_that_were_set_aside_are_settled_last_and_once_however_the_run_ends(
        choices in prop::collection::vec(any::<u8>(), 1..64), signal in prop::option::of(0_usize..40)
    ) {
        let rules = Rules { allow_dirty: true, ..rules(RedPolicy::Flag, false) };
        let (state, journal) = play(&rules, World::new(choices, 4), 5_000, signal);
        prop_assert_eq!(&state.aside, &None);
        let count = |wanted: fn(&Event) -> bool| journal.iter().filter(|recorded| wanted(&recorded.event)).count();
        let set_aside = count(|event| matches!(event, Event::ChangesSetAside { .. }));
        let settled = count(|event| matches!(event, Event::ChangesPutBack { .. } | Event::ChangesKept { .. }));
        prop_assert!(set_aside <= 1);
        prop_assert_eq!(set_aside, settled);
        if set_aside == 1 {
            let begins = journal.iter().position(|recorded| matches!(recorded.event, Event::ChangesSetAside { .. }));
            let work = journal.iter().position(|recorded| !matches!(recorded.event,
                Event::RunStarted { .. } | Event::StopRequested { .. } | Event::ChangesSetAside { .. }));
            prop_assert!(begins < work, "nothing happens before the changes are out of the way");
            let Some([.., Recorded { event: last_but_one, .. }, Recorded { event: Event::RunStopped { .. }, .. }]) = Some(&journal[..]) else {
                panic!("{journal:?}");
            };
            let settles = matches!(last_but_one, Event::ChangesPutBack { .. } | Event::ChangesKept { .. });
            prop_assert!(settles, "{:?}", last_but_one);
        }
    }

    #[test]
    fn complete_is_said_only_after_a_look_at_what_was_proven_and_no_story_is_opened_again_twice(
        choices in prop::collection::vec(any::<u8>(), 1..64), every in 0_u32..3
    ) {
        let rules = Rules { regression: Regression { every, ..Regression::default() }, ..rules(RedPolicy::Flag, false) };
        let (_, journal) = play(&rules, World::new(choices, 4), 5_000, None);
        let (mut since, mut opened) = (0, BTreeSet::new());
        for recorded in &journal {
            match &recorded.event {
                Event::Committed { .. } => since += 1,
                Event::RegressionChecked { .. } => since = 0,
                Event::Regressed { story, again, .. } => {
                    since += 1;
                    prop_assert_eq!(*again, !opened.insert(story.clone()));
                }
                Event::StorySelected { .. } => {
                    let before = &journal[..recorded.seq as usize];
                    let twice = before.iter().any(|r| matches!(r.event, Event::Regressed { again: true, .. }));
                    prop_assert!(!twice, "no work after that");
                }
                Event::RunStopping { finish: Finish::Complete, .. } => prop_assert_eq!(since, 0),
                _ => {}
            }
        }
    }

    #[test]
    fn a_journal_cut_anywhere_tells_whether_changes_are_owed(choices in prop::collection::vec(any::<u8>(), 1..64), steps in 0_usize..60) {
        let rules = Rules { allow_dirty: true, ..rules(RedPolicy::Flag, false) };
        let (state, journal) = play(&rules, World::new(choices, 4), steps, None);
        let owed = journal.iter().rev().find_map(|recorded| match recorded.event {
            Event::ChangesSetAside { .. } => Some(true),
            Event::ChangesPutBack { .. } | Event::ChangesKept { .. } => Some(false),
            _ => None,
        });
        prop_assert_eq!(state.aside.is_some(), owed.unwrap_or(false));
    }

    #[test]
    fn any_input_in_any_phase_is_answered(choices in prop::collection::vec(any::<u8>(), 1..64), steps in 0_usize..60, kind in 0_u8..14, allow_dirty in any::<bool>()) {
        let rules = Rules { allow_dirty, ..rules(RedPolicy::Flag, false) };
        let (state, _) = play(&rules, World::new(choices.clone(), 4), steps, None);
        let effects = [Effect::Prepare, Effect::Select, Effect::Checkpoint, Effect::RedCheck, Effect::Turn, Effect::Verify,
            Effect::Commit, Effect::RollBack, Effect::Finish, Effect::KeepChanges, Effect::SetAside, Effect::PutBack,
            Effect::Regression, Effect::Reopen];
        let input = World::new(choices, 4).answer(&effects[usize::from(kind)], &state);
        let decision = decide(&state, &rules, Duration::ZERO, &input);
        // Only the start of the script `started` needs no event: the phase it belongs to has begun already.
        let begins = decision.effect == Some(Effect::Script(Script::Started));
        prop_assert!(!decision.events.is_empty() || decision.effect.is_none() || begins);
    }
}

#[test]
fn the_same_tree_failing_the_same_way_twice_ends_the_attempt() {
    let rules = rules(RedPolicy::Flag, false);
    let mut state = State::default();
    let mut journal = Vec::new();
    let now = Duration::ZERO;
    let failing = || {
        Input::Verified(Verification {
            outcome: VerifyOutcome::NothingChanged,
            tree: Some(Oid::from("t")),
            changed: 0,
            runs: Vec::new(),
            reason: None,
            restored: Vec::new(),
            debris: Vec::new(),
            left_out: Vec::new(),
            refs_moved: Vec::new(),
            alarms: Vec::new(),
            agent_test: None,
            as_before: None,
            judge: None,
            criteria: Vec::new(),
        })
    };
    let ended = || {
        let outcome = TurnOutcome::Ended;
        Input::TurnEnded(TurnReport {
            at: Timestamp::UNIX_EPOCH,
            outcome,
            duration_ms: 1,
            usage: Usage::default(),
            prompt: None,
            output: None,
            session: None,
            allowance: None,
            claim: None,
            leftovers: 0,
            tests: TurnTests::default(),
        })
    };
    let story = Choice::Story { story: StoryId::from("A"), title: "a".to_owned(), number: 1, of: 1, open: 1 };
    let inputs = [
        start(),
        Input::ScriptRan(None),
        Input::Prepared { baseline: Vec::new() },
        Input::Selected(story),
        Input::ScriptRan(None),
        Input::Checkpointed(checkpoint()),
        Input::RedChecked { red: Red::Red, runs: Vec::new() },
        ended(),
        failing(),
        ended(),
        failing(),
    ];
    for input in &inputs {
        let decision = decide(&state, &rules, now, input);
        record(&mut state, &mut journal, decision.events, now);
    }
    assert_eq!(state.phase, Phase::RollingBack { rejection: Rejection::NothingChanged });
}

#[test]
fn a_run_is_out_of_time_by_its_active_time_alone() {
    let mut rules = rules(RedPolicy::Flag, false);
    rules.limits.total_time = crate::span::Span::from_secs(10);
    let story = Choice::Story { story: StoryId::from("A"), title: "a".to_owned(), number: 1, of: 1, open: 1 };
    for (active, in_time) in [(9, true), (10, false)] {
        let (mut state, mut journal) = (State::default(), Vec::new());
        for input in [start(), Input::ScriptRan(None), Input::Prepared { baseline: Vec::new() }] {
            let decision = decide(&state, &rules, Duration::from_secs(1), &input);
            record(&mut state, &mut journal, decision.events, Duration::from_secs(1));
        }
        let decision = decide(&state, &rules, Duration::from_secs(active), &Input::Selected(story.clone()));
        assert_eq!(decision.effect == Some(Effect::Script(Script::NextIteration)), in_time, "after {active} s");
    }
}

fn after_alarms(severities: &[Severity], settings: TamperSettings) -> Decision {
    let rules = Rules { tamper: settings, ..rules(RedPolicy::Flag, false) };
    let mut state = State::default();
    let mut journal = Vec::new();
    for input in [start(), Input::ScriptRan(None), Input::Prepared { baseline: Vec::new() }] {
        let events = decide(&state, &rules, Duration::ZERO, &input).events;
        record(&mut state, &mut journal, events, Duration::ZERO);
    }
    let choice = World::new(vec![1], 1).choose(&state);
    let green = CheckRun {
        name: "test".to_owned(),
        origin: CheckOrigin::Story,
        command: CommandSpec::Shell("true".to_owned()),
        outcome: CheckOutcome::Passed,
        duration_ms: 1,
        output_digest: String::new(),
        output: None,
        tail: String::new(),
        cached: false,
        flaky: false,
        advisory: false,
        tests: None,
    };
    let turn = TurnReport {
        at: Timestamp::UNIX_EPOCH,
        outcome: TurnOutcome::Ended,
        duration_ms: 1,
        usage: Usage::default(),
        prompt: None,
        output: None,
        session: None,
        allowance: None,
        claim: None,
        leftovers: 0,
        tests: TurnTests::default(),
    };
    for input in [
        Input::Selected(choice),
        Input::ScriptRan(None),
        Input::Checkpointed(checkpoint()),
        Input::RedChecked { red: Red::Red, runs: Vec::new() },
        Input::TurnEnded(turn),
    ] {
        let events = decide(&state, &rules, Duration::ZERO, &input).events;
        record(&mut state, &mut journal, events, Duration::ZERO);
    }
    let alarm = |severity: &Severity| Alarm {
        kind: AlarmKind::TestDeleted,
        severity: *severity,
        path: "tests/a.rs".to_owned(),
        line: None,
        text: "works".to_owned(),
        expected: false,
    };
    let verification = Verification {
        outcome: VerifyOutcome::Passed,
        tree: Some(Oid::from("t")),
        changed: 1,
        runs: vec![green],
        reason: None,
        restored: Vec::new(),
        debris: Vec::new(),
        left_out: Vec::new(),
        refs_moved: Vec::new(),
        alarms: severities.iter().map(alarm).collect(),
        agent_test: None,
        as_before: None,
        judge: None,
        criteria: Vec::new(),
    };
    decide(&state, &rules, Duration::ZERO, &Input::Verified(verification))
}

#[test]
fn alarms_are_reported_asked_about_or_refused_as_the_settings_say() {
    use Severity::{High, Low, Medium};
    let all = |response| TamperSettings { low: response, medium: response, high: response };
    let default = TamperSettings::default();
    for (severities, settings, effect, rejection) in [
        (&[][..], default, Effect::Commit, None),
        (&[Low], default, Effect::Commit, None),
        (&[Medium], default, Effect::RollBack, Some(Rejection::NeedsHuman)),
        (&[High], default, Effect::Turn, None),
        (&[Low, Medium, High], default, Effect::Turn, None),
        (&[High, Medium], all(Response::Report), Effect::Commit, None),
        (&[Low], all(Response::Ask), Effect::RollBack, Some(Rejection::NeedsHuman)),
        (&[Low], all(Response::Refuse), Effect::Turn, None),
    ] {
        let decision = after_alarms(severities, settings);
        assert_eq!(decision.effect, Some(effect.clone()), "{severities:?} {settings:?}");
        let found = decision.events.iter().find_map(|event| match event {
            Event::AttemptRejected { rejection, .. } => Some(rejection.clone()),
            _ => None,
        });
        assert_eq!(found, rejection, "{severities:?}");
        let Event::Verified { outcome, alarms, reason, .. } = &decision.events[0] else { panic!("{:?}", decision.events) };
        assert_eq!(alarms.len(), severities.len());
        assert_eq!(*outcome == VerifyOutcome::Passed, effect == Effect::Commit);
        assert_eq!(reason.is_some(), effect != Effect::Commit);
    }
}
