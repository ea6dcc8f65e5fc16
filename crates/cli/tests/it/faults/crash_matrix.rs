//! `kill -9` at every fault point, in the run and in the recovery: the next run ends like an undisturbed one.

use std::collections::{BTreeMap, BTreeSet};

use verdone_runtime::base::fault::Point;

use crate::faults::world::{THREADS, World, in_parallel};

/// Points that no run of this matrix reaches: they are in verifications of sessions, and in landings that git refuses halfway.
pub(crate) const ELSEWHERE: &[&str] =
    &["chain-append", "chain-appended", "index-write", "index-locked", "index-installed", "uncommit"];

/// The n-th time that a point was reached, and in which effect.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment {
    pub(crate) point: String,
    pub(crate) nth: usize,
    pub(crate) effect: String,
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
        moments.push(Moment { point: line.to_owned(), nth: *nth, effect: effect.clone() });
    }
    moments
}

fn all_wanted() -> bool {
    std::env::var_os("VERDONE_FAULTS").is_some_and(|value| value == "all")
}

/// The moments to try: the first of each point, or with `VERDONE_FAULTS=all` all of them, which takes many minutes.
fn selected(all: Vec<Moment>, points: &mut BTreeSet<String>) -> Vec<Moment> {
    all.into_iter().filter(|moment| points.insert(moment.point.clone()) || all_wanted()).collect()
}

/// The suite tries every second one of the selected moments; the tier tries all of them.
fn thinned<T>(cases: Vec<T>) -> Vec<T> {
    let step = if all_wanted() { 1 } else { 2 };
    cases.into_iter().step_by(step).collect()
}

pub(crate) fn traced(world: &World) -> Vec<Moment> {
    world.run_with_fault("trace=../tmp/trace").assert_code(0);
    moments(&world.sandbox.read("../tmp/trace"))
}

#[test]
fn killed_at_any_point_the_next_run_ends_as_an_undisturbed_one() {
    in_parallel(&thinned(selected(traced(&World::new()), &mut BTreeSet::new())), THREADS, |moment| {
        let world = World::new();
        world.run_with_fault(&format!("kill@{}:{}", moment.point, moment.nth)).assert_code(-9);
        world.assert_ends_as_undisturbed();
    });
}

#[test]
fn killed_again_at_any_point_of_the_recovery_the_next_run_ends_as_an_undisturbed_one() {
    let all = traced(&World::new());
    let mut reached: BTreeSet<String> = all.iter().map(|moment| moment.point.clone()).collect();
    // The branch already has the commit, but the journal does not say so yet.
    let committed = all.iter().rfind(|moment| moment.effect == "Commit" && moment.point == "ref-was-set").unwrap();
    let committed = format!("ref-was-set:{}", committed.nth);
    let (mut cases, mut points) = (Vec::new(), BTreeSet::new());
    for first in [World::end_of_first_turn(), &committed, "land-files-moved:1"] {
        let world = World::new();
        world.run_with_fault(&format!("kill@{first}")).assert_code(-9);
        // Up to the start of the new run.
        let recovery: Vec<Moment> = traced(&world).into_iter().take_while(|moment| moment.point != "run-dir").collect();
        reached.extend(recovery.iter().map(|moment| moment.point.clone()));
        cases.extend(selected(recovery, &mut points).into_iter().map(|again| (first, again)));
    }
    let never = |name: &&str| !reached.contains(*name) && !ELSEWHERE.contains(name);
    let never: Vec<&str> = Point::ALL.iter().map(|point| point.name()).filter(never).collect();
    assert!(never.is_empty(), "no run and no recovery of this matrix reaches {never:?}");
    in_parallel(&thinned(cases), THREADS, |(first, again)| {
        let world = World::new();
        world.run_with_fault(&format!("kill@{first}")).assert_code(-9);
        world.run_with_fault(&format!("kill@{}:{}", again.point, again.nth)).assert_code(-9);
        world.assert_ends_as_undisturbed();
    });
}

#[test]
fn a_run_that_was_killed_before_it_began_does_not_hide_what_the_one_before_it_owes() {
    // Just before the run finishes: the last story is committed, but its progress is not.
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
        world.assert_ends_as_undisturbed();
    }
}
