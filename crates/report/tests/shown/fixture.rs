//! A run as it really goes: one story verified, one repaired, one lie whose attempt is kept, one unproven.

use jiff::Timestamp;
use verdone_core::agent::{SessionUse, TurnOutcome, Usage};
use verdone_core::check::{CheckOrigin, CheckOutcome, CheckRun, CommandSpec, Stage};
use verdone_core::event::{
    Event, Place, Recorded, Rejection, SCHEMA_VERSION, Seal, SealLevel, TurnTests, VerifyOutcome, WaitCause,
};
use verdone_core::finish::Finish;
use verdone_core::id::{Oid, RunId, StoryId};
use verdone_core::tamper::{Alarm, AlarmKind, Severity};
use verdone_core::update::{Reporter, Speaker, Stream, Update};
use verdone_core::verdict::Red;
use verdone_core::verify::Proof;
use verdone_core::view::RunView;

pub(crate) enum Step {
    Event(Box<Recorded>),
    Output(&'static str),
    CheckOutput(&'static str),
    Tick(Timestamp),
    Notice(&'static str),
}

impl Step {
    pub(crate) fn show(&self, reporter: &mut impl Reporter) {
        reporter.report(match self {
            Self::Event(recorded) => Update::Event(recorded),
            Self::Output(line) => Update::Output { speaker: Speaker::Agent, stream: Stream::Stdout, line },
            Self::CheckOutput(name) => Update::Output { speaker: Speaker::Check(name), stream: Stream::Stderr, line: "running" },
            Self::Tick(now) => Update::Tick { now: *now, active_ms: None },
            Self::Notice(text) => Update::Notice { text },
        });
    }
}

pub(crate) struct Journal {
    now: i64,
    seq: u64,
    iteration: u32,
    place: Place,
    tip: Oid,
    seal: Seal,
    pub(crate) steps: Vec<Step>,
}

impl Journal {
    pub(crate) fn new() -> Self {
        let place = Place { story: StoryId::from("none"), attempt: 0, turn: 0 };
        let seal = Seal { level: SealLevel::View, missing: Vec::new(), container: false };
        Self { now: 1_794_708_218, seq: 0, iteration: 0, place, tip: oid('0'), seal, steps: Vec::new() }
    }

    pub(crate) fn sealed(seal: Seal) -> Self {
        Self { seal, ..Self::new() }
    }

    /// Seconds go by, then it is recorded.
    pub(crate) fn event(&mut self, seconds: i64, event: Event) -> &mut Self {
        self.now += seconds;
        self.seq += 1;
        let at = Timestamp::from_second(self.now).unwrap();
        self.steps.push(Step::Event(Box::new(Recorded { v: SCHEMA_VERSION, seq: self.seq, at, active_ms: None, event })));
        self
    }

    pub(crate) fn step(&mut self, step: Step) -> &mut Self {
        self.steps.push(step);
        self
    }

    pub(crate) fn tick(&mut self, seconds: i64) -> &mut Self {
        let at = Timestamp::from_second(self.now + seconds).unwrap();
        self.step(Step::Tick(at))
    }

    pub(crate) fn start(&mut self, stories: usize) -> &mut Self {
        self.event(
            0,
            Event::RunStarted {
                run: RunId::from("20261115-020338-5f3a"),
                version: "0.1.0".to_owned(),
                plan: "PLAN.md".to_owned(),
                format: "plan_md".to_owned(),
                agent: "command".to_owned(),
                mode: "building".to_owned(),
                stories,
                open: stories,
                branch: Some("verdone/5f3a".to_owned()),
                head: Some(oid('0')),
                target: Some("main".to_owned()),
                seal: Some(self.seal.clone()),
                frozen: "f".repeat(64),
                max_iterations: 50,
                unverified: false,
                gates: Some(format!("sha256:{}", "9a".repeat(32))),
                evidence: None,
            },
        )
    }

    pub(crate) fn select(&mut self, id: &str, title: &str, attempt: u32, (number, of, open): (usize, usize, usize)) -> &mut Self {
        self.place = Place { story: StoryId::from(id), attempt, turn: 0 };
        self.iteration += 1;
        let (iteration, place) = (self.iteration, self.place.clone());
        self.event(1, Event::StorySelected { iteration, place, title: title.to_owned(), number, of, open });
        let (place, base) = (self.place.clone(), Some(self.tip.clone()));
        self.event(0, Event::AttemptStarted { place, base })
    }

    fn red(&mut self, red: Red, outcome: CheckOutcome) -> &mut Self {
        let place = self.place.clone();
        self.event(1, Event::RedChecked { place, red, runs: vec![run("story test", CheckOrigin::Story, outcome, "")] })
    }

    pub(crate) fn turn(&mut self) -> &mut Self {
        self.place.turn += 1;
        let place = self.place.clone();
        self.event(0, Event::TurnStarted { place })
    }

    fn ended(&mut self, seconds: i64, outcome: TurnOutcome, leftovers: u32) -> &mut Self {
        self.ended_in(None, seconds, outcome, leftovers)
    }

    /// A limit of the service is reached, and waited for; the turn is not over then.
    pub(crate) fn waits(&mut self, seconds: i64) -> &mut Self {
        let (place, until) = (self.place.clone(), Timestamp::from_second(self.now + seconds).unwrap());
        self.event(0, Event::WaitStarted { place, why: WaitCause::UsageLimit, reason: "used up".to_owned(), until, ahead: false })
    }

    pub(crate) fn goes_on(&mut self) -> &mut Self {
        let place = self.place.clone();
        self.event(0, Event::WaitEnded { place: place.clone() }).event(0, Event::TurnStarted { place })
    }

    pub(crate) fn ended_in(
        &mut self,
        session: Option<SessionUse>,
        seconds: i64,
        outcome: TurnOutcome,
        leftovers: u32,
    ) -> &mut Self {
        let place = self.place.clone();
        let name = |what: &str| Some(format!("turns/{}-{}-{}.{what}", place.story, place.attempt, place.turn));
        let (prompt, output) = (name("prompt"), name("output"));
        let usage = Usage { cost_usd: Some(0.21), tokens: Some(12_345) };
        let duration_ms = u64::try_from(seconds).unwrap() * 1000;
        self.event(
            seconds,
            Event::TurnEnded {
                place,
                outcome,
                duration_ms,
                usage,
                prompt,
                output,
                leftovers,
                tests: TurnTests::default(),
                session,
                allowance: None,
                claim: Some("Done: every test passes.".to_owned()),
            },
        )
    }

    fn verified(&mut self, outcome: VerifyOutcome, runs: Vec<CheckRun>) -> &mut Self {
        let changed = if outcome == VerifyOutcome::NothingChanged { 0 } else { 2 };
        let (place, tree) = (self.place.clone(), Some(oid('7')));
        self.event(
            4,
            Event::Verified {
                place,
                outcome,
                tree,
                changed,
                runs,
                reason: None,
                restored: Vec::new(),
                alarms: Vec::new(),
                agent_test: None,
                as_before: None,
                judge: None,
            },
        )
    }

    pub(crate) fn committed(&mut self, commit: char, verdict: Proof) -> &mut Self {
        let (place, tree) = (self.place.clone(), oid('7'));
        let digest = |of: &str| Some(format!("sha256:{}", verdone_core::id::digest(of.as_bytes())));
        let (gates, previous, evidence) = (digest("gates"), digest("before"), digest(&commit.to_string()));
        self.event(
            0,
            Event::CommitStarted { place: place.clone(), tree: tree.clone(), verdict, gates, previous, criteria: Vec::new() },
        );
        let commit = oid(commit);
        let base = Some(std::mem::replace(&mut self.tip, commit.clone()));
        self.event(
            0,
            Event::Committed { place, commit, tree, verdict, base, files: 2, evidence, criteria: Vec::new(), noted: true },
        )
    }

    fn rejected(&mut self, kept: char, rejection: Rejection, reason: &str) -> &mut Self {
        let place = self.place.clone();
        self.event(0, Event::AttemptRejected { place: place.clone(), rejection, reason: reason.to_owned() });
        self.event(1, Event::AttemptKept { place, kept: oid(kept), files: 1 })
    }

    pub(crate) fn recorded(&self) -> impl Iterator<Item = &Recorded> {
        self.steps.iter().filter_map(|step| match step {
            Step::Event(recorded) => Some(&**recorded),
            Step::Output(_) | Step::CheckOutput(_) | Step::Tick(_) | Step::Notice(_) => None,
        })
    }

    pub(crate) fn view(&self) -> RunView {
        RunView::from_journal(self.recorded())
    }
}

pub(crate) fn oid(c: char) -> Oid {
    Oid(c.to_string().repeat(40))
}

fn run(name: &str, origin: CheckOrigin, outcome: CheckOutcome, tail: &str) -> CheckRun {
    CheckRun {
        name: name.to_owned(),
        origin,
        command: CommandSpec::Shell(if name == "story test" { "./test.sh greet".to_owned() } else { name.to_owned() }),
        outcome,
        duration_ms: 1_400,
        output_digest: "ab".repeat(32),
        output: Some(format!("checks/{}.txt", name.replace(' ', "-"))),
        tail: tail.to_owned(),
        cached: false,
        flaky: false,
        advisory: false,
        tests: None,
    }
}

fn green() -> Vec<CheckRun> {
    vec![run("story test", CheckOrigin::Story, CheckOutcome::Passed, ""), gate(CheckOutcome::Passed, "")]
}

fn gate(outcome: CheckOutcome, tail: &str) -> CheckRun {
    run("cargo test", CheckOrigin::Gate(Stage::Correctness), outcome, tail)
}

/// Up to a point where the second story's agent works again.
pub(crate) fn half_a_run() -> Journal {
    let mut j = Journal::new();
    let failed = CheckOutcome::Failed { code: 101 };
    j.start(4).step(Step::Notice("2 files in your checkout are not committed; the run does not see them"));
    j.step(Step::CheckOutput("cargo test")).tick(1);
    j.event(2, Event::BaselineChecked { green: true, runs: vec![gate(CheckOutcome::Passed, "")] });
    j.select("US-001", "Greet by name", 1, (1, 4, 4)).red(Red::Red, CheckOutcome::Failed { code: 1 });
    j.turn().step(Step::Output("I will add the greeting.")).step(Step::Output("\x1b[32mDone.\x1b[0m")).ended(
        42,
        TurnOutcome::Ended,
        0,
    );
    j.verified(VerifyOutcome::Passed, green()).committed('1', Proof::Verified);
    j.select("US-002", "Count the words of a file", 1, (2, 4, 3)).red(Red::Red, CheckOutcome::Failed { code: 1 });
    j.turn().step(Step::Output("All words are counted now.")).ended(63, TurnOutcome::Ended, 0);
    let tail = "running 3 tests\ntest counts_empty_files ... FAILED\n\nassertion `left == right` failed\n  left: 1\n right: 0\n";
    j.verified(VerifyOutcome::Failed, vec![gate(failed, tail)]);
    j.turn().step(Step::Output("The empty file was missing; I am adding it to src/count.rs and to its tests, one by one."));
    j.tick(187);
    j
}

pub(crate) fn whole_run() -> Journal {
    let mut j = half_a_run();
    j.ended(190, TurnOutcome::Ended, 0).step(Step::CheckOutput("cargo test")).tick(1);
    j.verified(VerifyOutcome::Passed, green()).committed('2', Proof::Verified);
    j.select("US-003", "Sort the lines", 1, (3, 4, 2)).red(Red::Red, CheckOutcome::Failed { code: 1 });
    j.turn().step(Step::Output("Everything is sorted. Done!")).ended(5, TurnOutcome::Ended, 0);
    j.verified(VerifyOutcome::NothingChanged, Vec::new());
    j.rejected('a', Rejection::NothingChanged, "the agent said it was done and had changed nothing");
    j.select("US-004", "Tidy the readme", 1, (4, 4, 2)).red(Red::Green, CheckOutcome::Passed);
    j.turn().ended(12, TurnOutcome::Ended, 2);
    let place = j.place.clone();
    j.event(
        3,
        Event::Verified {
            place,
            outcome: VerifyOutcome::Passed,
            tree: Some(oid('7')),
            changed: 1,
            runs: green(),
            reason: None,
            restored: vec!["PLAN.md".to_owned()],
            alarms: vec![Alarm {
                kind: AlarmKind::LockChanged,
                severity: Severity::Low,
                path: "Cargo.lock".to_owned(),
                line: None,
                text: "without its manifest".to_owned(),
                expected: false,
            }],
            agent_test: None,
            as_before: None,
            judge: None,
        },
    );
    j.committed('4', Proof::Untested);
    j.select("US-003", "Sort the lines", 2, (3, 4, 1)).red(Red::Red, CheckOutcome::Failed { code: 1 });
    j.turn().ended(3700, TurnOutcome::TimedOut { after_ms: 3_600_000 }, 0);
    j.rejected('b', Rejection::TurnFailed, "the agent was ended after 1h");
    j.event(0, Event::StoryFailed { story: StoryId::from("US-003"), reason: "no attempts are left (2 of 2)".to_owned() });
    let reason = "1 story needs a human: US-003".to_owned();
    j.event(0, Event::RunStopping { finish: Finish::Blocked, reason });
    j.event(0, Event::RunStopped { finish: Finish::Blocked, exit_code: 4, duration_ms: 4_043_000 });
    j
}
