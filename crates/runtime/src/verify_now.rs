//! Checks on demand, without a run: the work tree as it is now, a story's own checks and the gates. What was seen before of the very
//! same tree is not run again.
//!
//! It writes nothing but `.verdone/cache/`: no mark in the plan, no commit, no journal.

mod error;
mod question;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tempfile::TempDir;
use verdone_core::check::{Check, CheckOrigin, CheckOutcome, CheckRun, Stage, all_green, due, stages};
use verdone_core::config::Config;
use verdone_core::done::{Complexity, stated_complexity};
use verdone_core::event::VerifyOutcome;
use verdone_core::id::{Oid, StoryId};
use verdone_core::redact::Redactor;
use verdone_core::update::{Reporter, Speaker, Update};

use crate::approval::Approvals;
use crate::check_runner::{CheckContext, CheckMoment, CleanPlaces, Guarded, Ways, run_checks};
use crate::config_file::{self, Environment, Flags};
use crate::gate_cache::{GateCache, hide};
use crate::git::{Git, TreeNow};
use crate::known_files::KnownFiles;
use crate::plan_file::{self, PlanFile, PlanRequest};
use crate::preflight;
use crate::process::{self, Moment};
use crate::project::{Project, find_git_top};
use crate::seal::state_home;
use crate::signal::Signals;
use crate::site;

pub use error::VerifyError;
use question::Questions;

/// Checks may change what they check (formatters, snapshots) this often before they have to settle.
const ROUNDS: usize = 3;
/// Outputs of this many trees are kept.
const KEPT_TREES: usize = 20;

/// What is to be verified.
#[derive(Debug, Clone)]
pub struct Ask {
    /// A folder of the project.
    pub root: PathBuf,
    /// This story's own checks too.
    pub story: Option<StoryId>,
    /// The gates of this stage alone.
    pub stage: Option<Stage>,
    /// Answer with earlier results of the same tree, where the settings allow that.
    pub use_cache: bool,
}

/// What was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub tree: Oid,
    pub runs: Vec<CheckRun>,
    pub verdict: VerifyOutcome,
    /// Checks that failed and passed on the same tree.
    pub flaky: Vec<String>,
    /// Checks that were not run, because an earlier stage failed.
    pub left: Vec<String>,
}

impl Report {
    fn of(tree: Oid, checks: &[Check], runs: Vec<CheckRun>) -> Self {
        let verdict = if runs.iter().any(|run| run.outcome == CheckOutcome::Interrupted) {
            VerifyOutcome::Interrupted
        } else if runs.len() == checks.len() && all_green(&runs) {
            VerifyOutcome::Passed
        } else {
            VerifyOutcome::Failed
        };
        let left = stages(checks).into_iter().flatten().skip(runs.len()).map(|check| check.name.clone()).collect();
        let flaky = runs.iter().filter(|run| run.flaky).map(|run| run.name.clone()).collect();
        Self { tree, runs, verdict, flaky, left }
    }
}

/// Runs what is not known yet. Everything but a missing story, plan or gate is an answer.
pub fn verify(ask: &Ask, signals: &Signals, reporter: &mut dyn Reporter) -> Result<Report, VerifyError> {
    Scene::of(ask)?.verify(ask.use_cache, signals, reporter)
}

/// The answer, if all of it is known. Never runs a check.
pub fn cached(ask: &Ask) -> Result<Option<Report>, VerifyError> {
    let scene = Scene::of(ask)?;
    if ask.use_cache { Ok(scene.known(&scene.look()?)) } else { Ok(None) }
}

/// The gates of a project.
#[derive(Debug)]
pub struct Listed {
    /// The work tree as it is now.
    pub tree: Oid,
    /// In the order in which they run, with what is known of them for this tree.
    pub gates: Vec<(Check, Option<CheckRun>)>,
}

/// Every gate. Nothing is run.
pub fn gates(root: &Path) -> Result<Listed, VerifyError> {
    let ask = Ask { root: root.to_owned(), story: None, stage: None, use_cache: true };
    let scene = Scene::open(&ask)?;
    let now = scene.look()?;
    let questions = scene.questions(&now);
    let gates = site::gates(&scene.config);
    let known = gates.iter().map(|gate| questions.known(gate)).collect::<Vec<_>>();
    Ok(Listed { tree: now.tree, gates: gates.into_iter().zip(known).collect() })
}

/// Where checks are run, and which.
struct Scene {
    project: Project,
    git: Git,
    config: Config,
    checks: Vec<Check>,
    cache: Option<GateCache>,
    redactor: Redactor,
}

impl Scene {
    fn of(ask: &Ask) -> Result<Self, VerifyError> {
        let scene = Self::open(ask)?;
        if scene.checks.is_empty() { Err(VerifyError::Nothing) } else { Ok(scene) }
    }

    fn open(ask: &Ask) -> Result<Self, VerifyError> {
        let project = Project::find(&ask.root, &find_git_top(&ask.root)?)?;
        let lossy = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
        let environment: Environment = std::env::vars_os().map(|(name, value)| (lossy(name), lossy(value))).collect();
        let settings = config_file::load(&project, &environment, &Flags::default())?;
        let config = settings.resolved.config;
        let get = |name: &str| environment.get(name).filter(|value| !value.is_empty()).cloned();
        let request = PlanRequest {
            root: project.root.clone(),
            cwd: project.start.clone(),
            named: None,
            prd: settings.prd,
            configured: config.plan.as_ref().map(PathBuf::from),
            loop_dir: get("RALPH_LOOP_DIR").map(PathBuf::from),
            progress_path: settings.progress,
        };
        let (own, complexity) = match &ask.story {
            Some(story) => own_checks(story, &request, &project, &config)?,
            None => (Vec::new(), stated_complexity(&config.done, None)),
        };
        let mut gates = site::gates(&config);
        if let Some(stage) = &ask.stage {
            let is_it = |check: &Check| check.origin == CheckOrigin::Gate(stage.clone());
            if !gates.iter().any(is_it) {
                return Err(VerifyError::no_stage(stage, &gates));
            }
            gates.retain(is_it);
        }
        // What a story changed is known in a run alone. Here every path counts as changed: too many gates are better than too few.
        let checks = own.into_iter().chain(due(&gates, None, complexity.value.into())).collect();
        let cache = state_home(get).filter(|_| config.gates.cache);
        let cache = cache.and_then(|home| GateCache::open(&project.root, &project.git_top, &home));
        let redactor = process::redactor_from_environment(&settings.exports);
        Ok(Self { git: Git::open(&project.root)?, project, config, checks, cache, redactor })
    }

    fn look(&self) -> Result<TreeNow, VerifyError> {
        Ok(self.git.tree_now(self.config.limits.largest_file(), &mut self.known_files())?)
    }

    fn known_files(&self) -> KnownFiles {
        // Without a cache nothing is written.
        self.cache.as_ref().map_or_else(KnownFiles::default, |_| KnownFiles::of(&self.project.root, &self.project.git_top))
    }

    fn questions<'s>(&'s self, now: &'s TreeNow) -> Questions<'s> {
        // Where the tree does not show everything, it cannot stand for the work tree.
        Questions::about(now, &self.project, self.cache.as_ref().filter(|_| now.whole))
    }

    /// The answer, if all of it is known.
    fn known(&self, now: &TreeNow) -> Option<Report> {
        let questions = self.questions(now);
        let mut runs = Vec::new();
        for stage in stages(&self.checks) {
            for check in stage {
                runs.push(questions.known(check)?);
            }
            if self.config.gates.stop_at_failing_stage && runs.iter().any(CheckRun::blocks) {
                break;
            }
        }
        Some(Report::of(now.tree.clone(), &self.checks, runs))
    }

    fn verify(&self, use_cache: bool, signals: &Signals, reporter: &mut dyn Reporter) -> Result<Report, VerifyError> {
        let mut now = self.look()?;
        if let Some(report) = self.known(&now).filter(|_| use_cache) {
            return Ok(report);
        }
        for finding in preflight::shares(&self.checks, &self.project.root) {
            reporter.report(Update::Notice { text: &finding.in_a_line() });
        }
        let guarded = Guarded::begin(self.config.limits.grace.duration());
        for round in 0..ROUNDS {
            let questions = self.questions(&now);
            let outputs = self.outputs(&now.tree, reporter, round == 0)?;
            let outputs = outputs.path();
            let since = file_time(outputs);
            let mut runs = self.run(outputs, &guarded, &questions, use_cache, signals, reporter)?;
            let after = self.git.tree_since(&now, self.config.limits.largest_file(), &mut self.known_files())?;
            if after.tree == now.tree {
                // What was another file for a moment, and is the same again, may be what the checks saw.
                let untouched = after.looked == now.looked
                    && since.is_some_and(|since| matches!(self.git.touched_since(&now, since), Ok(false)));
                questions.settle(&self.checks, &mut runs, untouched);
                return Ok(Report::of(now.tree, &self.checks, runs));
            }
            let report = Report::of(now.tree.clone(), &self.checks, runs);
            if report.verdict != VerifyOutcome::Passed {
                return Ok(report);
            }
            now = self.look()?;
        }
        Err(VerifyError::Unsettled)
    }

    fn run(
        &self,
        outputs: &Path,
        guarded: &Guarded,
        questions: &Questions<'_>,
        use_cache: bool,
        signals: &Signals,
        reporter: &mut dyn Reporter,
    ) -> Result<Vec<CheckRun>, VerifyError> {
        let git = guarded.git(Git::open(&self.project.root)?);
        let places = CleanPlaces::of(&git, questions.tree(), &self.project.root, &self.config.clean, signals);
        let place_of = |check: &Check| places.place_of(check);
        let known = |check: &Check| questions.known(check).filter(|_| use_cache).map(Into::into);
        let context = CheckContext {
            written: None,
            inside: None,
            cwd: &self.project.root,
            run_dir: outputs,
            number: 1,
            env: guarded.env(),
            cap: self.config.limits.output_bytes,
            grace: self.config.limits.grace.duration(),
            redactor: &self.redactor,
            ways: Ways { known: Some(&known), place_of: Some(&place_of), ..site::ways(&self.config.gates) },
        };
        let results = run_checks(&self.checks, &context, signals, &mut |moment| show(reporter, &moment));
        let results = results.map_err(|source| VerifyError::Io { doing: "running checks".to_owned(), source })?;
        let mut runs: Vec<CheckRun> = results.into_iter().map(|result| result.run).collect();
        let folder = site::shown(outputs, &self.project.root);
        for run in runs.iter_mut().filter(|run| !run.cached) {
            let kept = outputs.starts_with(&self.project.root);
            run.output = run.output.take().filter(|_| kept).map(|file| format!("{folder}/{file}"));
        }
        Ok(runs)
    }

    /// The folder for what the checks say about this tree. Where the cache cannot be written, one that is gone afterwards.
    fn outputs(&self, tree: &Oid, reporter: &mut dyn Reporter, tell: bool) -> Result<Outputs, VerifyError> {
        let source = match self.kept_outputs(tree) {
            Ok(folder) => return Ok(Outputs::Kept(folder)),
            Err(source) => source,
        };
        if tell {
            let text = format!(".verdone/cache cannot be used, so nothing is kept for the next time: {source}");
            reporter.report(Update::Notice { text: &text });
        }
        let made = tempfile::Builder::new().prefix("verdone-verify-").tempdir();
        made.map(Outputs::Gone).map_err(|source| VerifyError::Io { doing: "making a folder for outputs".to_owned(), source })
    }

    fn kept_outputs(&self, tree: &Oid) -> io::Result<PathBuf> {
        hide(&self.project.root)?;
        let all = self.project.root.join(".verdone/cache/outputs");
        let own = all.join(tree.as_str());
        fs::create_dir_all(&own)?;
        let mut older: Vec<(SystemTime, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&all)?.flatten().filter(|entry| entry.path() != own) {
            let modified = entry.metadata().and_then(|meta| meta.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
            older.push((modified, entry.path()));
        }
        older.sort();
        for (_, path) in &older[..older.len().saturating_sub(KEPT_TREES)] {
            let _ = fs::remove_dir_all(path);
        }
        Ok(own)
    }
}

/// Where outputs of checks are.
enum Outputs {
    Kept(PathBuf),
    /// Removed when dropped.
    Gone(TempDir),
}

impl Outputs {
    fn path(&self) -> &Path {
        match self {
            Self::Kept(path) => path,
            Self::Gone(folder) => folder.path(),
        }
    }
}

/// A story's own checks and its complexity, as the plan has them now. Commands of an agent's plan count only when they are accepted.
fn own_checks(
    story: &StoryId,
    request: &PlanRequest,
    project: &Project,
    config: &Config,
) -> Result<(Vec<Check>, Complexity), VerifyError> {
    let plan = PlanFile::open(plan_file::find(request)?)?;
    let name = site::shown(plan.path(), &project.root);
    let Some(found) = plan.plan().story(story) else { return Err(VerifyError::no_story(story, &name, plan.plan())) };
    let approvals = Approvals::read(&project.root)?;
    if let Some(finding) = preflight::approval(&approvals, &name, || plan.document().fingerprint()) {
        return Err(VerifyError::Refused(finding));
    }
    let path = std::env::var_os("PATH");
    let exists = |program: &str| process::program_exists(program, path.as_deref(), &project.root);
    let own = site::own_checks(plan_file::resolve_checks(found, exists), config);
    Ok((own, stated_complexity(&config.done, found.complexity)))
}

/// Now, by the clock of the file system.
fn file_time(folder: &Path) -> Option<SystemTime> {
    tempfile::NamedTempFile::new_in(folder).ok()?.as_file().metadata().ok()?.modified().ok()
}

fn show(reporter: &mut dyn Reporter, moment: &CheckMoment<'_>) {
    match moment {
        CheckMoment::Started(check) => reporter.report(Update::Checking { name: &check.name }),
        CheckMoment::During(check, Moment::Line { stream, text }) => {
            reporter.report(Update::Output { speaker: Speaker::Check(&check.name), stream: *stream, line: text });
        }
        CheckMoment::During(_, Moment::Tick) | CheckMoment::Ended(_) => {}
    }
}
