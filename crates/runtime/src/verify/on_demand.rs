//! Verification on demand, without a run: of the current checkout, or of a range of commits.
//!
//! Writes only to `.verdone/cache/`: no mark in the plan, no commit, no journal. Checks run in workspaces, never in the checkout.

mod commit_settings;
mod error;
mod outputs;
mod range;
mod settings;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use verdone_core::base::id::{Oid, StoryId};
use verdone_core::check::{Check, CheckRun, CommandSpec, Stage};
use verdone_core::journal::event::Seal;
use verdone_core::journal::update::Reporter;
use verdone_core::policy::OnScope;
use verdone_core::protect::{check_scripts, files_read_by};
use verdone_core::verify::{
    CommitRange, PlannedCheck, Proof, ResultId, Surface, Tree, Verified, VerifyJob, VerifyReport, changes_of,
};

use crate::base::active_clock::Stopwatch;
use crate::base::digest_cache::KnownFiles;
use crate::base::seal::state_home;
use crate::git::{ChangedPath, Git, PathSet};
use crate::process;
use crate::process::signal::Signals;
use crate::project::{Project, find_git_top};
use crate::verify::check_runner::Guarded;
use crate::verify::checks;
use crate::verify::{Bench, BenchPlace, ResultCache, Results, Trees, TreesRequest, Verification, other_checks};
use crate::workspace::{WorkspaceRequest, Workspaces};

use commit_settings::CommitSettings;
pub use error::VerifyError;
use outputs::Outputs;
use settings::{Inputs, Read, Settings};

/// A request to verify the checkout.
#[derive(Debug, Clone)]
pub struct CheckoutRequest {
    /// A folder inside the project.
    pub root: PathBuf,
    /// Also run this story's own checks.
    pub story: Option<StoryId>,
    /// Run only the gates of this stage.
    pub stage: Option<Stage>,
    /// Use earlier results for the same tree, if the settings allow it.
    pub use_cache: bool,
}

/// A request to verify a range of commits.
#[derive(Debug, Clone)]
pub struct RangeRequest {
    /// A folder inside the project.
    pub root: PathBuf,
    /// The commit to compare the work with. Settings and gates come from there.
    pub base: String,
    /// The last commit of the work. Default: HEAD.
    pub head: Option<String>,
    pub story: Option<StoryId>,
    pub stage: Option<Stage>,
}

/// Verifies the checkout. Reuses known results for the same files.
pub fn verify(ask: &CheckoutRequest, signals: &Signals, reporter: &mut dyn Reporter) -> Result<Verified, VerifyError> {
    let mut scene = Preparation::of_checkout(ask)?;
    let kept = scene.kept(ask.use_cache);
    scene.notes.extend(scene.uncommitted()?);
    scene.verify(kept, signals, reporter)
}

/// Verifies a range of commits. Every check runs.
pub fn verify_range(ask: &RangeRequest, signals: &Signals, reporter: &mut dyn Reporter) -> Result<Verified, VerifyError> {
    Preparation::of_range(ask)?.verify(None, signals, reporter)
}

/// The result for the checkout, if it is fully known. Never runs a check.
pub fn cached(ask: &CheckoutRequest) -> Result<Option<VerifyReport>, VerifyError> {
    let scene = Preparation::of_checkout(ask)?;
    let Some(kept) = scene.kept(ask.use_cache) else { return Ok(None) };
    let results = Results::with_kept(Some(kept));
    let mut verification = scene.begin(&results)?;
    Ok(verification.is_known(&scene.git, &results).then(|| verification.report()))
}

/// The gates of a project.
#[derive(Debug)]
pub struct Listed {
    /// The current work tree.
    pub tree: Oid,
    /// The gates in the order in which they run, with known results for this tree.
    pub gates: Vec<(Check, Option<CheckRun>)>,
}

/// Lists all gates. Runs nothing.
pub fn gates(root: &Path) -> Result<Listed, VerifyError> {
    let ask = CheckoutRequest { root: root.to_owned(), story: None, stage: None, use_cache: true };
    let scene = Preparation::open(&ask)?;
    let results = Results::with_kept(scene.kept(true));
    let tree = scene.subject.attempt.clone();
    let known = |gate: &Check| {
        let question = ResultId { tree: tree.clone(), command: PlannedCheck::new(gate, gate.terms.hidden.is_some()).digest };
        results.kept(&question, gate).map(|result| result.run)
    };
    let gates = scene.asked.gates.iter().map(|gate| (gate.clone(), known(gate))).collect();
    Ok(Listed { tree, gates })
}

/// What to judge.
#[derive(Debug)]
struct Subject {
    surface: Surface,
    /// A tree. `None` if there is nothing to compare the attempt with.
    base: Option<Oid>,
    attempt: Oid,
    /// The commit that checks see as HEAD.
    head: Oid,
    range: Option<CommitRange>,
    /// Files that are not part of the work.
    ours: PathSet,
}

struct Preparation {
    project: Project,
    git: Git,
    asked: Inputs,
    subject: Subject,
    notes: Vec<String>,
}

impl Preparation {
    fn of_checkout(ask: &CheckoutRequest) -> Result<Self, VerifyError> {
        let scene = Self::open(ask)?;
        if scene.asked.is_empty() { Err(VerifyError::Nothing { settings: None }) } else { Ok(scene) }
    }

    fn open(ask: &CheckoutRequest) -> Result<Self, VerifyError> {
        let project = Project::find(&ask.root, &find_git_top(&ask.root)?)?;
        let git = Git::open(&project.root)?;
        let settings = Settings::load(&project, &project.root)?;
        let asked = match settings.ask(ask.story.as_ref(), ask.stage.as_ref())? {
            Read::Found(asked) => *asked,
            Read::NoStory(error) => return Err(error),
        };
        let head = git.commit_named("HEAD")?.ok_or(VerifyError::NoCommit)?;
        let known =
            &mut if asked.config.gates.cache { KnownFiles::open(&project.root, &project.git_top) } else { KnownFiles::default() };
        let now = git.tree_now(asked.config.limits.largest_file(), known)?;
        let base = Some(git.tree_of(&head)?).filter(|base| *base != now.tree);
        // The settings in the checkout apply, committed or not.
        let home = git.repo_path(&project.root.join(crate::project::HOME));
        let ours = asked.plan_files.iter().filter_map(|file| git.repo_path(file)).chain(home).collect();
        let subject = Subject { surface: Surface::Verify, base, attempt: now.tree, head, range: None, ours };
        let mut notes = asked.warnings.clone();
        if !now.whole {
            notes.push(
                "files that git does not see (too large, hidden by an index flag, or in another repository) were not verified"
                    .to_owned(),
            );
        }
        Ok(Self { project, git, asked, subject, notes })
    }

    /// A note if the plan or settings, which decide what is verified, have uncommitted changes.
    fn uncommitted(&self) -> Result<Option<String>, VerifyError> {
        let Self { project, git, asked, subject, .. } = self;
        let Some(base) = &subject.base else { return Ok(None) };
        let plan = asked.plan_files.first().filter(|_| asked.story.is_some());
        let read: PathSet = plan.into_iter().chain([&project.config_path]).filter_map(|file| git.repo_path(file)).collect();
        let changed = git.changed_paths(Some(base), &subject.attempt)?;
        let names: Vec<String> =
            changed.iter().filter(|change| read.contains(&change.path)).map(|change| change.path.to_string()).collect();
        let verb = if names.len() == 1 { "has" } else { "have" };
        let note = format!("{} {verb} uncommitted changes; the uncommitted version is used", names.join(" and "));
        Ok(Some(note).filter(|_| !names.is_empty()))
    }

    fn of_range(ask: &RangeRequest) -> Result<Self, VerifyError> {
        let start = Project::find(&ask.root, &find_git_top(&ask.root)?)?;
        let git = Git::open(&start.git_top)?;
        let (range, mut notes) = range::resolve(&git, &ask.base, ask.head.as_deref())?;
        let (story, stage) = (ask.story.as_ref(), ask.stage.as_ref());
        let laid_out = CommitSettings::read(&git, &range.settings, &start)?;
        let project = laid_out.project();
        let settings = laid_out.settings(&git, &range.settings)?;
        let (mut asked, plans) = match settings.ask(story, stage).map_err(|error| laid_out.relative(error))? {
            Read::Found(asked) => (*asked, None),
            Read::NoStory(error) => {
                // A plan that comes with the work may define the work, but not what proves it.
                let there = CommitSettings::plans(&git, &range.head, &start, &settings)?;
                match settings.at(there.found()).ask(story, stage) {
                    Ok(Read::Found(mut asked)) => {
                        asked.at_most = Some(Proof::AgentTested);
                        notes.push(format!(
                            "this story is not in {}; it comes with the work, so it is agent-tested at best",
                            range.asked
                        ));
                        (*asked, Some(there))
                    }
                    Ok(Read::NoStory(_)) | Err(_) => return Err(laid_out.relative(error)),
                }
            }
        };
        let read_from = plans.as_ref().unwrap_or(&laid_out);
        asked.plan_files = asked.plan_files.iter().map(|file| read_from.in_checkout(file)).collect();
        if asked.is_empty() {
            return Err(VerifyError::Nothing { settings: Some(range.asked) });
        }
        notes.extend(asked.warnings.iter().cloned());
        let (base, attempt) = (git.tree_of(&range.base)?, git.tree_of(&range.head)?);
        let ours = asked.plan_files.iter().filter_map(|file| git.repo_path(file)).collect();
        let (base, head) = (Some(base).filter(|base| *base != attempt), range.head.clone());
        if base.is_none() {
            notes.push(format!("no file differs from {}", range.asked));
        }
        let subject = Subject { surface: Surface::VerifyBase, base, attempt, head, range: Some(range), ours };
        Ok(Self { project, git, asked, subject, notes })
    }

    /// Results of earlier processes. `None` if they may not be used.
    fn kept(&self, use_cache: bool) -> Option<ResultCache> {
        let get = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let home = state_home(get).filter(|_| self.asked.config.gates.cache)?;
        let kept = ResultCache::open(&self.project, &self.asked.config, &home)?;
        Some(if use_cache { kept } else { kept.without_answers() })
    }

    fn verify(&self, kept: Option<ResultCache>, signals: &Signals, reporter: &mut dyn Reporter) -> Result<Verified, VerifyError> {
        let Self { project, asked, subject, .. } = self;
        let mut results = Results::with_kept(kept);
        let mut verification = self.begin(&results)?;
        if verification.is_known(&self.git, &results) {
            return Ok(self.verified(&verification, None, self.notes.clone()));
        }
        let guarded = Guarded::begin(asked.config.limits.grace.duration());
        let git = guarded.git(Git::open(&project.root).or_else(|_| Git::open(&project.git_top))?);
        let (outputs, trouble) = Outputs::make(&project.root, &subject.attempt)?;
        let mut notes = self.notes.clone();
        notes.extend(trouble.or_else(|| results.trouble()).map(|source| outputs::not_kept(&source)));
        let name = format!("verify-{}", guarded.mark().1);
        let objects = git.object_folders()?;
        let request = WorkspaceRequest { project, config: &asked.config, run: &name, run_dir: outputs.path(), objects };
        let mut spaces = Workspaces::new(&request);
        if subject.range.is_some() {
            spaces.leave_settings_of_trees();
        }
        spaces.open(&git)?;
        let mut bench = Bench {
            git: &git,
            spaces: &mut spaces,
            head: &subject.head,
            config: &asked.config,
            run_dir: outputs.path(),
            number: &mut 0,
            mark: guarded.mark(),
            redactor: &process::redactor_from_environment(&asked.exports),
            signals,
            clock: Stopwatch::start(),
            place: BenchPlace::default(),
        };
        verification.advance(&mut bench, &mut results, reporter)?;
        notes.extend(spaces.take_notes());
        let mut verified = self.verified(&verification, Some(spaces.seal()), notes);
        for run in verified.report.runs.values_mut().flatten() {
            run.output = run.output.take().and_then(|file| outputs.shown(&project.root, &file));
        }
        Ok(verified)
    }

    fn begin(&self, results: &Results) -> Result<Verification, VerifyError> {
        let Self { git, asked, subject, .. } = self;
        let (config, story) = (&asked.config, &asked.story);
        let mut gates = asked.gates.clone();
        // Verifying the checkout means all gates, whatever is already committed.
        for gate in gates.iter_mut().filter(|_| subject.range.is_none()) {
            gate.terms.when.paths.clear();
        }
        let mut job = VerifyJob::of_gates(subject.surface, gates, subject.attempt.clone());
        job.stop_at_failing_stage = config.gates.stop_at_failing_stage;
        job.at_most = asked.at_most;
        job.story.clone_from(story);
        let Some(base) = &subject.base else { return Ok(Verification::new(job, None, results)) };
        let folder = self.folder();
        let own = story.iter().flat_map(|story| &story.checks).chain(asked.others.iter().flat_map(|other| &other.checks));
        let commands: Vec<&CommandSpec> = own.chain(&asked.gates).map(|check| &check.command).collect();
        let scripts: BTreeSet<String> = check_scripts(commands);
        let looked_at = files_read_by(story.iter().flat_map(|story| &story.checks).map(|check| &check.command));
        let trees = Trees::compare(&TreesRequest {
            git,
            settings: &config.protect,
            folder: &folder,
            scope: story.as_ref().map_or(&[], |story| &story.scope),
            check_scripts: &scripts,
            subjects: &looked_at,
            start: None,
            base,
            attempt: &subject.attempt,
            ours: &subject.ours,
        })?;
        (job.protected, job.autorun) = changes_of(trees.plan());
        let open = asked.others.iter().filter(|other| other.is_open);
        job.others = other_checks(&job.protected, &folder, open.map(|other| (&other.id, other.checks.clone())));
        job.base = Some(base.clone());
        job.minimum = config.done.minimum;
        job.enforce_scope = config.policy.on_scope() == OnScope::Enforced;
        let changed = git.changed_paths(Some(base), &subject.attempt)?;
        let changed: Vec<ChangedPath> = changed.into_iter().filter(|change| !subject.ours.contains(&change.path)).collect();
        job.changed = Some(checks::in_project(&folder, &changed));
        Ok(Verification::new(job, Some(trees), results))
    }

    fn verified(&self, verification: &Verification, seal: Option<Seal>, notes: Vec<String>) -> Verified {
        let report = verification.report();
        let has_run = |check: &PlannedCheck| report.runs_on(Tree::Attempt).iter().any(|run| run.name == check.check.name);
        let not_run = verification.job.checks().into_iter().filter(|check| !has_run(check)).map(|check| check.check.name);
        let took_ms = verification.took.iter().map(|(tree, took)| (*tree, took.as_millis() as u64)).collect();
        Verified { not_run: not_run.collect(), range: self.subject.range.clone(), seal, notes, took_ms, report }
    }

    /// The project's path below the top of the repository.
    fn folder(&self) -> String {
        self.git.repo_path(&self.project.root).map(|folder| folder.to_string()).unwrap_or_default()
    }
}
