//! Where checks run: a fresh workspace for each set of checks, with exactly the files of a tree.

use std::path::Path;

use verdone_core::check::Check;
use verdone_core::config::Config;
use verdone_core::id::Oid;
use verdone_core::redact::Redactor;
use verdone_core::update::{Reporter, Speaker, Update};
use verdone_core::verify::CheckResult;

use super::VerifyError;
use crate::check_runner::{CheckContext, CheckMoment, Ways, run_checks};
use crate::clock::Stopwatch;
use crate::git::Git;
use crate::process::{EnvPlan, Moment};
use crate::signal::Signals;
use crate::site::ways;
use crate::workspace::{CheckNeeds, CheckPlace, KeptCache, Start, Workspaces};

/// What the checks of one verification share.
#[derive(Debug)]
pub struct Bench<'a> {
    pub git: &'a Git,
    pub spaces: &'a mut Workspaces,
    /// What git calls HEAD there.
    pub head: &'a Oid,
    pub config: &'a Config,
    /// Gets the outputs, below `checks/`.
    pub run_dir: &'a Path,
    /// Checks that ran so far: they number the kept outputs.
    pub number: &'a mut u32,
    /// A variable that every check gets, and by which its processes are found.
    pub mark: (&'a str, &'a str),
    pub redactor: &'a Redactor,
    pub signals: &'a Signals,
    pub clock: Stopwatch,
    pub place: BenchPlace,
}

/// The workspace that is open on a bench. Checks of one tree share it, so that a later stage finds what an earlier one built.
#[derive(Debug, Default)]
pub struct BenchPlace {
    needs: CheckNeeds,
    open: Option<(Oid, CheckPlace)>,
    /// The tree whose build output is wanted later.
    wanted: Option<Oid>,
    built: Option<(Oid, KeptCache)>,
}

impl BenchPlace {
    /// One without anything that was built before: a poisoned cache proves nothing.
    pub fn cold() -> Self {
        Self { needs: CheckNeeds { start: Start::Cold }, ..Self::default() }
    }

    /// Keeps what the checks of this tree build.
    pub fn want_built(&mut self, tree: &Oid) {
        self.wanted = Some(tree.clone());
    }

    /// What was built, and from which tree.
    pub fn take_built(&mut self) -> Option<(Oid, KeptCache)> {
        self.built.take()
    }
}

impl Bench<'_> {
    /// Runs checks on a tree, in a workspace that no agent wrote to.
    pub fn run(&mut self, tree: &Oid, checks: &[Check], reporter: &mut dyn Reporter) -> Result<Vec<CheckResult>, VerifyError> {
        if checks.is_empty() {
            return Ok(Vec::new());
        }
        if self.place.open.as_ref().is_none_or(|(open, _)| open != tree) {
            self.close();
            let place = self.spaces.checks_on(self.git, tree, self.head, self.place.needs)?;
            self.place.open = Some((tree.clone(), place));
        }
        let Some((_, place)) = &self.place.open else { return Ok(Vec::new()) };
        let env: EnvPlan = place.env.clone().with(self.mark.0, self.mark.1);
        let context = CheckContext {
            cwd: &place.cwd,
            written: Some(&place.written),
            inside: place.inside.as_ref(),
            run_dir: self.run_dir,
            number: *self.number + 1,
            env,
            cap: self.config.limits.output_bytes,
            grace: self.config.limits.grace.duration(),
            redactor: self.redactor,
            ways: Ways { keep_going: true, ..ways(&self.config.gates) },
        };
        let clock = self.clock;
        let results = run_checks(checks, &context, self.signals, &mut |moment| show(reporter, clock, &moment));
        let results = results.map_err(VerifyError::Output)?;
        *self.number += results.len() as u32;
        Ok(results)
    }

    /// Ends the open workspace.
    pub fn close(&mut self) {
        let Some((tree, place)) = self.place.open.take() else { return };
        if self.place.wanted.as_ref() == Some(&tree)
            && let Some(built) = place.keep(self.git)
        {
            self.place.built = Some((tree, built));
        }
    }
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
