//! Every verification rule on every surface. A single engine judges them all, so the same work must get the same result wherever it is
//! judged; if a result differs or does not exist, the table says why.
//!
//! `VERDONE_PARITY=WORD` runs only the rules with this word in their names.

mod case;
mod observed;
mod page;
mod project;
mod rules;
mod surfaces;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use serde_json::Value;
use verdone_core::verify::{Doubt, Failure, Note, Surface};
use verdone_testkit::assert_block;

use rules::{Cell, RULES, Rule};
use surfaces::judge_on;

/// A run waits for its processes as much as it computes.
const AT_ONCE: usize = 3;

/// The problem with a cell, if it differs from the table.
fn fault(rule: &Rule, surface: Surface, cell: &Cell) -> Option<String> {
    let seen = catch_unwind(AssertUnwindSafe(|| judge_on(surface, &(rule.case)())));
    let wrong = match seen {
        Ok(seen) => seen.differs_from(rule, cell)?,
        Err(panic) => panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "it panicked, see above".to_owned()),
    };
    Some(format!("{} on {}: {wrong}", rule.name, page::name_of(surface)))
}

#[test]
fn every_rule_gives_the_same_answer_on_every_surface() {
    let (started, wanted) = (Instant::now(), std::env::var("VERDONE_PARITY").unwrap_or_default());
    let due = RULES.iter().filter(|rule| rule.name.contains(&wanted));
    let cells: Vec<(&Rule, Surface, &Cell)> = due
        .flat_map(|rule| Surface::ALL.into_iter().zip(&rule.cells).map(move |(surface, cell)| (rule, surface, cell)))
        .collect();
    let (tried, not): (Vec<_>, Vec<_>) = cells.into_iter().partition(|(.., cell)| cell.fate().is_some());
    // The slowest ones start first: they begin with a run.
    let mut order = tried.clone();
    order.sort_by_key(|(_, surface, _)| !matches!(surface, Surface::Accept | Surface::AuditRerun));
    let open = Mutex::new(order.into_iter());
    let next = || open.lock().unwrap().next();
    let one = |(rule, surface, cell): (&Rule, Surface, &Cell)| fault(rule, surface, cell);
    let faults: Vec<String> = thread::scope(|scope| {
        let work = || std::iter::from_fn(next).filter_map(one).collect::<Vec<_>>();
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    // Not `eprintln`, which the harness hides when a test passes.
    let _ = writeln!(
        std::io::stderr(),
        "parity: {} cells tried in {:.0?}, {} not applicable, {} wrong",
        tried.len(),
        started.elapsed(),
        not.len(),
        faults.len()
    );
    assert!(!tried.is_empty(), "no rule has {wanted:?} in its name");
    assert!(faults.is_empty(), "{} of {} cells are wrong:\n{}", faults.len(), tried.len(), faults.join("\n"));
}

/// The names of an enum of reasons, as spelled in JSON.
fn names(schema: &schemars::Schema) -> BTreeSet<String> {
    let all = schema.as_value()["oneOf"].as_array().unwrap();
    let name = |one: &Value| one["properties"]["reason"]["const"].as_str().unwrap().to_owned();
    all.iter().map(name).collect()
}

#[test]
fn every_failure_and_every_doubt_has_a_rule() {
    let needed: BTreeSet<String> =
        names(&schemars::schema_for!(Failure)).union(&names(&schemars::schema_for!(Doubt))).cloned().collect();
    let had: BTreeSet<String> = RULES.iter().map(|rule| rule.reason.to_owned()).collect();
    let forgotten: Vec<&String> = needed.difference(&had).collect();
    assert!(forgotten.is_empty(), "no rule of the table is about {forgotten:?}");
    let known: BTreeSet<String> = needed.union(&names(&schemars::schema_for!(Note))).cloned().collect();
    let unknown: Vec<&String> = had.difference(&known).collect();
    assert!(unknown.is_empty(), "the engine has no such reasons: {unknown:?}");
    let rules: BTreeSet<&str> = RULES.iter().map(|rule| rule.name).collect();
    assert_eq!(rules.len(), RULES.len(), "two rules have the same name");
}

#[test]
fn the_page_on_rules_has_the_table() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rules.md");
    assert_block(page, "parity", &page::table());
}
