//! Rulings on tests and checks that the attempt brought or changed.

use super::*;

#[test]
fn rulings_on_tests_of_the_attempt() {
    let import_error =
        |passed| brings_test().result(Tree::Proof, TEST, failed(), None).counts(Tree::Attempt, TEST, count(passed, 0, 0));
    // `node --test` reports a file that does not load as a failed test with the name of the file.
    let file_does_not_load = |reported: &str, with_work: &[&str]| {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let mut world = brings_test();
        for (tree, passed, failed) in [
            (Tree::Base, ["a"].as_slice(), [].as_slice()),
            (Tree::Pristine, &["a"], &[]),
            (Tree::Proof, &["a"], &[reported]),
            (Tree::Attempt, with_work, &[]),
        ] {
            let names = TestNames { passed: set(passed), failed: set(failed), ..TestNames::default() };
            world.said.get_mut(&(tree, TEST.to_owned())).unwrap().names = Some(names);
        }
        world
    };
    let greenfield = |pristine| {
        let world = brings_test().result(Tree::Base, TEST, unknown(), None).result(Tree::Pristine, TEST, pristine, None);
        world.result(Tree::Proof, TEST, failed(), None)
    };
    let red_before = |proof| {
        let world = brings_test().result(Tree::Base, TEST, failed(), count(3, 1, 0)).counts(Tree::Pristine, TEST, count(4, 0, 0));
        world.counts(Tree::Attempt, TEST, count(5, 0, 0)).counts(Tree::Proof, TEST, proof)
    };
    check(vec![
        row(
            "red on the proof tree, green on the attempt",
            brings_test(),
            AgentTested,
            Done,
            "`test` with tests/new.rs fails without the work",
        ),
        row(
            "green on the proof tree",
            brings_test().result(Tree::Proof, TEST, CheckOutcome::Passed, count(4, 0, 0)),
            Untested,
            Done,
            "pass without its work",
        ),
        row("a project without tests so far", greenfield(unknown()), AgentTested, Done, "tests/new.rs"),
        row("… whose gate is red without the new tests", greenfield(failed()), Untested, NeedsReview, "passes only with"),
        row(
            "a gate that was red gives no answer on pristine",
            greenfield(unknown()).says(Tree::Base, TEST, failed()),
            Untested,
            NeedsReview,
            "only with",
        ),
        row(
            "import errors, but only old tests pass",
            red_before(None).counts(Tree::Attempt, TEST, count(4, 0, 0)).counts(Tree::Pristine, TEST, count(4, 0, 0)),
            Untested,
            Done,
            "no test is known",
        ),
        row(
            "a gate that lost its tests on pristine",
            brings_test().result(Tree::Pristine, TEST, unknown(), None),
            Untested,
            NeedsReview,
            "only with",
        ),
        row(
            "everything else green on pristine",
            brings_test().says(Tree::Pristine, TEST, failed()),
            Untested,
            NeedsReview,
            "passes only with",
        ),
        row("import errors are red if the attempt passes new tests", import_error(4), AgentTested, Done, ""),
        row("… and only then", import_error(3), Untested, Done, "no test is known to fail without it"),
        row(
            "a file of tests loads only with the work",
            file_does_not_load("/w/tests/new.rs", &["a", "b"]),
            AgentTested,
            Done,
            "",
        ),
        row("… but has no test", file_does_not_load("tests/new.rs", &["a"]), Untested, Done, "no test is known"),
        row("… and is not the attempt's", file_does_not_load("t-4711", &["a", "t-4712"]), Untested, Done, "no test is known"),
        row(
            "a test that failed on the base is not the attempt's",
            red_before(count(4, 1, 0)),
            Untested,
            Done,
            "no test is known",
        ),
        row("… one more is", red_before(count(3, 2, 0)), AgentTested, Done, ""),
        row(
            "a check without tests shows none",
            World::without_own().with(|job| job.gates[0].check.command = own_check("./lint").command).added_test().says(
                Tree::Proof,
                TEST,
                failed(),
            ),
            Untested,
            Done,
            "no check is known to run",
        ),
        row(
            "out of time is not red",
            brings_test().result(Tree::Proof, TEST, CheckOutcome::TimedOut { after_ms: 1 }, None),
            Untested,
            Done,
            "no test is known",
        ),
        row(
            "deleted tests prove nothing",
            World::without_own().protected("tests/old.rs", Test, Deleted),
            Untested,
            Done,
            "no test",
        ),
        row(
            "a proof tree that cannot be built",
            World { unbuildable: vec![Tree::Proof], ..brings_test() },
            Untested,
            Done,
            "could not be run",
        ),
        row(
            "a pristine tree that cannot be built",
            World { unbuildable: vec![Tree::Pristine], ..brings_test() },
            Untested,
            NeedsReview,
            "could not be combined",
        ),
        row(
            "an updated snapshot that is released",
            World::new().protected("a.snap", Test, Modified).released().says(Tree::Proof, OWN, failed()),
            AgentTested,
            Done,
            "`./own` with a.snap fails without the work and passes with it",
        ),
    ]);
}

#[test]
fn rulings_on_checks_of_the_attempt() {
    let advisory = |mut world: World| {
        world.job.gates[0].check.terms.advisory = true;
        world
    };
    let not_due = |mut world: World| {
        world.job.gates[0].check.terms.when = When { paths: vec!["docs/".to_owned()], ..When::default() };
        world
    };
    let attempt = |outcome| World::new().says(Tree::Attempt, TEST, outcome);
    let mut flaky = attempt(CheckOutcome::Passed);
    flaky.said.get_mut(&(Tree::Attempt, TEST.to_owned())).unwrap().run.flaky = true;
    let scope = |world: World, enforced| {
        world.with(|job| {
            job.story.as_mut().unwrap().scope = vec!["docs/".to_owned()];
            job.enforce_scope = enforced;
        })
    };
    let unchanged = || World::new().with(|job| job.changed = Some(Vec::new()));
    check(vec![
        row("red fails", attempt(failed()).left(), None, Failed, "`test` failed with exit code 1"),
        row("red fails also after feedback", attempt(failed()), None, Failed, "`test` failed"),
        row("unknown is never done", attempt(unknown()), None, Failed, "gave no answer"),
        row("out of time is never done", attempt(CheckOutcome::TimedOut { after_ms: 9 }), None, Failed, "gave no answer"),
        row("interrupted is never done", attempt(CheckOutcome::Interrupted), None, Failed, "interrupted"),
        row("an advisory gate fails nothing", advisory(attempt(failed())), Verified, Done, ""),
        row("a gate that is not due does not run", not_due(attempt(failed())), Verified, Done, ""),
        row("a flaky pass counts and is reported", flaky, Verified, Done, "failed and passed on the same files"),
        row("an enforced scope", scope(World::new(), true), None, Failed, "src/a.rs"),
        row("a scope that is not enforced", scope(World::new(), false), Verified, Done, ""),
        row("nothing changed", unchanged(), None, Failed, "no file was changed"),
        row("nothing changed, and that is allowed", unchanged().with(|job| job.allow_unchanged = true), Verified, Done, ""),
    ]);
}
