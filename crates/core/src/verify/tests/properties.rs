//! Properties that must be true for any job and any observations.

use proptest::prelude::*;
use proptest::sample::select;

use super::world::{World, count, failed, gate, own_check, unknown};
use crate::check::{CheckOutcome, CheckRun, Stage, TestCount};
use crate::done::JudgeFact;
use crate::verify::{
    BuiltTree, ChangeKind, CheckResult, CheckState, FeedbackTurn, Observed, Outcome, Proof, ProtectedChange, ProtectedKind,
    Reason, ResultId, SeenCondition, Surface, TestNames, Tree, VerifyJob, VerifyReport, judge,
};

fn result() -> impl Strategy<Value = CheckResult> {
    let outcome = prop_oneof![
        5 => Just(CheckOutcome::Passed),
        2 => Just(failed()),
        1 => Just(unknown()),
        1 => select(vec![
            CheckOutcome::Failed { code: 127 },
            CheckOutcome::TimedOut { after_ms: 1 },
            CheckOutcome::Signalled { signal: 9 },
            CheckOutcome::Interrupted,
        ]),
    ];
    let tests = proptest::option::of((0..4_u64, prop_oneof![4 => Just(0), 1 => 1..3_u64], 0..2_u64));
    let name = || proptest::collection::btree_set(select(vec!["a", "b", "c"]).prop_map(str::to_owned), 0..3);
    let names = proptest::option::of((name(), name(), name()));
    (outcome, tests, names, any::<bool>()).prop_map(|(outcome, tests, names, some_tests_ran)| {
        let tests = tests.and_then(|(passed, failed, skipped)| count(passed, failed, skipped));
        let names = names.map(|(passed, failed, skipped)| TestNames { passed, failed, skipped });
        let run = CheckRun { outcome, tests, tail: "SECRET".to_owned(), ..CheckRun::pending(&own_check("x")) };
        CheckResult { run, names, some_tests_ran }
    })
}

fn protected() -> impl Strategy<Value = Vec<ProtectedChange>> {
    let kind = select(vec![ProtectedKind::Test, ProtectedKind::Test, ProtectedKind::InlineTest, ProtectedKind::Config]);
    let change = select(vec![ChangeKind::Added, ChangeKind::Modified, ChangeKind::Deleted]);
    let one = (select(vec!["tests/a", "tests/b", "conf"]), kind, change, any::<bool>());
    let one = one.prop_map(|(path, kind, change, released)| ProtectedChange { path: path.to_owned(), kind, change, released });
    proptest::collection::vec(one, 0..3)
}

const NAMES: [&str; 5] = ["./own", "sh tests/a", "one", "two", "three"];

fn job() -> impl Strategy<Value = VerifyJob> {
    let proof = || select(Proof::ALL.to_vec());
    let feedback = select(vec![FeedbackTurn::Left, FeedbackTurn::Given, FeedbackTurn::NoneLeft]);
    let surface = prop_oneof![3 => Just(Surface::Run), 1 => select(Surface::ALL.to_vec())];
    let gates = proptest::collection::vec((any::<bool>(), 0..5_u8, any::<bool>()), 0..4);
    let rare = || prop_oneof![5 => Just(false), 1 => Just(true)];
    let flags = (rare(), rare(), rare(), rare(), any::<bool>(), any::<bool>(), rare());
    let minimum = prop_oneof![3 => Just(Proof::Untested), 1 => proof()];
    let most = prop_oneof![3 => Just(None), 1 => proof().prop_map(Some)];
    (surface, 0..3_usize, gates, protected(), minimum, most, feedback, flags).prop_map(
        |(surface, own, gates, protected, minimum, at_most, feedback, flags)| {
            let (autorun, judge, conditions, unchanged, base, stop, scope) = flags;
            let world = if autorun { World::new().autorun(false) } else { World::new() };
            let mut job = world.on(surface).job;
            let story = job.story.as_mut().unwrap();
            story.checks = NAMES[..own].iter().map(|command| own_check(command)).collect();
            story.scope = vec!["docs/".to_owned()];
            job.gates = gates
                .into_iter()
                .zip(&NAMES[2..])
                .map(|((quality, kind, hidden), name)| {
                    let mut gate = gate(name);
                    if quality {
                        gate.check.origin = crate::check::CheckOrigin::Gate(Stage::Quality);
                    }
                    gate.check.terms.advisory = kind == 0;
                    gate.hidden = hidden && kind == 1;
                    gate
                })
                .collect();
            (job.protected, job.minimum, job.at_most, job.feedback) = (protected, minimum, at_most, feedback);
            (job.judge, job.stop_at_failing_stage, job.enforce_scope) = (judge, stop, scope);
            job.conditions = if conditions { vec!["ci_ok".to_owned()] } else { Vec::new() };
            if unchanged {
                job.changed = Some(Vec::new());
            }
            if !base && surface == Surface::Verify {
                job.base = None;
            }
            job
        },
    )
}

fn world() -> impl Strategy<Value = World> {
    let said = proptest::collection::vec(result(), Tree::ALL.len() * NAMES.len());
    let unbuildable = prop_oneof![4 => Just(Vec::new()), 1 => select(vec![vec![Tree::Proof], vec![Tree::Pristine]])];
    let (name, why) = (|| "ci_ok".to_owned(), || "x".to_owned());
    let condition = select(vec![
        SeenCondition::Met { name: name() },
        SeenCondition::Missing { name: name(), why: why(), todo: why() },
        SeenCondition::Unknown { name: name(), why: why() },
    ]);
    let fact = select(vec![
        JudgeFact::Off,
        JudgeFact::Holds,
        JudgeFact::Unknown { why: why() },
        JudgeFact::Refuted { findings: vec![why()] },
    ]);
    // Half of the worlds are mostly green on the attempt, because the others rarely get far.
    (job(), said, unbuildable, condition, fact, any::<bool>()).prop_map(|(job, said, unbuildable, condition, judge, green)| {
        let places = Tree::ALL.iter().flat_map(|tree| NAMES.iter().map(|name| (*tree, (*name).to_owned())));
        let mut said: std::collections::BTreeMap<_, _> = places.zip(said).collect();
        if green {
            for ((tree, _), result) in &mut said {
                if matches!(tree, Tree::Attempt | Tree::Pristine) {
                    result.run.outcome = CheckOutcome::Passed;
                    result.run.tests = result.run.tests.and_then(|tests| count(tests.passed + 3, 0, tests.skipped));
                }
                if result.run.outcome == CheckOutcome::Interrupted {
                    result.run.outcome = failed();
                }
            }
        }
        World { job, said, unbuildable, conditions: vec![condition], judge }
    })
}

/// Every possible observation, needed or not.
fn whole(world: &World) -> Observed {
    let built = |tree: Tree| {
        if world.unbuildable.contains(&tree) {
            BuiltTree::Failed { why: "no".to_owned() }
        } else {
            BuiltTree::Built(world.tree(tree))
        }
    };
    let (pristine, proof) = (Some(built(Tree::Pristine)), Some(built(Tree::Proof)));
    let mut results = std::collections::BTreeMap::new();
    for check in world.job.checks() {
        for tree in Tree::ALL {
            let id = ResultId { tree: world.tree(tree), command: check.digest.clone() };
            results.entry(id).or_insert_with(|| world.answer(tree, &check.check));
        }
    }
    let conditions = (!world.job.conditions.is_empty()).then(|| world.conditions.clone());
    Observed {
        interrupted: false,
        pristine,
        proof,
        results,
        conditions,
        red_with_old_tests: Vec::new(),
        judge: world.job.judge.then(|| world.judge.clone()),
    }
}

/// Checks what a report must never say, whatever was observed.
fn assert_sound(job: &VerifyJob, observed: &Observed) -> VerifyReport {
    let report = judge(job, observed);
    let state = |tree: &str, digest: &str| {
        let id = ResultId { tree: crate::base::id::Oid::from(tree), command: digest.to_owned() };
        observed.results.get(&id).map_or(CheckState::NotRun, |result| CheckState::from_run(&result.run))
    };
    if report.outcome != Outcome::Failed {
        for check in job.checks().iter().filter(|check| check.is_required()) {
            assert_eq!(state("attempt", &check.digest), CheckState::Green, "{}", check.check.name);
        }
    }
    if report.outcome == Outcome::Done {
        assert!(report.proof >= Some(job.required_proof()) && report.problem().is_none());
    }
    if report.proof == Some(Proof::Verified) {
        let own = |check: &crate::verify::PlannedCheck| {
            check.is_own()
                && state("base", &check.digest) == CheckState::Red
                && state("attempt", &check.digest) == CheckState::Green
        };
        assert!(job.checks().iter().any(own), "verified without an own check that was red");
        assert!(job.protected.iter().all(|change| !change.released), "verified with released files");
    }
    if report.outcome == Outcome::NeedsReview && job.surface.has_agent() && job.feedback == FeedbackTurn::Left {
        let is_doubt = |reason: &&Reason| matches!(reason, Reason::Doubt(_));
        assert!(report.reasons.iter().filter(is_doubt).all(|doubt| doubt.advice().is_none()), "review without feedback");
    }
    assert_eq!(report.outcome == Outcome::Accepted, job.surface == Surface::Accept && report.outcome != Outcome::Failed);
    assert!(report.feedback.is_none() || report.outcome == Outcome::Failed);
    let json = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<VerifyReport>(&json).unwrap(), report);
    report
}

/// Makes a result worse.
fn worsened(run: &CheckRun, how: u8) -> CheckRun {
    let tests = |edit: fn(TestCount) -> TestCount| run.tests.map(edit);
    match how {
        0 => CheckRun { outcome: failed(), ..run.clone() },
        1 => CheckRun { outcome: unknown(), ..run.clone() },
        2 => CheckRun { tests: tests(|it| count(it.passed, it.failed + 1, it.skipped).unwrap()), ..run.clone() },
        _ => {
            CheckRun { tests: tests(|it| count(it.passed.saturating_sub(1), it.failed, it.skipped + 1).unwrap()), ..run.clone() }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_verification_ends_asks_nothing_twice_and_is_sound(world in world()) {
        // `play` panics if the same command is requested twice for a tree.
        let (_, observed) = world.play();
        assert_sound(&world.job, &observed);
    }

    #[test]
    fn what_the_steps_leave_out_would_not_change_the_answer(mut world in world()) {
        for result in world.said.values_mut().filter(|result| result.run.outcome == CheckOutcome::Interrupted) {
            result.run.outcome = failed();
        }
        let (played, all) = (world.report(), assert_sound(&world.job, &whole(&world)));
        let failed = |report: &VerifyReport| report.outcome == Outcome::Failed;
        prop_assert_eq!(played.outcome == Outcome::Done, all.outcome == Outcome::Done, "{:?} {:?}", played.reasons, all.reasons);
        if !failed(&played) && !failed(&all) {
            prop_assert_eq!((played.proof, played.outcome), (all.proof, all.outcome), "{:?} {:?}", played.reasons, all.reasons);
        }
    }

    #[test]
    fn the_judge_is_total_and_sound_on_anything_that_was_seen(world in world(), kept in proptest::collection::vec(any::<bool>(), 30), parts in 0..16_u8) {
        let mut observed = whole(&world);
        let mut kept = kept.into_iter().cycle();
        observed.results.retain(|_, _| kept.next().unwrap_or(true));
        observed.pristine = observed.pristine.filter(|_| parts & 1 > 0);
        observed.proof = observed.proof.filter(|_| parts & 2 > 0);
        observed.conditions = observed.conditions.filter(|_| parts & 4 > 0);
        observed.judge = observed.judge.filter(|_| parts & 8 > 0);
        assert_sound(&world.job, &observed);
    }

    #[test]
    fn more_red_never_raises_proof_or_outcome(world in world(), which in any::<prop::sample::Index>(), pristine in any::<bool>(), how in 0..4_u8) {
        let before = whole(&world);
        let tree = world.tree(if pristine { Tree::Pristine } else { Tree::Attempt });
        // Unknown is not worse than red.
        let can_get_worse = |result: &CheckResult| match CheckState::from_run(&result.run) {
            CheckState::Green => true,
            CheckState::Red | CheckState::Unknown => how == 0,
            CheckState::Interrupted | CheckState::NotRun => false,
        };
        let ids = before.results.iter().filter(|(id, result)| id.tree == tree && can_get_worse(result));
        let ids: Vec<ResultId> = ids.map(|(id, _)| id.clone()).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let mut after = before.clone();
        let result = after.results.get_mut(which.get(&ids)).unwrap();
        result.run = worsened(&result.run, how);
        let (before, after) = (judge(&world.job, &before), judge(&world.job, &after));
        prop_assert!(after.proof <= before.proof && after.outcome <= before.outcome, "{:?} {:?}", before.reasons, after.reasons);
    }

    #[test]
    fn feedback_keeps_hidden_checks_hidden(world in world()) {
        let report = world.report();
        let hidden = |name: &str| report.hidden.iter().any(|hidden| hidden == name);
        for check in report.feedback.iter().flat_map(|feedback| &feedback.checks) {
            prop_assert_eq!(check.tail.is_empty(), hidden(&check.name));
        }
    }
}
