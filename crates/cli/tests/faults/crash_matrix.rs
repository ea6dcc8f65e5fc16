//! `kill -9` at every point, in the run and in the recovery, and at random instants: the next run ends as an undisturbed one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use verdone_runtime::fault::Point;
use verdone_testkit::Signal;

use crate::world::{PATIENCE, Random, VERDONE, World, in_parallel};

pub(crate) const THREADS: usize = 3;

/// A point that was reached, for the n-th time, and around what.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment {
    pub(crate) point: String,
    pub(crate) nth: usize,
    pub(crate) effect: String,
    before: String,
    after: String,
}

/// Every moment of a trace.
pub(crate) fn moments(trace: &str) -> Vec<Moment> {
    let mut effect = String::new();
    let mut counts = BTreeMap::<&str, usize>::new();
    let mut moments = Vec::<Moment>::new();
    for line in trace.lines() {
        if let Some(begun) = line.strip_prefix("# ") {
            begun.clone_into(&mut effect);
            continue;
        }
        let nth = counts.entry(line).or_default();
        *nth += 1;
        let before = moments.last().map_or(String::new(), |last| last.point.clone());
        if let Some(last) = moments.last_mut() {
            line.clone_into(&mut last.after);
        }
        moments.push(Moment { point: line.to_owned(), nth: *nth, effect: effect.clone(), before, after: String::new() });
    }
    moments
}

/// The moments to try: one of each point, and some of the others that differ in what comes before and after. All of them with
/// `VERDONE_FAULTS=all`, which takes many minutes.
fn selected(all: &[Moment]) -> Vec<Moment> {
    if std::env::var_os("VERDONE_FAULTS").is_some_and(|value| value == "all") {
        return all.to_vec();
    }
    let (mut points, mut kinds) = (BTreeSet::new(), BTreeSet::new());
    let mut others = 0;
    let mut chosen = Vec::new();
    for moment in all {
        let new_kind = kinds.insert((&moment.effect, &moment.before, &moment.point, &moment.after));
        let new_point = points.insert(&moment.point);
        others += usize::from(new_kind && !new_point);
        if new_point || (new_kind && others.is_multiple_of(5)) {
            chosen.push(moment.clone());
        }
    }
    chosen
}

fn traced(world: &World) -> Vec<Moment> {
    world.run_with_fault("trace=../tmp/trace").assert_code(0);
    moments(&world.sandbox.read("../tmp/trace"))
}

#[track_caller]
fn assert_ends_as_undisturbed(world: &World) {
    let output = world.run();
    output.assert_code(0);
    world.assert_sound();
    assert_eq!(&world.look(), World::expected(), "{}", output.transcript());
    world.sandbox.verdone(VERDONE, ["audit"]).assert_code(0);
}

#[test]
fn killed_at_any_point_the_next_run_ends_as_an_undisturbed_one() {
    in_parallel(&selected(&traced(&World::new())), THREADS, |moment| {
        let world = World::new();
        world.run_with_fault(&format!("kill@{}:{}", moment.point, moment.nth)).assert_code(-9);
        assert_ends_as_undisturbed(&world);
    });
}

#[test]
fn killed_again_at_any_point_of_the_recovery_the_next_run_ends_as_an_undisturbed_one() {
    let mut reached: BTreeSet<String> = traced(&World::new()).into_iter().map(|moment| moment.point).collect();
    let mut cases = Vec::new();
    // With everything to undo, in the middle of undoing it, and with a commit made but not recorded.
    for first in [World::end_of_first_turn(), "restore-checkout:1", "note-write:1"] {
        let world = World::new();
        world.run_with_fault(&format!("kill@{first}")).assert_code(-9);
        let recovery = traced(&world);
        // Up to where the new run begins.
        let recovery: Vec<Moment> = recovery.into_iter().take_while(|moment| moment.point != "run-dir").collect();
        reached.extend(recovery.iter().map(|moment| moment.point.clone()));
        cases.extend(selected(&recovery).into_iter().map(|again| (first, again)));
    }
    let never: Vec<&str> = Point::ALL.iter().map(|point| point.name()).filter(|name| !reached.contains(*name)).collect();
    assert!(never.is_empty(), "no run and no recovery of this matrix reaches {never:?}");
    in_parallel(&cases, THREADS, |(first, again)| {
        let world = World::new();
        world.run_with_fault(&format!("kill@{first}")).assert_code(-9);
        world.run_with_fault(&format!("kill@{}:{}", again.point, again.nth)).assert_code(-9);
        assert_ends_as_undisturbed(&world);
    });
}

#[test]
fn a_run_that_was_killed_before_it_began_does_not_hide_what_the_one_before_it_owes() {
    // Right before the end is put in order: the last story is committed, its progress is not.
    let trace = {
        let world = World::new();
        world.run_with_fault("trace=../tmp/trace").assert_code(0);
        world.sandbox.read("../tmp/trace")
    };
    let (before, _) = trace.split_once("# Finish\n").unwrap();
    let at_the_end = format!("step-begin:{}", before.matches("step-begin\n").count() + 1);
    for second in ["run-dir-made:1", "journal-created:1"] {
        let world = World::new();
        world.run_with_fault(&format!("kill@{at_the_end}")).assert_code(-9);
        world.run_with_fault(&format!("kill@{second}")).assert_code(-9);
        assert_ends_as_undisturbed(&world);
    }
}

#[test]
fn killed_at_random_instants_the_next_run_ends_as_an_undisturbed_one() {
    let mut random = Random::from_time();
    println!("VERDONE_SEED={}", random.seed());
    let world = World::new();
    world.run().assert_code(0);
    let whole = world.run().duration.as_millis() as u64 + 1500;
    let delays: Vec<[u64; 3]> = (0..20).map(|_| [0; 3].map(|_| random.below(whole))).collect();
    in_parallel(&delays, THREADS, |delays| {
        let world = World::new();
        // Up to three times in a row.
        for delay in delays.iter().take(1 + (delays[0] % 3) as usize) {
            let run = world.start();
            // The instant is the point of this test, so there is no event to wait for.
            std::thread::sleep(Duration::from_millis(*delay));
            run.signal(Signal::KILL);
            run.wait(PATIENCE);
        }
        assert_ends_as_undisturbed(&world);
    });
}
