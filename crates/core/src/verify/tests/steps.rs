//! Which trees are used, and when the engine stops.

use super::world::{OWN, TEST, World, count, failed, gate, unknown};
use crate::check::Stage;
use crate::verify::{Baseline, ChangeKind, CheckState, OwnCheckBefore, ProtectedKind, Step, Surface, Tree, next_step, red_check};

/// The steps in short form: `attempt: ./own test`.
fn steps(world: &World) -> Vec<String> {
    let short = |step: &Step| match step {
        Step::Build(tree) => format!("build {}", tree.name()),
        Step::Run { tree, checks } => {
            let names: Vec<&str> = checks.iter().map(|check| check.check.name.as_str()).collect();
            format!("{}: {}", tree.name(), names.join(" "))
        }
        Step::AskConditions => "conditions".to_owned(),
        Step::AskJudge => "judge".to_owned(),
        Step::Done => "done".to_owned(),
    };
    world.play().0.iter().map(short).collect()
}

fn known(world: World) -> World {
    world.with(|job| job.gates[0].baseline = Some(Baseline { state: CheckState::Green, tests: None, names: None }))
}

#[test]
fn a_tree_is_visited_only_if_it_can_change_the_answer() {
    let lint = |world: World| {
        world.with(|job| {
            job.gates.push(gate("lint"));
            job.gates[1].check.origin = crate::check::CheckOrigin::Gate(Stage::Quality);
            job.gates[1].baseline = job.gates[0].baseline.clone();
        })
    };
    let table: [(&str, World, &[&str]); 14] = [
        ("nothing protected changed", known(World::new()), &["base: ./own", "attempt: ./own", "attempt: test"]),
        ("the base's counts are unknown", World::new(), &["base: ./own", "attempt: ./own", "attempt: test", "base: test"]),
        (
            "protected files changed: verified needs no proof tree",
            known(World::new().changed_test()),
            &["base: ./own", "attempt: ./own", "attempt: test", "build pristine", "pristine: ./own", "pristine: test"],
        ),
        (
            "red on the attempt ends it",
            known(World::new().says(Tree::Attempt, OWN, failed()).changed_test()),
            &["base: ./own", "attempt: ./own"],
        ),
        (
            "red on the attempt, all stages wanted",
            lint(known(World::new().says(Tree::Attempt, OWN, failed()))).with(|job| job.stop_at_failing_stage = false),
            &["base: ./own", "attempt: ./own", "attempt: test", "attempt: lint"],
        ),
        (
            "red on pristine ends it",
            lint(known(World::new().changed_test().says(Tree::Pristine, OWN, failed()))),
            &["base: ./own", "attempt: ./own", "attempt: test", "attempt: lint", "build pristine", "pristine: ./own"],
        ),
        (
            "counts that fell need no pristine tree",
            World::new().changed_test().counts(Tree::Base, TEST, count(2, 0, 0)),
            &["base: ./own", "attempt: ./own", "attempt: test", "base: test"],
        ),
        (
            "a test that was written first needs the proof tree, and not itself on pristine",
            known(World::new().says(Tree::Base, OWN, unknown()).added_test().says(Tree::Proof, OWN, failed())),
            &[
                "base: ./own",
                "attempt: ./own",
                "attempt: test",
                "build pristine",
                "pristine: test",
                "build proof",
                "proof: ./own",
            ],
        ),
        (
            "without protected files the proof tree would be the base",
            known(World::new().says(Tree::Base, OWN, unknown())),
            &["base: ./own", "attempt: ./own", "attempt: test"],
        ),
        (
            "released files need no pristine tree",
            known(World::new().changed_test().released()),
            &["base: ./own", "attempt: ./own", "attempt: test", "build proof", "proof: ./own", "proof: test"],
        ),
        (
            "other protected files alone need no proof tree",
            known(World::without_own().protected("setup.cfg", ProtectedKind::Config, ChangeKind::Modified)),
            &["attempt: test", "build pristine", "pristine: test"],
        ),
        (
            "accept skips pristine and counts",
            World::new().changed_test().on(Surface::Accept),
            &["base: ./own", "attempt: ./own", "attempt: test"],
        ),
        ("nothing changed", World::new().with(|job| job.changed = Some(Vec::new())), &["base: ./own"]),
        ("no base", World::new().with(|job| job.base = None), &["attempt: ./own", "attempt: test"]),
    ];
    for (case, world, expected) in table {
        assert_eq!(steps(&world), expected, "{case}");
    }
}

#[test]
fn conditions_and_judge_are_asked_last_and_only_about_work_that_would_be_done() {
    let asking = |world: World| {
        let world = known(world).with(|job| (job.judge, job.conditions) = (true, vec!["ci_ok".to_owned()]));
        World { conditions: vec![crate::verify::SeenCondition::Met { name: "ci_ok".to_owned() }], ..world }
    };
    let ends = |world: World| steps(&world).split_off(3);
    assert_eq!(ends(asking(World::new())), ["conditions", "judge"]);
    assert!(ends(asking(World::new().autorun(false))).is_empty());
    assert_eq!(ends(World { conditions: Vec::new(), ..asking(World::new()) }), ["conditions"]);
}

#[test]
fn identical_commands_on_identical_trees_run_once() {
    let mut world = World::new().with(|job| {
        job.gates.push(gate("again"));
        job.gates[1].check.command = job.gates[0].check.command.clone();
        job.attempt = job.base.clone().unwrap();
    });
    assert_eq!(steps(&world), ["base: ./own"], "the attempt is the base: its own check is known, and red");
    world.said.clear();
    assert_eq!(steps(&world), ["base: ./own", "attempt: test"]);
}

#[test]
fn the_red_check_is_the_first_step_and_can_be_asked_about_at_once() {
    let world = World::new();
    let mut observed = crate::verify::Observed::default();
    assert_eq!(red_check(&world.job, &observed), [(OWN.to_owned(), OwnCheckBefore::NotRun)]);
    world.perform(&next_step(&world.job, &observed), &mut observed);
    assert_eq!(red_check(&world.job, &observed), [(OWN.to_owned(), OwnCheckBefore::Red)]);
}
