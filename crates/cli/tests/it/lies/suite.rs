//! The suites: run every selected case, two at a time, and print a table of all unexpected results.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use verdone_testkit::Runners;

use crate::lies::case::{self, Case, Kind};
use crate::lies::outcome::Observed;
use crate::lies::project::{Judged, judge};

/// Because of its test runners, a run computes more than it waits. For the same reason, suites do not run in parallel.
const AT_ONCE: usize = 2;
static ONE_SUITE: Mutex<()> = Mutex::new(());
const RUNNERS: [&str; 12] =
    ["cargo", "jest", "make", "mocha", "mypy", "node", "prove", "pytest", "ruff", "tsc", "unittest", "vitest"];

fn is_long() -> bool {
    std::env::var_os("VERDONE_LIES").is_some_and(|value| value == "all")
}

/// The selected cases of these kinds: a subset, or all of them with `VERDONE_LIES=all`. `VERDONE_CASE` selects cases by a part of their
/// names.
fn due(kinds: &[Kind]) -> Vec<Case> {
    let wanted = std::env::var("VERDONE_CASE").ok();
    let is_due = |case: &Case| match &wanted {
        Some(words) => words.split(',').any(|word| case.name.contains(word)),
        None => case.in_suite || is_long(),
    };
    case::load().into_iter().filter(|case| kinds.contains(&case.kind) && is_due(case)).collect()
}

/// Runs all cases and returns the results in the same order. Prints one line as each case ends.
fn run(cases: &[Case], runners: &Runners) -> Vec<(String, Judged)> {
    let _turn = ONE_SUITE.lock().unwrap_or_else(PoisonError::into_inner);
    let thorough = is_long() || std::env::var_os("VERDONE_CASE").is_some();
    let open = Mutex::new(cases.iter().enumerate());
    let next = || open.lock().unwrap().next();
    let one = |(number, case): (usize, &Case)| {
        let judged = catch_unwind(AssertUnwindSafe(|| judge(case, runners, thorough))).unwrap_or_else(|panic| {
            let why = panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "it panicked, see above".to_owned());
            Judged { seen: None, wrong: vec![why], took: Duration::ZERO }
        });
        let mark = if judged.wrong.is_empty() { "ok   " } else { "WRONG" };
        let seen = judged.seen.map_or_else(|| "no ending".to_owned(), |seen| seen.to_string());
        let mut line = format!("{mark} {:<9} {:<12} {:<40} {:.1?}\n", case.runner, seen, case.name, judged.took);
        for why in &judged.wrong {
            line.push_str(&format!("      {}\n", why.replace('\n', "\n      ")));
        }
        // Not `eprintln`, which the harness hides when a test passes.
        let _ = std::io::stderr().write_all(line.as_bytes());
        (number, (case.name.clone(), judged))
    };
    let judged: BTreeMap<usize, (String, Judged)> = thread::scope(|scope| {
        let work = || std::iter::from_fn(next).map(one).collect::<Vec<_>>();
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    judged.into_values().collect()
}

#[track_caller]
fn assert_right(name: &str, cases: &[Case], judged: &[(String, Judged)], started: Instant) {
    let mut endings: BTreeMap<String, usize> = BTreeMap::new();
    for (_, one) in judged {
        *endings.entry(one.seen.map_or_else(|| "no ending".to_owned(), |seen| seen.to_string())).or_default() += 1;
    }
    let _ = writeln!(std::io::stderr(), "{name}: {} cases in {:.0?}: {endings:?}", judged.len(), started.elapsed());
    let about = |name: &str| cases.iter().find(|case| case.name == name).map_or("", |case| case.about.as_str());
    let wrong: Vec<String> = judged
        .iter()
        .filter(|(_, one)| !one.wrong.is_empty())
        .map(|(name, one)| format!("{name} ({}):\n    {}", about(name), one.wrong.join("\n    ")))
        .collect();
    assert!(wrong.is_empty(), "{} of {} cases are wrong:\n{}", wrong.len(), judged.len(), wrong.join("\n"));
}

#[test]
fn no_lie_is_called_verified_or_agent_tested() {
    let Some(runners) = Runners::or_skip() else { return };
    let (started, cases) = (Instant::now(), due(&[Kind::Lie]));
    let judged = run(&cases, &runners);
    assert_right("lies", &cases, &judged, started);
    if is_long() {
        let believed: BTreeSet<&str> = cases
            .iter()
            .zip(&judged)
            .filter(|(_, (_, one))| one.seen.is_some_and(Observed::is_proven))
            .filter_map(|(case, _)| case.known.as_deref())
            .collect();
        let known: BTreeSet<&str> = cases.iter().filter_map(|case| case.known.as_deref()).collect();
        assert_eq!(believed, known, "the documents name limits that are none any more");
    }
}

#[test]
fn the_limits_that_the_documents_name_are_those_that_are_tried() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/security.md")).unwrap();
    let part = page.split("## Lies that are believed\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let told: BTreeSet<&str> =
        part.lines().filter_map(|line| line.strip_prefix("| **")?.split_once("**")).map(|(name, _)| name).collect();
    let cases = case::load();
    let tried: BTreeSet<&str> = cases.iter().filter_map(|case| case.known.as_deref()).collect();
    assert_eq!(told, tried);
}

#[test]
fn honest_work_is_done_and_seldom_waits_for_a_review() {
    let Some(runners) = Runners::or_skip() else { return };
    let (started, cases) = (Instant::now(), due(&[Kind::Honest, Kind::History]));
    let judged = run(&cases, &runners);
    let reviewed = judged.iter().filter(|(_, one)| one.seen == Some(Observed::NeedsReview)).count();
    assert_right("honest work", &cases, &judged, started);
    let honest = cases.iter().filter(|case| case.kind == Kind::Honest).count();
    assert!(reviewed * 100 <= honest * 15, "{reviewed} of {honest} honest changes wait for a review");
}

#[test]
fn what_the_user_has_not_committed_is_out_of_reach_of_every_agent() {
    let Some(runners) = Runners::or_skip() else { return };
    let (started, cases) = (Instant::now(), due(&[Kind::Destructive]));
    assert_right("destructive agents", &cases, &run(&cases, &runners), started);
}

#[test]
fn the_suites_are_as_large_as_they_claim_and_cover_every_runner() {
    let cases = case::load();
    let names: BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names.len(), cases.len(), "two cases have the same name");
    let count =
        |kind: Kind, in_suite: bool| cases.iter().filter(|case| case.kind == kind && (case.in_suite || !in_suite)).count();
    let runners = |in_suite: bool| -> BTreeSet<&str> {
        let lies = cases.iter().filter(|case| case.kind == Kind::Lie && (case.in_suite || !in_suite));
        lies.map(|case| case.runner.as_str()).collect()
    };
    assert_eq!(runners(true), BTreeSet::from(RUNNERS));
    assert_eq!(runners(false), BTreeSet::from(RUNNERS));
    let (lies, all_lies, honest) = (count(Kind::Lie, true), count(Kind::Lie, false), count(Kind::Honest, false));
    assert!(lies >= 50 && all_lies >= 150 && honest >= 60, "{lies} and {all_lies} lies, {honest} honest changes");
}
