//! Runs a story's recorded checks again, on a clean checkout of its commit.
//!
//! A note may come from anywhere: what it calls a command is run only where the user's own plan or settings have the same one, a run
//! of here ran it, or the user said so.

mod own_commands;

use std::collections::{HashMap, HashSet};
use std::io;

use tempfile::TempDir;
use verdone_core::audit::{Audit, Audited, Rerun, RerunOutcome};
use verdone_core::check::{Check, CheckOutcome, CheckRun, CommandSpec, Terms};
use verdone_core::config::Config;
use verdone_core::evidence::NotedCheck;
use verdone_core::id::Oid;
use verdone_core::redact::Redactor;

use crate::approval::Approvals;
use crate::check_runner::{CheckContext, Guarded, Ways, redacted, run_check};
use crate::clean_tree::{CleanError, CleanTree};
use crate::git::{Git, GitError};
use crate::plan_file::{self, PlanFile, PlanRequest};
use crate::preflight;
use crate::process::{self, RUN_VARIABLE};
use crate::project::Project;
use crate::run::freeze;
use crate::signal::Signals;
use crate::site;
use crate::store::Store;
use own_commands::own_commands;

#[derive(Debug, thiserror::Error)]
pub enum RerunError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Clean(#[from] CleanError),
    #[error("there is no folder for what checks say: {0}")]
    Outputs(io::Error),
    #[error("a check cannot be run again: {0}")]
    Check(io::Error),
}

/// The commands that may be run again.
#[derive(Debug)]
pub struct Allowed {
    checks: Vec<Check>,
    /// What runs of here ran: a `--check` is nowhere else, and a plan may have been edited since.
    ran: HashSet<CommandSpec>,
    config: Config,
    redactor: Redactor,
    /// The user accepts whatever the notes say.
    everything: bool,
}

impl Allowed {
    /// The gates, the checks of the plan's stories as they are now, and what runs of here ran. A plan that cannot be read, or that
    /// an agent wrote and nobody approved, allows nothing; nor does a journal that came with the repository.
    pub fn of(project: &Project, git: &Git, plan: &PlanRequest, config: Config, everything: bool) -> Self {
        let mut checks = site::gates(&config);
        let plan = plan_file::find(plan).ok().and_then(|at| PlanFile::open(at).ok());
        let approved = |plan: &PlanFile| {
            let name = site::shown(plan.path(), &project.root);
            Approvals::read(&project.root)
                .is_ok_and(|known| preflight::approval(&known, &name, || plan.document().fingerprint()).is_none())
        };
        if let Some(plan) = plan.filter(approved) {
            checks.extend(freeze(plan.plan(), &config, &project.root).into_values().flatten());
        }
        let ran = own_commands(git, &Store::of(&project.root));
        Self { checks, ran, config, redactor: process::redactor_from_environment(&[]), everything }
    }

    /// What to run for a proof, if it may run.
    fn check(&self, proof: &NotedCheck) -> Option<Check> {
        let same = |check: &&Check| redacted(&check.command, &self.redactor) == proof.command;
        let as_noted = || {
            let (name, origin, command) = (proof.name.clone(), proof.origin.clone(), proof.command.clone());
            Check { name, origin, command, timeout: self.config.limits.check_time, terms: Terms::default() }
        };
        let may_run = || self.everything || self.ran.contains(&proof.command);
        self.checks.iter().find(same).cloned().or_else(|| may_run().then(as_noted))
    }
}

/// Runs the checks of every story that has evidence. `on` hears of each before it runs. An interrupt ends it with what is known, and
/// what was not run is told.
pub fn rerun(
    audit: &mut Audit,
    project: &Project,
    allowed: &Allowed,
    signals: &Signals,
    on: &mut dyn FnMut(&Audited, &Check),
) -> Result<(), RerunError> {
    process::adopt_orphans();
    let guarded = Guarded::begin(allowed.config.limits.grace.duration());
    let git = guarded.git(Git::open(&project.root)?);
    let mut seen = HashMap::new();
    for story in audit.stories.clone() {
        if signals.requested().is_some() {
            audit.rerun(&story.commit, story.checks.iter().map(not_reached).collect());
            continue;
        }
        let runs = Runs { git: &git, project, allowed, guarded: &guarded, signals, seen: &mut seen }.of(&story, on)?;
        audit.rerun(&story.commit, runs);
    }
    Ok(())
}

/// A check that an interrupt came before.
fn not_reached(proof: &NotedCheck) -> Rerun {
    Rerun {
        name: proof.name.clone(),
        command: proof.command.display(),
        outcome: RerunOutcome::Interrupted,
        text: "was not run".to_owned(),
        duration_ms: 0,
    }
}

/// Where a story's checks run again, and where what they say goes.
struct Place {
    tree: CleanTree,
    outputs: TempDir,
}

struct Runs<'a> {
    git: &'a Git,
    project: &'a Project,
    allowed: &'a Allowed,
    guarded: &'a Guarded,
    signals: &'a Signals,
    /// The same command on the same tree is run once.
    seen: &'a mut HashMap<(Oid, CommandSpec), Rerun>,
}

impl Runs<'_> {
    fn of(&mut self, story: &Audited, on: &mut dyn FnMut(&Audited, &Check)) -> Result<Vec<Rerun>, RerunError> {
        let mut place: Option<Place> = None;
        let mut runs = Vec::new();
        for (at, proof) in story.checks.iter().enumerate() {
            let answer = |outcome, text: String, duration_ms| Rerun { outcome, text, duration_ms, ..not_reached(proof) };
            let rest = || story.checks[at + 1..].iter().map(not_reached);
            let Some(check) = self.allowed.check(proof) else {
                runs.push(answer(RerunOutcome::NotAllowed, "was not run".to_owned(), 0));
                continue;
            };
            let key = (story.tree.clone(), check.command.clone());
            if let Some(known) = self.seen.get(&key) {
                runs.push(Rerun { name: proof.name.clone(), ..known.clone() });
                continue;
            }
            let place = match &mut place {
                Some(place) => &*place,
                none => match self.place(story) {
                    Ok(made) => &*none.insert(made),
                    Err(RerunError::Clean(CleanError::Interrupted)) => {
                        runs.push(not_reached(proof));
                        runs.extend(rest());
                        break;
                    }
                    Err(error) => return Err(error),
                },
            };
            on(story, &check);
            let run = self.run(&check, place)?;
            let (outcome, run) = match run.outcome {
                CheckOutcome::Passed => (RerunOutcome::Passed, run),
                CheckOutcome::Interrupted => (RerunOutcome::Interrupted, run),
                CheckOutcome::Failed { .. }
                | CheckOutcome::Signalled { .. }
                | CheckOutcome::TimedOut { .. }
                | CheckOutcome::Unknown { .. } => self.once_more(&check, place, run)?,
            };
            let run = answer(outcome, run.outcome.words(), run.duration_ms);
            let interrupted = outcome == RerunOutcome::Interrupted;
            runs.push(run.clone());
            if interrupted {
                runs.extend(rest());
                break;
            }
            self.seen.insert(key, run);
        }
        Ok(runs)
    }

    fn place(&self, story: &Audited) -> Result<Place, RerunError> {
        let outputs = tempfile::Builder::new().prefix("verdone-audit-").tempdir().map_err(RerunError::Outputs)?;
        let tree = CleanTree::make(self.git, &story.commit, &self.project.root, &self.allowed.config.clean, self.signals)?;
        Ok(Place { tree, outputs })
    }

    /// A check that does not pass gets a second chance, which is told.
    fn once_more(&self, check: &Check, place: &Place, first: CheckRun) -> Result<(RerunOutcome, CheckRun), RerunError> {
        let second = self.run(check, place)?;
        Ok(match second.outcome {
            CheckOutcome::Passed => (RerunOutcome::Flaky, second),
            CheckOutcome::Interrupted => (RerunOutcome::Interrupted, second),
            CheckOutcome::Failed { .. }
            | CheckOutcome::Signalled { .. }
            | CheckOutcome::TimedOut { .. }
            | CheckOutcome::Unknown { .. } => (RerunOutcome::Failed, first),
        })
    }

    fn run(&self, check: &Check, place: &Place) -> Result<CheckRun, RerunError> {
        let limits = &self.allowed.config.limits;
        let context = CheckContext {
            written: None,
            inside: None,
            cwd: place.tree.root(),
            run_dir: place.outputs.path(),
            number: 1,
            env: self.guarded.env().with(RUN_VARIABLE, "audit"),
            cap: limits.output_bytes,
            grace: limits.grace.duration(),
            redactor: &self.allowed.redactor,
            ways: Ways::default(),
        };
        let result = run_check(check, &context, self.signals, &mut |_| {}).map_err(RerunError::Check)?;
        Ok(result.run)
    }
}
