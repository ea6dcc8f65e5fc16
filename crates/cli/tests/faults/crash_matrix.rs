//! `kill -9` at every point, in the run and in the recovery, and at random instants: the next run ends as an undisturbed one.

use std::collections::{BTreeMap, BTreeSet};

use crate::world::{World, in_parallel};

pub(crate) const THREADS: usize = 3;

/// A point that was reached, for the n-th time, and around what.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment {
    pub(crate) point: String,
    pub(crate) nth: usize,
    effect: String,
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

fn one_of_each_kind(all: &[Moment]) -> Vec<Moment> {
    let mut seen = BTreeSet::new();
    all.iter().filter(|m| seen.insert((&m.effect, &m.before, &m.point, &m.after))).cloned().collect()
}

#[test]
fn killed_at_any_point_the_next_run_ends_as_an_undisturbed_one() {
    let undisturbed = World::new();
    undisturbed.run_with_fault("trace=../tmp/trace").assert_code(0);
    undisturbed.assert_sound();
    let expected = undisturbed.look();
    let all = moments(&undisturbed.sandbox.read("../tmp/trace"));
    let kinds = one_of_each_kind(&all);
    eprintln!("{} moments, {} kinds", all.len(), kinds.len());
    let t = std::time::Instant::now();
    in_parallel(&all, THREADS, |moment| {
        let world = World::new();
        world.run_with_fault(&format!("kill@{}:{}", moment.point, moment.nth)).assert_code(-9);
        let output = world.run();
        output.assert_code(0);
        world.assert_sound();
        assert_eq!(world.look(), expected, "{}", output.transcript());
    });
    eprintln!("{:?}", t.elapsed());
}
