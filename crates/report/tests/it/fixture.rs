//! A realistic run: one story verified, one fixed after feedback, one false claim whose attempt is kept, one untested, one that needs a
//! review, one agent-tested.

use std::collections::BTreeMap;

use jiff::Timestamp;
use verdone_core::agent::{SessionUse, TokenKinds, TurnOutcome, Usage};
use verdone_core::base::finish::Finish;
use verdone_core::base::id::{Oid, RunId, StoryId};
use verdone_core::base::verdict::Red;
use verdone_core::check::{CheckOrigin, CheckOutcome, CheckRun, CommandSpec, Stage, TestCount};
use verdone_core::journal::event::{
    Event, Place, Recorded, Rejection, SCHEMA_VERSION, Seal, SealLevel, TurnTests, Verified, WaitCause,
};
use verdone_core::journal::update::{Reporter, Speaker, Stream, Update};
use verdone_core::journal::view::RunView;
use verdone_core::verify::{
    ChangeKind, CountFall, Doubt, Failure, Note, Outcome, OwnCheckBefore, Proof, ProtectedChange, ProtectedKind, Reason, Surface,
    Tree, TreeIds, VerifyReport,
};

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
        let seal = Seal::new(SealLevel::View);
        Self { now: 1_794_708_218, seq: 0, iteration: 0, place, tip: oid('0'), seal, steps: Vec::new() }
    }

    pub(crate) fn sealed(seal: Seal) -> Self {
        Self { seal, ..Self::new() }
    }

    /// Advances the time, then records the event.
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
                unchecked: false,
                gates: Some(format!("sha256:{}", "9a".repeat(32))),
                reviews: BTreeMap::new(),
                evidence: None,
                session: None,
            },
        )
    }

    pub(crate) fn select(&mut self, id: &str, title: &str, attempt: u32, (number, of, open): (usize, usize, usize)) -> &mut Self {
        self.place = Place { story: StoryId::from(id), attempt, turn: 0 };
        self.iteration += 1;
        let (iteration, place) = (self.iteration, self.place.clone());
        self.event(1, Event::StorySelected { iteration, place, title: title.to_owned(), number, of, open });
        let (place, base) = (self.place.clone(), Some(self.tip.clone()));
        self.event(0, Event::AttemptStarted { place, base, tree: None })
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

    /// A usage limit is reached and waited for; the turn continues after that.
    pub(crate) fn waits(&mut self, seconds: i64) -> &mut Self {
        let (place, until) = (self.place.clone(), Timestamp::from_second(self.now + seconds).unwrap());
        self.event(0, Event::WaitStarted { place, why: WaitCause::UsageLimit, reason: "used up".to_owned(), until, ahead: false })
    }

    /// The service fails, and the turn is made again after a wait.
    pub(crate) fn waits_for_service(&mut self, seconds: i64) -> &mut Self {
        let (reason, until) = ("529 Overloaded".to_owned(), Timestamp::from_second(self.now + seconds).unwrap());
        let failed = TurnOutcome::ApiError { reason: reason.clone(), status: Some(529), retryable: true };
        let (place, why) = (self.place.clone(), WaitCause::ServiceError);
        self.ended(1, failed, 0).event(0, Event::WaitStarted { place, why, reason, until, ahead: false })
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
        let by_kind = Some(TokenKinds { input: 345, output: 1_000, cache_read: 10_000, cache_write: 1_000 });
        let usage = Usage { cost_usd: Some(0.21), tokens: Some(12_345), by_kind };
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
                exit_code: None,
                allowance: None,
                claim: Some("Done: every test passes.".to_owned()),
            },
        )
    }

    fn verified(&mut self, report: VerifyReport) -> &mut Self {
        self.verified_with(report, Vec::new())
    }

    fn verified_with(&mut self, report: VerifyReport, restored: Vec<String>) -> &mut Self {
        let nothing = report.reasons.contains(&Reason::Failure(Failure::NothingChanged));
        let (place, changed) = (self.place.clone(), if nothing { 0 } else { 2 });
        let report = VerifyReport { story: Some(place.story.clone()), ..report };
        self.event(4, Event::Verified(Box::new(Verified { place, changed, restored, report, judge: None })))
    }

    /// Keeps the attempt for review.
    pub(crate) fn set_aside(&mut self, kept: char, proof: Proof, reasons: &[&str]) -> &mut Self {
        self.rejected(kept, Rejection::NeedsReview, reasons.first().copied().unwrap_or_default());
        self.review_needed(kept, proof, reasons)
    }

    pub(crate) fn review_needed(&mut self, work: char, proof: Proof, reasons: &[&str]) -> &mut Self {
        let reasons = reasons.iter().map(|reason| (*reason).to_owned()).collect();
        let (place, base) = (self.place.clone(), Some(self.tip.clone()));
        self.event(0, Event::ReviewNeeded { place, work: oid(work), base, proof, reasons })
    }

    pub(crate) fn committed(&mut self, commit: char, proof: Proof) -> &mut Self {
        self.committed_as(commit, proof, Outcome::Done)
    }

    pub(crate) fn committed_as(&mut self, commit: char, proof: Proof, outcome: Outcome) -> &mut Self {
        let (place, tree, criteria) = (self.place.clone(), oid('7'), Vec::new());
        let digest = |of: &str| Some(format!("sha256:{}", verdone_core::base::id::digest(of.as_bytes())));
        let (gates, previous, evidence) = (digest("gates"), digest("before"), digest(&commit.to_string()));
        let started =
            Event::CommitStarted { place: place.clone(), tree: tree.clone(), proof, outcome, gates, previous, criteria };
        self.event(0, started);
        let (commit, criteria) = (oid(commit), Vec::new());
        let base = Some(std::mem::replace(&mut self.tip, commit.clone()));
        self.event(0, Event::Committed { place, commit, tree, proof, outcome, base, files: 2, evidence, criteria, noted: true })
    }

    pub(crate) fn rejected(&mut self, kept: char, rejection: Rejection, reason: &str) -> &mut Self {
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
        first_error: String::new(),
        cached: false,
        flaky: false,
        advisory: false,
        tests: None,
        hidden: false,
    }
}

/// The engine's result for the attempt's tree.
fn report(outcome: Outcome, proof: Option<Proof>, reasons: Vec<Reason>, runs: Vec<CheckRun>) -> VerifyReport {
    let trees = TreeIds { base: Some(oid('6')), ..TreeIds::of_attempt(oid('7')) };
    let runs = if runs.is_empty() { [].into() } else { [(Tree::Attempt, runs)].into() };
    VerifyReport { outcome, proof, reasons, runs, ..VerifyReport::empty(Surface::Run, None, trees) }
}

fn failed(failure: Failure, runs: Vec<CheckRun>) -> VerifyReport {
    report(Outcome::Failed, None, vec![Reason::Failure(failure)], runs)
}

/// The story's check failed before the work and passes now.
fn verified() -> VerifyReport {
    let note = Note::OwnCheck { check: "story test".to_owned(), before: OwnCheckBefore::Red };
    let mut found = report(Outcome::Done, Some(Proof::Verified), vec![Reason::Note(note)], green());
    found.runs.insert(Tree::Base, vec![run("story test", CheckOrigin::Story, CheckOutcome::Failed { code: 1 }, "")]);
    found
}

fn untested() -> VerifyReport {
    let before = Note::OwnCheck { check: "story test".to_owned(), before: OwnCheckBefore::Green };
    let notes = vec![Reason::Note(before), Reason::Note(Note::NoTests)];
    report(Outcome::Done, Some(Proof::Untested), notes, green())
}

fn changed(path: &str, kind: ProtectedKind, change: ChangeKind) -> ProtectedChange {
    ProtectedChange { path: path.to_owned(), kind, change, released: false }
}

/// The gate passes only because of a changed test.
fn dependent(outcome: Outcome) -> VerifyReport {
    let files = vec!["tests/parse.rs".to_owned(), "Cargo.toml".to_owned()];
    let pristine = Doubt::PristineFailed { check: "cargo test".to_owned(), said: "failed with exit code 101".to_owned(), files };
    let change = CountFall::FewerPassed { before: 12, after: 11 };
    let fell = Doubt::CountsFell { check: "cargo test".to_owned(), tree: Tree::Attempt, change };
    let reasons = vec![Reason::Doubt(pristine), Reason::Doubt(fell), Reason::Note(Note::NoOwnCheck)];
    let mut found = report(outcome, Some(Proof::Untested), reasons, vec![counted(CheckOutcome::Passed, 11, 0, "")]);
    found.trees.pristine = Some(oid('8'));
    let tail = "test keeps_order ... FAILED\n";
    found.runs.insert(Tree::Pristine, vec![counted(CheckOutcome::Failed { code: 101 }, 11, 1, tail)]);
    found.protected = vec![
        changed("tests/parse.rs", ProtectedKind::Test, ChangeKind::Modified),
        changed("tests/old.rs", ProtectedKind::Test, ChangeKind::Deleted),
        changed("Cargo.toml", ProtectedKind::Config, ChangeKind::Modified),
    ];
    found
}

/// A test of the attempt fails without its work.
fn agent_tested() -> VerifyReport {
    let files = vec!["tests/wrap.rs".to_owned()];
    let notes = [Note::TestsProveWork { check: "cargo test".to_owned(), files }, Note::NoOwnCheck].map(Reason::Note);
    let mut found = report(Outcome::Done, Some(Proof::AgentTested), notes.into(), vec![counted(CheckOutcome::Passed, 13, 0, "")]);
    (found.trees.pristine, found.trees.proof) = (Some(oid('8')), Some(oid('9')));
    found.runs.insert(Tree::Pristine, vec![counted(CheckOutcome::Passed, 12, 0, "")]);
    found.runs.insert(Tree::Proof, vec![counted(CheckOutcome::Failed { code: 101 }, 12, 1, "")]);
    found.protected = vec![changed("tests/wrap.rs", ProtectedKind::Test, ChangeKind::Added)];
    found
}

fn counted(outcome: CheckOutcome, passed: u64, failed: u64, tail: &str) -> CheckRun {
    CheckRun { tests: Some(TestCount { ran: passed + failed, passed, failed, skipped: 0 }), ..gate(outcome, tail) }
}

fn green() -> Vec<CheckRun> {
    vec![run("story test", CheckOrigin::Story, CheckOutcome::Passed, ""), gate(CheckOutcome::Passed, "")]
}

fn gate(outcome: CheckOutcome, tail: &str) -> CheckRun {
    run("cargo test", CheckOrigin::Gate(Stage::Correctness), outcome, tail)
}

fn red_absent(story: &str) -> Event {
    let place = Place { story: StoryId::from(story), attempt: 1, turn: 0 };
    Event::RedChecked { place, red: Red::Absent, runs: Vec::new() }
}

/// Up to the point where the second story's agent works again.
pub(crate) fn half_a_run() -> Journal {
    let mut j = Journal::new();
    j.start(6).step(Step::Notice("2 files in your checkout are not committed; the run does not see them"));
    j.step(Step::CheckOutput("cargo test")).tick(1);
    j.event(2, Event::BaselineChecked { green: true, runs: vec![gate(CheckOutcome::Passed, "")] });
    j.select("US-001", "Greet by name", 1, (1, 6, 6)).red(Red::Red, CheckOutcome::Failed { code: 1 });
    j.turn().step(Step::Output("I will add the greeting.")).step(Step::Output("\x1b[32mDone.\x1b[0m")).ended(
        42,
        TurnOutcome::Ended,
        0,
    );
    j.verified(verified()).committed('1', Proof::Verified);
    j.select("US-002", "Count the words of a file", 1, (2, 6, 5)).red(Red::Red, CheckOutcome::Failed { code: 1 });
    j.turn().step(Step::Output("All words are counted now.")).ended(63, TurnOutcome::Ended, 0);
    let tail = "running 3 tests\ntest counts_empty_files ... FAILED\n\nassertion `left == right` failed\n  left: 1\n right: 0\n";
    let said = "failed with exit code 101".to_owned();
    let red = gate(CheckOutcome::Failed { code: 101 }, tail);
    j.verified(failed(Failure::CheckFailed { check: "cargo test".to_owned(), said }, vec![red]));
    j.turn().step(Step::Output("The empty file was missing; I am adding it to src/count.rs and to its tests, one by one."));
    j.tick(187);
    j
}

pub(crate) fn whole_run() -> Journal {
    let mut j = half_a_run();
    j.ended(190, TurnOutcome::Ended, 0).step(Step::CheckOutput("cargo test")).tick(1);
    j.verified(verified()).committed('2', Proof::Verified);
    j.select("US-003", "Sort the lines", 1, (3, 6, 4)).red(Red::Red, CheckOutcome::Failed { code: 1 });
    j.turn().step(Step::Output("Everything is sorted. Done!")).ended(5, TurnOutcome::Ended, 0);
    j.verified(failed(Failure::NothingChanged, Vec::new()));
    j.rejected('a', Rejection::NothingChanged, "the agent said it was done and had changed nothing");
    j.select("US-004", "Tidy the readme", 1, (4, 6, 4)).red(Red::Green, CheckOutcome::Passed);
    j.turn().ended(12, TurnOutcome::Ended, 2);
    j.verified_with(untested(), vec!["PLAN.md".to_owned()]).committed('4', Proof::Untested);
    j.select("US-005", "Parse faster", 1, (5, 6, 3)).event(1, red_absent("US-005"));
    j.turn().ended(30, TurnOutcome::Ended, 0).verified(dependent(Outcome::Failed));
    j.turn().ended(20, TurnOutcome::Ended, 0).verified(dependent(Outcome::NeedsReview));
    let reasons = dependent(Outcome::NeedsReview).problems();
    let reasons: Vec<&str> = reasons.iter().map(String::as_str).collect();
    j.set_aside('c', Proof::Untested, &reasons);
    j.select("US-006", "Wrap long lines", 1, (6, 6, 3)).event(1, red_absent("US-006"));
    j.turn().ended(25, TurnOutcome::Ended, 0).verified(agent_tested()).committed('5', Proof::AgentTested);
    j.select("US-003", "Sort the lines", 2, (3, 6, 2)).red(Red::Red, CheckOutcome::Failed { code: 1 });
    j.turn().ended(3700, TurnOutcome::TimedOut { after_ms: 3_600_000 }, 0);
    j.rejected('b', Rejection::TurnFailed, "the agent timed out after 1h");
    j.event(0, Event::StoryFailed { story: StoryId::from("US-003"), reason: "no attempts are left (2 of 2)".to_owned() });
    let reason = "1 failed, 1 for you to review".to_owned();
    j.event(0, Event::RunStopping { finish: Finish::Blocked, reason });
    j.event(0, Event::RunStopped { finish: Finish::Blocked, exit_code: 4, duration_ms: 4_043_000 });
    j
}
