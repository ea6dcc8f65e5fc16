//! Verifies a story's commit again, with the checks named in its evidence.
//!
//! A note may come from anywhere. Its commands run only if the user's plan or settings
//! contain the same command, a local run has run it, or the user allowed it.

mod own_commands;

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::path::Path;

use verdone_core::base::id::Oid;
use verdone_core::base::redact::Redactor;
use verdone_core::check::{Check, CheckOptions, CheckOrigin, CheckRun, CommandSpec};
use verdone_core::config::Config;
use verdone_core::evidence::audit::{Audit, Audited, Rejudged, Rerun, RerunOutcome};
use verdone_core::evidence::{Evidence, NotedCheck};
use verdone_core::journal::update::{Reporter, Update};
use verdone_core::protect::{check_scripts, files_read_by};
use verdone_core::verify::{CheckState, JobStory, Outcome, Proof, Surface, Tree, VerifyJob, changes_of};

use crate::base::active_clock::Stopwatch;
use crate::git::{Git, GitError, PathSet};
use crate::process;
use crate::process::signal::Signals;
use crate::project::Project;
use crate::project::approval::Approvals;
use crate::project::approval::not_approved;
use crate::project::plan_file::{self, PlanFile, PlanRequest};
use crate::project::shown;
use crate::run::freeze;
use crate::store::Store;
use crate::verify::check_runner::{Guarded, redacted};
use crate::verify::checks;
use crate::verify::{Bench, BenchPlace, Results, Trees, TreesRequest, Verification, VerifyError};
use crate::workspace::{WorkspaceError, WorkspaceRequest, Workspaces};
use own_commands::own_commands;

#[derive(Debug, thiserror::Error)]
pub enum RerunError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    #[error(transparent)]
    Verify(#[from] VerifyError),
    #[error("cannot create a folder for check output: {0}")]
    Outputs(io::Error),
}

/// The commands that may be run again.
#[derive(Debug)]
pub struct Allowed {
    checks: Vec<Check>,
    /// Commands that local runs have run: a `--check` exists nowhere else, and a plan may have been edited since.
    ran: HashSet<CommandSpec>,
    /// The plan and its related files, in which Verdone writes marks.
    plan_files: PathSet,
    config: Config,
    redactor: Redactor,
    /// The user allows all commands in the notes.
    everything: bool,
}

impl Allowed {
    /// Allows the gates, the current checks of the plan's stories, and the commands of local runs. A plan that cannot be read allows
    /// nothing; neither does an unapproved plan written by an agent, nor a journal that came with the repository.
    pub fn for_project(project: &Project, git: &Git, plan: &PlanRequest, config: Config, everything: bool) -> Self {
        let mut checks = checks::gates(&config);
        let plan = plan_file::find(plan).ok().and_then(|at| PlanFile::open(at).ok());
        let plan_files = plan.iter().flat_map(|plan| plan.location().files());
        let plan_files = plan_files.filter_map(|file| git.repo_path(&file)).collect();
        let approved = |plan: &PlanFile| {
            let name = shown(plan.path(), &project.root);
            Approvals::read(&project.root)
                .is_ok_and(|known| not_approved(&known, &name, || plan.document().fingerprint()).is_none())
        };
        if let Some(plan) = plan.filter(approved) {
            checks.extend(freeze(plan.plan(), &config, &project.root).into_values().flatten());
        }
        let ran = own_commands(git, &Store::new(&project.root));
        Self { checks, ran, plan_files, config, redactor: process::redactor_from_environment(&[]), everything }
    }

    /// Returns the check to run for a noted one, if allowed: today's command with the parameters from the evidence.
    fn check(&self, noted: &NotedCheck) -> Option<Check> {
        let same = |check: &&Check| redacted(&check.command, &self.redactor) == noted.command;
        let may_run = || self.everything || self.ran.contains(&noted.command);
        let (command, timeout, terms) = match self.checks.iter().find(same) {
            Some(known) => (known.command.clone(), known.timeout, known.terms.clone()),
            None if may_run() => (noted.command.clone(), self.config.limits.check_time, CheckOptions::default()),
            None => return None,
        };
        let terms = CheckOptions { advisory: noted.advisory, when: CheckOptions::default().when, ..terms };
        Some(Check { name: noted.name.clone(), origin: noted.origin.clone(), command, timeout, terms })
    }
}

/// Verifies every story that has evidence. Calls `on` with the name of each check before it runs. An interrupt ends the rerun with the
/// results so far and lists the checks that did not run.
pub fn rerun(
    audit: &mut Audit,
    project: &Project,
    allowed: &Allowed,
    signals: &Signals,
    on: &mut dyn FnMut(&Audited, &str),
) -> Result<(), RerunError> {
    process::adopt_orphans();
    let guarded = Guarded::begin(allowed.config.limits.grace.duration());
    let git = guarded.git(Git::open(&project.root)?);
    let outputs = tempfile::Builder::new().prefix("verdone-audit-").tempdir().map_err(RerunError::Outputs)?;
    let name = format!("audit-{}", guarded.mark().1);
    let (config, objects) = (&allowed.config, git.object_folders()?);
    let mut spaces = Workspaces::new(&WorkspaceRequest { project, config, run: &name, run_dir: outputs.path(), objects });
    spaces.leave_settings_of_trees();
    let mut again = Rerunner {
        git: &git,
        folder: git.repo_path(&project.root).map(|folder| folder.to_string()).unwrap_or_default(),
        allowed,
        mark: guarded.mark(),
        signals,
        outputs: outputs.path(),
        number: 0,
        results: Results::default(),
    };
    let mut is_open = false;
    for story in audit.stories.clone() {
        if story.checks.is_empty() {
            continue;
        }
        if signals.requested().is_some() {
            audit.rerun(&story.commit, story.checks.iter().map(not_reached).collect(), None);
            continue;
        }
        if !is_open && story.checks.iter().any(|noted| allowed.check(noted).is_some()) {
            spaces.open(&git)?;
            is_open = true;
        }
        let (reruns, now) = again.verify(&story, &mut spaces, on)?;
        audit.rerun(&story.commit, reruns, now.as_ref());
    }
    Ok(())
}

/// The result for a check that did not run because of an interrupt.
fn not_reached(noted: &NotedCheck) -> Rerun {
    Rerun {
        name: noted.name.clone(),
        command: noted.command.display(),
        outcome: RerunOutcome::Interrupted,
        text: "was not run".to_owned(),
        duration_ms: 0,
    }
}

/// State shared by all stories. The same command runs only once per tree.
struct Rerunner<'a> {
    git: &'a Git,
    /// The project's path below the top of the repository.
    folder: String,
    allowed: &'a Allowed,
    mark: (&'a str, &'a str),
    signals: &'a Signals,
    outputs: &'a Path,
    number: u32,
    results: Results,
}

impl Rerunner<'_> {
    fn verify(
        &mut self,
        story: &Audited,
        spaces: &mut Workspaces,
        on: &mut dyn FnMut(&Audited, &str),
    ) -> Result<(Vec<Rerun>, Option<Rejudged>), RerunError> {
        let checks: Vec<Option<Check>> = story.checks.iter().map(|noted| self.allowed.check(noted)).collect();
        let known: Vec<Check> = checks.iter().flatten().cloned().collect();
        let (job, trees) = self.job(story, known)?;
        let is_compared = trees.is_some();
        let mut verification = Verification::new(job, trees, &self.results);
        if checks.iter().any(Option::is_some) {
            let mut bench = Bench {
                git: self.git,
                spaces,
                head: &story.commit,
                config: &self.allowed.config,
                run_dir: self.outputs,
                number: &mut self.number,
                mark: self.mark,
                redactor: &self.allowed.redactor,
                signals: self.signals,
                clock: Stopwatch::start(),
                place: BenchPlace::cold(),
            };
            let mut reporter = Names { story, on };
            verification.advance(&mut bench, &mut self.results, &mut reporter)?;
            // A check that does not pass is retried once. If it passes then, it is flaky.
            if verification.forget_failures() {
                bench.close();
                verification.advance(&mut bench, &mut self.results, &mut reporter)?;
            }
        }
        let report = verification.report();
        let runs = report.runs_on(Tree::Attempt);
        let reruns = story.checks.iter().zip(checks).map(|(noted, check)| answer(noted, check.as_ref(), runs)).collect();
        Ok((reruns, is_compared.then(|| Rejudged::from(&report))))
    }

    /// The job, and the trees if the work can be compared with its base.
    fn job(&self, story: &Audited, checks: Vec<Check>) -> Result<(VerifyJob, Option<Trees>), RerunError> {
        let is_own = |check: &Check| matches!(check.origin, CheckOrigin::Story | CheckOrigin::AgentTest);
        let (mut own, gates): (Vec<Check>, Vec<Check>) = checks.into_iter().partition(is_own);
        for check in &mut own {
            check.origin = CheckOrigin::Story;
        }
        let commands: Vec<&CommandSpec> = own.iter().chain(&gates).map(|check| &check.command).collect();
        let scripts: BTreeSet<String> = check_scripts(commands);
        let looked_at = files_read_by(own.iter().map(|check| &check.command));
        let mut job = VerifyJob::of_gates(Surface::AuditRerun, gates, story.tree.clone());
        job.minimum = Proof::Unchecked;
        let id = story.story.clone().unwrap_or_else(|| story.subject.as_str().into());
        job.story = Some(JobStory::of_checks(id, own));
        let note = self.git.read_note(&story.commit)?;
        let Some(evidence) = note.and_then(|note| Evidence::from_note(note.as_bytes()).ok()) else { return Ok((job, None)) };
        let Some(base) = self.base(&evidence)? else { return Ok((job, None)) };
        // Files that the scope released back then make up the scope now.
        let released = evidence.protected.iter().filter(|change| change.released);
        let scope: Vec<String> = released.filter_map(|change| self.in_project(&change.path)).collect();
        let trees = Trees::compare(&TreesRequest {
            git: self.git,
            settings: &self.allowed.config.protect,
            folder: &self.folder,
            scope: &scope,
            check_scripts: &scripts,
            subjects: &looked_at,
            start: None,
            base: &base,
            attempt: &story.tree,
            ours: &self.allowed.plan_files,
        })?;
        (job.protected, job.autorun) = changes_of(trees.plan());
        job.base = Some(base);
        Ok((job, Some(trees)))
    }

    /// The tree before the work, if the proof can be reproduced. That is not possible for
    /// notes by older rules or for work accepted by a person.
    fn base(&self, evidence: &Evidence) -> Result<Option<Oid>, RerunError> {
        let is_by_rules_of_today = evidence.trees.is_some() && evidence.outcome == Outcome::Done && evidence.accepted.is_none();
        let Some(base) = evidence.base.as_ref().filter(|_| is_by_rules_of_today) else { return Ok(None) };
        Ok(match self.git.commit_named(base.as_str())? {
            Some(commit) => Some(self.git.tree_of(&commit)?),
            None => None,
        })
    }

    fn in_project(&self, path: &str) -> Option<String> {
        if self.folder.is_empty() {
            return Some(path.to_owned());
        }
        path.strip_prefix(self.folder.as_str())?.strip_prefix('/').map(str::to_owned)
    }
}

/// The result for a noted check.
fn answer(noted: &NotedCheck, check: Option<&Check>, runs: &[CheckRun]) -> Rerun {
    if check.is_none() {
        return Rerun { outcome: RerunOutcome::NotAllowed, ..not_reached(noted) };
    }
    let Some(run) = runs.iter().find(|run| run.name == noted.name) else { return not_reached(noted) };
    let outcome = match CheckState::from_run(run) {
        CheckState::Green if run.flaky => RerunOutcome::Flaky,
        CheckState::Green => RerunOutcome::Passed,
        CheckState::Interrupted | CheckState::NotRun => RerunOutcome::Interrupted,
        CheckState::Red | CheckState::Unknown => RerunOutcome::Failed,
    };
    Rerun { outcome, text: CheckState::describe(run), duration_ms: run.duration_ms, ..not_reached(noted) }
}

/// Reports which check starts.
struct Names<'a> {
    story: &'a Audited,
    on: &'a mut dyn FnMut(&Audited, &str),
}

impl Reporter for Names<'_> {
    fn report(&mut self, update: Update<'_>) {
        if let Update::Checking { name } = update {
            (self.on)(self.story, name);
        }
    }
}
