//! A generated world that answers each effect, and a run in that world.

use super::*;

/// A source of answers: one number determines each of them.
pub(super) struct World {
    choices: Vec<u8>,
    at: usize,
    open: Vec<StoryId>,
    done: Vec<StoryId>,
    clock: Duration,
}

impl World {
    pub(super) fn new(choices: Vec<u8>, stories: usize) -> Self {
        let open = (1..=stories).map(|n| StoryId(format!("US-{n:03}"))).collect();
        Self { choices, at: 0, open, done: Vec::new(), clock: Duration::ZERO }
    }

    pub(super) fn pick(&mut self, of: u8) -> u8 {
        self.at += 1;
        self.choices.get(self.at % self.choices.len().max(1)).copied().unwrap_or(0).wrapping_add(self.at as u8) % of
    }

    pub(super) fn runs(&mut self) -> Vec<CheckRun> {
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
                advisory: n > 0 && self.pick(4) == 0,
                ..ran("true", outcomes[usize::from(self.pick(5))].clone())
            })
            .collect()
    }

    pub(super) fn answer(&mut self, effect: &Effect, state: &State) -> Input {
        self.clock += Duration::from_secs(1);
        if self.pick(40) == 0 {
            return Input::Failed { message: "disk full".to_owned() };
        }
        match effect {
            Effect::Prepare => Input::Prepared { baseline: Vec::new() },
            Effect::Select => Input::Selected(self.choose(state)),
            Effect::Reset => ready(),
            Effect::RedCheck => {
                let red = [Red::Red, Red::Green, Red::Unknown, Red::Absent][usize::from(self.pick(4))];
                Input::RedChecked { red, runs: self.runs() }
            }
            Effect::Turn => Input::TurnEnded(self.turn()),
            // Every wait ends eventually.
            Effect::Wait => Input::Waited { over: self.clock.as_secs().is_multiple_of(2) },
            Effect::Verify => Input::Verified(Box::new(self.verification(state))),
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
            Effect::Keep => Input::Kept { kept: Oid::from("k"), files: 1 },
            Effect::Land if self.pick(3) == 0 => Input::Landed(Box::new(landing_refused("main has moved on"))),
            Effect::Land => Input::Landed(Box::new(landed())),
            Effect::Regression => Input::Regressed(self.regression()),
            Effect::Reopen => {
                if let Phase::Reopening { stories } = &state.phase {
                    self.done.retain(|id| !stories.contains(id));
                    self.open.extend(stories.iter().cloned());
                }
                Input::Reopened { commit: None }
            }
            Effect::Finish => Input::Finished { landed: None, script: self.script(Script::Finished) },
            Effect::Script(script) => Input::ScriptRan(self.script(*script)),
        }
    }

    /// Occasionally, some of the done stories are broken.
    pub(super) fn regression(&mut self) -> RegressionReport {
        let done = self.done.clone();
        let broken: Vec<StoryId> = done.into_iter().filter(|_| self.pick(4) == 0).collect();
        let broken = broken.into_iter().map(|story| (story, self.runs())).collect();
        let runs = self.runs();
        RegressionReport { held: 1, runs, broken, not_checked: Vec::new() }
    }

    pub(super) fn script(&mut self, script: Script) -> Option<ScriptRun> {
        let exit = match self.pick(12) {
            0 => ScriptExit::Code(1),
            1 if self.pick(6) == 0 => ScriptExit::Code(2),
            2 => ScriptExit::TimedOut { after_ms: 1 },
            3 => ScriptExit::Code(0),
            _ => return None,
        };
        Some(ScriptRun { script, exit, duration_ms: 1, output: None })
    }

    pub(super) fn choose(&self, state: &State) -> Choice {
        let is_settled = |id: &StoryId| state.progress.failed.contains_key(id) || state.progress.review.contains_key(id);
        let runnable = self.open.iter().find(|id| !is_settled(id));
        match runnable {
            Some(id) => Choice::Story { story: id.clone(), title: "T".to_owned(), number: 1, of: 3, open: self.open.len() },
            None if self.open.is_empty() => Choice::AllDone,
            None => Choice::NothingRunnable { reason: "all failed".to_owned() },
        }
    }

    pub(super) fn turn(&mut self) -> TurnReport {
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
            7 => TurnOutcome::Looping { call: reason(), times: 20 },
            _ => TurnOutcome::Ended,
        };
        let failing: Vec<String> = (0..self.pick(3)).map(|n| format!("{n} failed")).collect();
        let ended_turn = (self.pick(10) == 0).then(|| "the tests failed".to_owned());
        let tests = TurnTests { failing, ended_turn };
        TurnReport { tests, ..turn_report(outcome) }
    }

    /// Any answer of the engine, plus one that it never gives: done without a proof.
    pub(super) fn verification(&mut self, state: &State) -> Verification {
        let turn = state.attempt.as_ref().map(|attempt| attempt.feedback_turn(&Limits::default()));
        let proof = Proof::ALL[usize::from(self.pick(4))];
        let report = match self.pick(11) {
            0 => failed(vec![Failure::NothingChanged]),
            1 | 2 => failed(vec![check_failed()]),
            3 => failed(vec![Failure::CannotCommit { why: "a submodule changed".to_owned() }]),
            4 if self.pick(3) == 0 => failed(vec![Failure::Interrupted]),
            4 => report(Outcome::Done, None, Vec::new()),
            5 if turn == Some(FeedbackTurn::Left) => report(Outcome::Failed, Some(proof), vec![Reason::Doubt(autorun())]),
            5 => report(Outcome::NeedsReview, Some(proof), vec![Reason::Doubt(autorun())]),
            6 => report(Outcome::NeedsReview, Some(proof), vec![Reason::Doubt(unclear())]),
            _ => report(Outcome::Done, Some(proof), vec![Reason::Note(Note::NoOwnCheck)]),
        };
        let runs = [(Tree::Attempt, self.runs())].into();
        let trees = TreeIds::of_attempt(Oid(format!("tree{}", self.pick(3))));
        Verification { changed: u32::from(self.pick(4)), ..verification(VerifyReport { trees, runs, ..report }) }
    }
}

pub(super) fn check_failed() -> Failure {
    Failure::CheckFailed { check: "true".to_owned(), said: "failed with exit code 1".to_owned() }
}

/// A doubt that the agent can resolve.
pub(super) fn autorun() -> Doubt {
    Doubt::AutorunChanged { files: vec![".envrc".to_owned()] }
}

/// A doubt that the agent cannot resolve.
pub(super) fn unclear() -> Doubt {
    Doubt::JudgeUnknown { why: "it gave no answer".to_owned() }
}

pub(super) fn failed(failures: Vec<Failure>) -> VerifyReport {
    report(Outcome::Failed, None, failures.into_iter().map(Reason::Failure).collect())
}

pub(super) fn done(proof: Proof) -> VerifyReport {
    report(Outcome::Done, Some(proof), Vec::new())
}

pub(super) fn report(outcome: Outcome, proof: Option<Proof>, reasons: Vec<Reason>) -> VerifyReport {
    let empty = VerifyReport::empty(Surface::Run, Some(StoryId::from("A")), TreeIds::of_attempt(Oid::from("t")));
    VerifyReport { outcome, proof, reasons, ..empty }
}

/// A verification with one changed file.
pub(super) fn verification(report: VerifyReport) -> Verification {
    Verification { changed: 1, restored: Vec::new(), report, judge: None }
}

/// A turn report with nothing but an outcome.
pub(super) fn turn_report(outcome: TurnOutcome) -> TurnReport {
    TurnReport {
        at: Timestamp::UNIX_EPOCH,
        outcome,
        duration_ms: 1,
        usage: Usage::default(),
        prompt: None,
        output: None,
        leftovers: 0,
        tests: TurnTests::default(),
        session: None,
        exit_code: None,
        allowance: None,
        claim: None,
    }
}

/// The workspace is ready.
pub(super) fn ready() -> Input {
    Input::Ready { base: Some(Oid::from("base")), tree: None }
}

pub(super) fn landed() -> Event {
    Event::Landed { branch: "main".to_owned(), from: Oid::from("base"), to: Oid::from("c"), left: 0 }
}

pub(super) fn landing_refused(reason: &str) -> Event {
    Event::LandingRefused { reason: reason.to_owned() }
}

pub(super) fn start() -> Input {
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
        target: None,
        seal: None,
        frozen: String::new(),
        max_iterations: 0,
        unchecked: false,
        gates: None,
        reviews: BTreeMap::new(),
        session: None,
        evidence: None,
    }))
}

/// Runs a world to its end, or for `steps` steps.
pub(super) fn play(rules: &Rules, mut world: World, steps: usize, signal_at: Option<usize>) -> (State, Vec<Recorded>) {
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

pub(super) fn record(state: &mut State, journal: &mut Vec<Recorded>, events: Vec<Event>, now: Duration) {
    for event in events {
        // The wall clock jumps around: nothing may depend on it.
        let at = Timestamp::from_second([1_900_000_000, 7, 1_000_000_000][journal.len() % 3]).unwrap();
        let active_ms = Some(now.as_millis() as u64);
        let recorded = Recorded { v: 1, seq: journal.len() as u64 + 1, at, active_ms, event };
        apply(state, &recorded);
        journal.push(recorded);
    }
}

pub(super) fn rules() -> Rules {
    Rules {
        limits: Limits { max_iterations: 0, api_errors: 8, ..Limits::default() },
        red_check: RedPolicy::Flag,
        red_baseline: false,
        fail_behavior: FailBehavior::Continue,
        land_each: false,
        pause_at: 0,
        on_review: OnReview::Continue,
        regression: Regression::default(),
    }
}

pub(super) fn any_rules() -> impl Strategy<Value = Rules> {
    let red_check = prop_oneof![Just(RedPolicy::Flag), Just(RedPolicy::Accept), Just(RedPolicy::Refuse)];
    let regression = (any::<bool>(), 0_u32..4).prop_map(|(at_end, every)| Regression { at_end, every, ..Regression::default() });
    (red_check, any::<bool>(), any_on_review(), regression).prop_map(|(red_check, land_each, on_review, regression)| Rules {
        red_check,
        land_each,
        on_review,
        regression,
        ..rules()
    })
}

pub(super) fn any_on_review() -> impl Strategy<Value = OnReview> {
    prop_oneof![Just(OnReview::Continue), Just(OnReview::Stop), Just(OnReview::Stack)]
}
