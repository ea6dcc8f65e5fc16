//! One row for each line of the design's table and for each ruling about verification.

mod attempt;
mod report;

use super::world::{OWN, TEST, World, count, failed, gate, own_check, unknown};
use crate::check::{CheckOutcome, When};
use crate::done::JudgeFact;
use crate::engine::run::Feedback;
use crate::engine::session::Open;
use crate::verify::ChangeKind::{Deleted, Modified};
use crate::verify::Outcome::{Accepted, Done, Failed, NeedsReview};
use crate::verify::Proof::{AgentTested, Unchecked, Untested, Verified};
use crate::verify::ProtectedKind::{Config, Test};
use crate::verify::{Baseline, CheckState, FeedbackTurn, Outcome, Proof, SeenCondition, Surface, TestNames, Tree, VerifyReport};

struct Row {
    ruling: &'static str,
    world: World,
    proof: Option<Proof>,
    outcome: Outcome,
    /// Part of one of the reasons.
    says: &'static str,
}

fn row(ruling: &'static str, world: World, proof: impl Into<Option<Proof>>, outcome: Outcome, says: &'static str) -> Row {
    Row { ruling, world, proof: proof.into(), outcome, says }
}

fn check(rows: Vec<Row>) {
    for Row { ruling, world, proof, outcome, says } in rows {
        let report = world.report();
        let reasons: Vec<String> = report.reasons.iter().map(ToString::to_string).collect();
        assert_eq!((report.proof, report.outcome), (proof, outcome), "{ruling}: {reasons:#?}");
        assert!(reasons.iter().any(|reason| reason.contains(says)), "{ruling}: {reasons:#?}");
        let wants_feedback = outcome == Failed && report.surface.has_agent() && !report.was_interrupted();
        assert_eq!(report.feedback.is_some(), wants_feedback, "{ruling}: {:?}", report.feedback);
    }
}

/// A test-first story: its check finds no tests on the base.
fn test_first() -> World {
    World::new().says(Tree::Base, OWN, unknown()).added_test().says(Tree::Proof, OWN, failed()).says(
        Tree::Pristine,
        OWN,
        unknown(),
    )
}

/// A story without checks, with an attempt that adds a test.
fn brings_test() -> World {
    let gate = |world: World, tree, tests| world.counts(tree, TEST, tests);
    let world = gate(World::without_own().added_test(), Tree::Base, count(3, 0, 0));
    let world = gate(world, Tree::Attempt, count(4, 0, 0));
    gate(world, Tree::Pristine, count(3, 0, 0)).result(Tree::Proof, TEST, failed(), count(3, 1, 0))
}

fn pristine_red() -> World {
    World::new().changed_test().says(Tree::Pristine, TEST, failed())
}

fn counts_fell() -> World {
    World::new().counts(Tree::Base, TEST, count(3, 0, 0)).counts(Tree::Attempt, TEST, count(2, 0, 1))
}

fn refuted() -> World {
    let world = World::new().with(|job| job.judge = true);
    World { judge: JudgeFact::Refuted { findings: vec!["empty input panics".to_owned()] }, ..world }
}

#[test]
fn every_line_of_the_designs_table() {
    check(vec![
        row(
            "own check red, then green; pristine not needed",
            World::new(),
            Verified,
            Done,
            "failed before the work and passes now",
        ),
        row("own check red, then green; pristine green", World::new().changed_test(), Verified, Done, "failed before the work"),
        row(
            "the check exists only in the attempt",
            test_first(),
            AgentTested,
            Done,
            "`./own` with tests/new.rs fails without the work and passes with it",
        ),
        row("gates green, the story names no check", World::without_own(), Untested, Done, "names no check"),
        row(
            "own check was green before",
            World::new().says(Tree::Base, OWN, CheckOutcome::Passed),
            Untested,
            Done,
            "proves nothing",
        ),
        row(
            "red on pristine: feedback first",
            pristine_red().left(),
            Untested,
            Failed,
            "`test` passes only with the changed tests/old.rs: with the files from before the work it failed with exit code 1",
        ),
        row("red on pristine: then review", pristine_red(), Untested, NeedsReview, "passes only with"),
        row("counts fell: feedback first", counts_fell().left(), Untested, Failed, "3 tests passed before the work, now 2"),
        row("counts fell: then review", counts_fell(), Untested, NeedsReview, "3 tests passed before the work, now 2"),
        row("a judge refuted it: feedback first", refuted().left(), Verified, Failed, "empty input panics"),
        row("a judge refuted it: then review", refuted(), Verified, NeedsReview, "empty input panics"),
        row("autorun file changed: feedback first", World::new().autorun(false).left(), Verified, Failed, ".envrc"),
        row("autorun file changed: then review", World::new().autorun(false), Verified, NeedsReview, ".envrc"),
        row("autorun file named by the scope", World::new().autorun(true), Verified, Done, ""),
        row(
            "the scope names the protected files: at best agent-tested",
            World::new().changed_test().released().says(Tree::Proof, OWN, failed()),
            AgentTested,
            Done,
            "agent-tested at best",
        ),
        row(
            "… and only if they fail without the work",
            World::new().changed_test().released(),
            Untested,
            Done,
            "pass without its work",
        ),
    ]);
}

#[test]
fn rulings_on_the_red_check() {
    let names_added = |outcome| {
        let world = test_first().says(Tree::Base, OWN, outcome);
        let rename = |checks: &mut Vec<_>| *checks = vec![own_check("sh tests/new.rs")];
        let mut world = world.with(|job| rename(&mut job.story.as_mut().unwrap().checks));
        for tree in Tree::ALL {
            if let Some(result) = world.said.remove(&(tree, OWN.to_owned())) {
                world.said.insert((tree, "sh tests/new.rs".to_owned()), result);
            }
        }
        world
    };
    let base = |outcome| World::new().says(Tree::Base, OWN, outcome);
    check(vec![
        row("never gates", World::without_own().says(Tree::Base, TEST, failed()), Untested, Done, "names no check"),
        row(
            "zero tests are unknown",
            World::new().result(Tree::Base, OWN, CheckOutcome::Passed, count(0, 0, 2)),
            Untested,
            Done,
            "ran no tests",
        ),
        row("exit 127 is unknown", base(CheckOutcome::Failed { code: 127 }), Untested, Done, "gave no answer before the work"),
        row("exit 126 is unknown", base(CheckOutcome::Failed { code: 126 }), Untested, Done, "gave no answer before the work"),
        row(
            "out of time is unknown",
            base(CheckOutcome::TimedOut { after_ms: 9 }),
            Untested,
            Done,
            "gave no answer before the work",
        ),
        row("a signal is red", base(CheckOutcome::Signalled { signal: 11 }), Verified, Done, ""),
        row(
            "a counted failure is red",
            World::new().result(Tree::Base, OWN, CheckOutcome::Passed, count(1, 1, 0)).counts(Tree::Attempt, OWN, count(2, 0, 0)),
            Verified,
            Done,
            "",
        ),
        row(
            "a check that names a new file, but passes tests on the base",
            names_added(failed()).counts(Tree::Base, "sh tests/new.rs", count(1, 1, 0)).counts(
                Tree::Attempt,
                "sh tests/new.rs",
                count(2, 0, 0),
            ),
            Untested,
            NeedsReview,
            "only with",
        ),
        row(
            "a missing test file is red if the proof tree shows it",
            names_added(failed()),
            AgentTested,
            Done,
            "needs tests/new.rs",
        ),
        row(
            "… and only then",
            test_first().says(Tree::Proof, OWN, CheckOutcome::Passed),
            Untested,
            Done,
            "pass without its work",
        ),
        row(
            "one red check of two is enough",
            with_second_own(CheckOutcome::Passed),
            Verified,
            Done,
            "`./two` already passed before",
        ),
        row(
            "a check that only the attempt has limits the proof",
            with_second_own(unknown()).added_test().says(Tree::Proof, "./two", failed()),
            AgentTested,
            Done,
            "`./two`",
        ),
        row(
            "without a base nothing was red",
            World::new().with(|job| job.base = None),
            Untested,
            Done,
            "was not run before the work",
        ),
    ]);
}

fn with_second_own(before: CheckOutcome) -> World {
    World::new().with(|job| job.story.as_mut().unwrap().checks.push(own_check("./two"))).says(Tree::Base, "./two", before)
}

#[test]
fn rulings_on_counts() {
    let gate = |before, after| World::new().counts(Tree::Base, TEST, before).counts(Tree::Attempt, TEST, after);
    let own = |before, after| World::new().counts(Tree::Base, OWN, before).counts(Tree::Attempt, OWN, after);
    let names = |passed: &[&str], skipped: &[&str]| {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Some(TestNames { passed: set(passed), skipped: set(skipped), ..TestNames::default() })
    };
    let mut skips_by_name = gate(count(2, 0, 0), count(2, 0, 1));
    skips_by_name.said.get_mut(&(Tree::Base, TEST.to_owned())).unwrap().names = names(&["a", "b"], &[]);
    skips_by_name.said.get_mut(&(Tree::Attempt, TEST.to_owned())).unwrap().names = names(&["a", "dummy"], &["b"]);
    let baseline = Baseline { state: CheckState::Green, tests: count(3, 0, 0), names: None };
    let known = counts_fell().with(|job| job.gates[0].baseline = Some(baseline.clone()));
    let mut uncounted = own(count(0, 1, 0), None);
    uncounted.said.get_mut(&(Tree::Attempt, OWN.to_owned())).unwrap().some_tests_ran = true;
    check(vec![
        row(
            "a counted failure fails whatever the exit code",
            gate(count(3, 0, 0), count(3, 1, 0)),
            None,
            Failed,
            "exited with code 0, but counts 1 failed",
        ),
        row("skipped is not passed", gate(count(3, 0, 0), count(2, 0, 1)), Untested, NeedsReview, "now 2"),
        row("a count that vanished", gate(count(3, 0, 0), None), Untested, NeedsReview, "counts none now"),
        row(
            "a failed test that is skipped now",
            own(count(2, 1, 0), count(2, 0, 1)),
            Untested,
            NeedsReview,
            "no additional test passes now",
        ),
        row("a failed test that passes now", own(count(2, 1, 0), count(3, 0, 0)), Verified, Done, ""),
        row("a runner that counts failures alone", uncounted, Verified, Done, ""),
        row("… but says nothing at all now", own(count(0, 1, 0), None), Untested, NeedsReview, "counts none now"),
        row("skipped by name, hidden by a new test", skips_by_name, Untested, NeedsReview, "skipped now: b"),
        row("more tests than before", gate(count(3, 0, 0), count(9, 0, 4)), Verified, Done, ""),
        row("no counts on the base", gate(None, count(1, 0, 0)), Verified, Done, ""),
        row("counts of the base that are known already", known, Untested, NeedsReview, "3 tests passed"),
        row(
            "fewer on pristine, hidden by new tests",
            gate(count(3, 0, 0), count(3, 0, 0)).added_test().counts(Tree::Pristine, TEST, count(2, 0, 1)),
            Untested,
            NeedsReview,
            "run with the files from before the work: 3 tests passed",
        ),
        row(
            "a scope that names test files may lower counts: agent-tested at best",
            counts_fell().changed_test().released().says(Tree::Proof, OWN, failed()),
            AgentTested,
            Done,
            "which the story's scope allows",
        ),
        row(
            "a scope that names other files may not",
            counts_fell().protected("setup.cfg", Config, Modified).released(),
            Untested,
            NeedsReview,
            "now 2",
        ),
        row(
            "a scope that names deleted tests",
            counts_fell().protected("tests/old.rs", Test, Deleted).released(),
            Untested,
            Done,
            "allows",
        ),
    ]);
}

#[test]
fn rulings_on_the_minimum() {
    let minimum = |world: World, proof| world.with(|job| job.minimum = proof);
    let story = |world: World, proof| world.with(|job| job.story.as_mut().unwrap().minimum = Some(proof));
    let nothing = || World::without_own().with(|job| job.gates.clear());
    check(vec![
        row("untested is done by default", World::without_own(), Untested, Done, ""),
        row(
            "below it: feedback first",
            minimum(World::without_own(), AgentTested).left(),
            Untested,
            Failed,
            "at least agent-tested is required",
        ),
        row("below it: then review", minimum(World::without_own(), AgentTested), Untested, NeedsReview, "at least agent-tested"),
        row("at it", minimum(brings_test(), AgentTested), AgentTested, Done, ""),
        row("a story asks for more", story(brings_test(), Verified), AgentTested, NeedsReview, "at least verified"),
        row("a story asks for less", story(minimum(World::without_own(), Verified), Untested), Untested, Done, ""),
        row("nothing was checked", nothing(), Unchecked, NeedsReview, "at least untested"),
        row("nothing was checked, with --unchecked", minimum(nothing(), Unchecked), Unchecked, Done, "no check ran"),
    ]);
    let told = minimum(World::without_own(), AgentTested).left().report().feedback.unwrap();
    assert_eq!(told.advice, ["Add a test that fails without your change."]);
    let told = minimum(brings_test(), Verified).left().report().feedback.unwrap();
    assert!(told.problems[0].contains("a `Verification:` command in the plan that fails before the work"), "{told:?}");
    assert!(told.advice[0].starts_with("Do not add tests for this: only the user can add such a check."), "{told:?}");
}

#[test]
fn rulings_on_conditions_and_the_judge() {
    let condition = |seen: Vec<SeenCondition>| {
        let world = World::new().with(|job| job.conditions = vec!["ci_ok".to_owned()]).left();
        World { conditions: seen, ..world }
    };
    let (name, why, todo) = (|| "ci_ok".to_owned(), || "red".to_owned(), || "Fix it".to_owned());
    let judge = |said| World { judge: said, ..World::new().with(|job| job.judge = true).left() };
    check(vec![
        row("met", condition(vec![SeenCondition::Met { name: name() }]), Verified, Done, ""),
        row(
            "missing",
            condition(vec![SeenCondition::Missing { name: name(), why: why(), todo: todo() }]),
            None,
            Failed,
            "ci_ok is not met",
        ),
        row(
            "unknown: no turn is spent",
            condition(vec![SeenCondition::Unknown { name: name(), why: why() }]),
            Verified,
            NeedsReview,
            "could not be determined",
        ),
        row("never looked at", condition(Vec::new()), Verified, NeedsReview, "could not be determined"),
        row("the judge finds nothing", judge(JudgeFact::Holds), Verified, Done, ""),
        row(
            "the judge gives no answer: no turn is spent",
            judge(JudgeFact::Unknown { why: why() }),
            Verified,
            NeedsReview,
            "no clear answer",
        ),
        row("the judge was not asked", judge(JudgeFact::Off), Verified, NeedsReview, "not asked"),
    ]);
}

#[test]
fn rulings_on_surfaces() {
    let accept = |world: World| world.on(Surface::Accept);
    let limited = |world: World, proof| world.with(|job| job.at_most = Some(proof));
    check(vec![
        row("accept: no pristine", accept(pristine_red()), Untested, Accepted, "a person accepted the changes to tests/old.rs"),
        row("accept: no counts", limited(accept(counts_fell()), Untested), Untested, Accepted, "the proof is untested at best"),
        row(
            "accept: refused if red",
            accept(World::new().says(Tree::Attempt, TEST, failed())),
            None,
            Failed,
            "failed with exit code 1",
        ),
        row("accept: keeps a proof that was not in doubt", limited(accept(refuted()), Verified), Verified, Accepted, ""),
        row("accept: no minimum", accept(World::without_own()).with(|job| job.minimum = Verified), Untested, Accepted, ""),
        row(
            "verify --base: review without feedback",
            pristine_red().left().on(Surface::VerifyBase),
            Untested,
            NeedsReview,
            "only with",
        ),
        row("verify --base: no story", brings_test().on(Surface::VerifyBase).with(|job| job.story = None), AgentTested, Done, ""),
        row("audit --rerun: as the run", pristine_red().on(Surface::AuditRerun), Untested, NeedsReview, "only with"),
        row("loops: as runs", counts_fell().on(Surface::Loop).left(), Untested, Failed, "now 2"),
        row(
            "no turn left for feedback",
            pristine_red().with(|job| job.feedback = FeedbackTurn::NoneLeft),
            Untested,
            NeedsReview,
            "only with",
        ),
    ]);
}
