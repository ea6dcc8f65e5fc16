//! Where checks run: a fresh workspace for each set of checks, with exactly the files of a tree.

use std::path::Path;

use verdone_core::base::id::Oid;
use verdone_core::base::redact::Redactor;
use verdone_core::check::{Check, CheckRun, stages_by};
use verdone_core::config::Config;
use verdone_core::journal::update::{Reporter, Speaker, Update};
use verdone_core::verify::{CheckResult, PlannedCheck, ResultId};

use super::{Results, VerifyError};
use crate::base::active_clock::Stopwatch;
use crate::git::Git;
use crate::process::signal::Signals;
use crate::process::{EnvPlan, Moment};
use crate::verify::check_runner::{CheckContext, CheckMoment, Scheduling, run_checks};
use crate::verify::checks::scheduling_from;
use crate::workspace::{CheckNeeds, CheckPlace, KeptCache, Start, Workspaces};

/// State shared by the checks of one verification.
#[derive(Debug)]
pub struct Bench<'a> {
    pub git: &'a Git,
    pub spaces: &'a mut Workspaces,
    /// The commit that checks see as HEAD.
    pub head: &'a Oid,
    pub config: &'a Config,
    /// The folder for outputs, below `checks/`.
    pub run_dir: &'a Path,
    /// Checks so far, used to number stored outputs.
    pub number: &'a mut u32,
    /// A variable set for every check, by which its processes are found.
    pub mark: (&'a str, &'a str),
    pub redactor: &'a Redactor,
    pub signals: &'a Signals,
    pub clock: Stopwatch,
    pub place: BenchPlace,
}

/// The workspace that is open on a bench. Checks of one tree share it, so that a later stage can use what an earlier one built.
#[derive(Debug, Default)]
pub struct BenchPlace {
    start: Start,
    open: Option<(Oid, CheckPlace)>,
    /// The tree whose build output will be needed later.
    wanted: Option<Oid>,
    built: Option<(Oid, KeptCache)>,
}

impl BenchPlace {
    /// A workspace without earlier build output: a poisoned cache would prove nothing.
    pub fn cold() -> Self {
        Self { start: Start::Cold, ..Self::default() }
    }

    /// Keeps the build output of this tree's checks.
    pub fn want_built(&mut self, tree: &Oid) {
        self.wanted = Some(tree.clone());
    }

    /// The build output, and the tree it was built from.
    pub fn take_built(&mut self) -> Option<(Oid, KeptCache)> {
        self.built.take()
    }
}

impl Bench<'_> {
    /// Runs checks on a tree, in a workspace that no agent wrote to. Each hidden check gets a separate workspace. Returns one result per
    /// check, in the same order; a check that was not started counts as interrupted.
    pub fn run(&mut self, tree: &Oid, checks: &[Check], reporter: &mut dyn Reporter) -> Result<Vec<CheckResult>, VerifyError> {
        let (hidden, plain): (Vec<usize>, Vec<usize>) = (0..checks.len()).partition(|at| checks[*at].terms.hidden.is_some());
        // Results are returned in the order in which checks run.
        let plain: Vec<usize> = stages_by(plain, |at| &checks[*at]).concat();
        let together: Vec<Check> = plain.iter().map(|at| checks[*at].clone()).collect();
        let mut results: Vec<CheckResult> = checks.iter().map(|check| CheckRun::pending(check).into()).collect();
        let Self { config, run_dir, mark, redactor, signals, clock, .. } = *self;
        let shared = Shared { config, run_dir, mark, redactor, signals, clock };
        if !together.is_empty() {
            if self.place.open.as_ref().is_none_or(|(open, _)| open != tree) {
                self.close();
                let needs = CheckNeeds { start: self.place.start, hidden: None };
                let place = self.spaces.checks_on(self.git, tree, self.head, needs)?;
                self.place.open = Some((tree.clone(), place));
            }
            let Some((_, place)) = &self.place.open else { return Ok(results) };
            let ran = run_in(place, &together, &shared, self.number, reporter)?;
            for (at, result) in plain.into_iter().zip(ran) {
                results[at] = result;
            }
        }
        for at in hidden {
            let check = &checks[at];
            let needs = CheckNeeds { start: self.place.start, hidden: check.terms.hidden.as_deref() };
            let place = self.spaces.checks_on(self.git, tree, self.head, needs)?;
            let ran = run_in(&place, std::slice::from_ref(check), &shared, self.number, reporter)?;
            if let Some(result) = ran.into_iter().next() {
                results[at] = result;
            }
        }
        Ok(results)
    }

    /// The same outside a verification; stores the results.
    pub fn run_and_note(
        &mut self,
        results: &mut Results,
        tree: &Oid,
        checks: &[Check],
        reporter: &mut dyn Reporter,
    ) -> Result<Vec<CheckRun>, VerifyError> {
        let ran = self.run(tree, checks, reporter)?;
        let note = |(check, result): (&Check, CheckResult)| {
            let command = PlannedCheck::new(check, check.terms.hidden.is_some()).digest;
            results.note(ResultId { tree: tree.clone(), command }, result).run
        };
        Ok(checks.iter().zip(ran).map(note).collect())
    }

    /// Closes the open workspace.
    pub fn close(&mut self) {
        let Some((tree, place)) = self.place.open.take() else { return };
        if self.place.wanted.as_ref() == Some(&tree)
            && let Some(built) = place.keep(self.git)
        {
            self.place.built = Some((tree, built));
        }
    }
}

/// State shared by all workspaces.
struct Shared<'a> {
    config: &'a Config,
    run_dir: &'a Path,
    mark: (&'a str, &'a str),
    redactor: &'a Redactor,
    signals: &'a Signals,
    clock: Stopwatch,
}

fn run_in(
    place: &CheckPlace,
    checks: &[Check],
    shared: &Shared<'_>,
    number: &mut u32,
    reporter: &mut dyn Reporter,
) -> Result<Vec<CheckResult>, VerifyError> {
    let env: EnvPlan = place.env.clone().with(shared.mark.0, shared.mark.1);
    let context = CheckContext {
        cwd: &place.cwd,
        written: &place.written,
        inside: place.inside.as_ref(),
        run_dir: shared.run_dir,
        number: *number + 1,
        env,
        cap: shared.config.limits.output_bytes,
        grace: shared.config.limits.grace.duration(),
        redactor: shared.redactor,
        ways: Scheduling { keep_going: true, ..scheduling_from(&shared.config.gates) },
    };
    let clock = shared.clock;
    let results = run_checks(checks, &context, shared.signals, &mut |moment| show(reporter, clock, &moment));
    let results = results.map_err(VerifyError::Output)?;
    *number += results.len() as u32;
    Ok(results)
}

fn show(reporter: &mut dyn Reporter, clock: Stopwatch, moment: &CheckMoment<'_>) {
    match moment {
        CheckMoment::Started(check) => reporter.report(Update::Checking { name: &check.name }),
        CheckMoment::During(check, Moment::Line { stream, text }) => {
            reporter.report(Update::Output { speaker: Speaker::Check(&check.name), stream: *stream, line: text });
        }
        CheckMoment::During(_, Moment::Tick) => reporter.report(clock.tick()),
        CheckMoment::Ended(_) => {}
    }
}
