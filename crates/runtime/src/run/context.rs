//! The context of a run: the repository, the plan, the settings and everything else that its steps share.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use verdone_core::base::id::{Oid, RunId, StoryId};
use verdone_core::base::redact::Redactor;
use verdone_core::check::{Check, CheckRun, CommandSpec};
use verdone_core::config::Config;
use verdone_core::done::{CiFact, JudgeRecord};
use verdone_core::journal::update::Reporter;

use crate::agent::RunAgent;
use crate::base::active_clock::Stopwatch;
use crate::git::{ChangedPath, Git, GitError};
use crate::process::RUN_VARIABLE;
use crate::process::signal::Signals;
use crate::project::shown;
use crate::run::RunPlan;
use crate::run::lifecycle::Scripts;
use crate::run::step::StepError;
use crate::run::tool_socket::ToolSocket;
use crate::verify::checks::in_project;
use crate::verify::{Bench, BenchPlace, Results};
use crate::workspace::{KeptCache, Workspaces};

/// Everything a step may touch.
#[derive(Debug)]
pub struct RunContext {
    pub setup: RunSetup,
    pub attempt: AttemptContext,
    pub git: Git,
    /// The tip of the run's branch.
    pub tip: Oid,
    pub plan: RunPlan,
    /// Where the agent works and checks run.
    pub spaces: Workspaces,
    pub agent: RunAgent,
    /// Where the agent's tool calls arrive. `None` if that is impossible here.
    pub tools: Option<ToolSocket>,
    /// Check results by tree in this run.
    pub results: Results,
    /// The build cache left by the last attempt's checks, and the tree it was built from.
    pub built: Option<(Oid, KeptCache)>,
    /// Clear answers of a judge, by story and tree: asking again until the answer fits would prove nothing.
    pub judged: Vec<(StoryId, Oid, JudgeRecord)>,
    /// Clear answers of CI: the tip, the tree on top of it, and the answer.
    pub ci_answers: Vec<(Oid, Oid, CiFact)>,
    /// The tree of the last story commit, and the commands that passed on it without a cache from this run.
    pub green: Option<(Oid, Vec<CommandSpec>)>,
    /// Turns and checks so far, used to number stored files.
    pub turns_run: u32,
    pub checks_run: u32,
}

/// What stays the same from the start of a run to its end.
#[derive(Debug)]
pub struct RunSetup {
    /// The folder with `.verdone/`, in which checks run.
    pub root: PathBuf,
    pub run: RunId,
    pub run_dir: PathBuf,
    /// The branch for the story commits.
    pub branch: String,
    /// The last commit not made by a run; later ones are the work of agents.
    pub start: Oid,
    /// The branch that was checked out when the run started. `None` if HEAD was detached.
    pub target: Option<String>,
    pub config: Config,
    pub gates: Vec<Check>,
    /// The stories' own checks, frozen at the start of the run; later edits do not apply.
    pub frozen: HashMap<StoryId, Vec<Check>>,
    /// Work only on this story.
    pub only: Option<StoryId>,
    /// Stories completed by earlier runs, with evidence.
    pub done_before: BTreeSet<StoryId>,
    /// Also commit stories that no check covers.
    pub unchecked: bool,
    /// The prompt template and where it came from.
    pub template: (String, String),
    pub redactor: Arc<Redactor>,
    pub signals: Signals,
    /// Active time of the run.
    pub clock: Stopwatch,
    /// When the run started, by file system time.
    pub since: SystemTime,
    /// The lifecycle scripts, frozen at the start of the run.
    pub scripts: Scripts,
    /// The project's specifications folder, for the scripts.
    pub spec_dir: PathBuf,
    /// Variables for the scripts, from a fresher project.
    pub exports: Vec<(String, String)>,
}

/// What a new attempt starts anew.
#[derive(Debug)]
pub struct AttemptContext {
    /// When the attempt started, by file system time.
    pub since: SystemTime,
    /// The length of the claims file when the attempt started. Claims before it belong to other attempts.
    pub claims_from: u64,
    /// The verified tree that will be committed.
    pub candidate: Option<Candidate>,
    /// Ids of the lessons that its prompts had.
    pub lessons: Vec<String>,
    /// The last question that its agent asked, and the turn, as counted by `turns_run`.
    pub question: Option<(u32, String)>,
}

/// The result of an attempt: a tree that may become a commit.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub tree: Oid,
    /// All differences from the base, including the plan's mark.
    pub changes: Vec<ChangedPath>,
    /// Why this tree cannot be committed.
    pub obstacle: Option<String>,
    /// Files that the agent may not change but edited. Its edits are ignored.
    pub restored: Vec<String>,
}

impl RunContext {
    /// The plan's name for people: relative to the project if it is below it.
    pub fn plan_name(&self) -> String {
        shown(self.plan.path(), &self.setup.root)
    }

    /// The files of the agent's workspace as a tree, with the plan as currently marked.
    pub fn read_attempt(&mut self) -> Result<Candidate, StepError> {
        let read = self.spaces.read_attempt(&self.git, self.plan.paths(), self.setup.config.limits.largest_file())?;
        let tree = self.with_plan(&read.tree)?;
        let changes = self.git.changed_paths(Some(&self.tip), &tree)?;
        let restored = self.spaces.edited(&self.plan.given());
        Ok(Candidate { tree, changes, obstacle: read.obstacle, restored })
    }

    /// A tree with the plan as currently marked.
    pub fn with_plan(&self, tree: &Oid) -> Result<Oid, GitError> {
        let texts = self.plan.texts();
        if texts.is_empty() {
            return Ok(tree.clone());
        }
        let changes: Vec<_> = texts.into_iter().map(|(path, bytes)| (path, Some(("100644", bytes)))).collect();
        self.git.replace_in_tree(tree, &changes)
    }

    /// The files that the attempt changed, without the plan.
    pub fn changed_by_agent(&self, candidate: &Candidate) -> Vec<ChangedPath> {
        candidate.changes.iter().filter(|change| !self.plan.paths().contains(&change.path)).cloned().collect()
    }

    pub fn own_checks(&self, story: &StoryId) -> &[Check] {
        self.setup.frozen.get(story).map_or(&[], Vec::as_slice)
    }

    /// The project's path below the top of the repository.
    pub fn folder(&self) -> String {
        self.git.repo_path(&self.setup.root).map(|folder| folder.to_string()).unwrap_or_default()
    }

    /// Changed paths relative to the project.
    pub fn in_project(&self, changed: &[ChangedPath]) -> Vec<String> {
        in_project(&self.folder(), changed)
    }

    /// Provides everything that a verification needs.
    pub fn on_bench<T>(&mut self, work: impl FnOnce(&mut Bench<'_>, &mut Results) -> T) -> T {
        let mut place = BenchPlace::default();
        let done = self.with_bench(&mut place, |bench, results| {
            let done = work(bench, results);
            bench.close();
            done
        });
        self.built = place.take_built().or_else(|| self.built.take());
        done
    }

    fn with_bench<T>(&mut self, place: &mut BenchPlace, work: impl FnOnce(&mut Bench<'_>, &mut Results) -> T) -> T {
        let Self { git, spaces, tip, checks_run, results, setup, .. } = self;
        let RunSetup { config, run, run_dir, redactor, signals, clock, .. } = setup;
        let mark = (RUN_VARIABLE, run.as_str());
        let mut bench = Bench {
            git,
            spaces,
            head: tip,
            config,
            run_dir,
            number: checks_run,
            mark,
            redactor,
            signals,
            clock: *clock,
            place: std::mem::take(place),
        };
        let done = work(&mut bench, results);
        *place = bench.place;
        done
    }

    /// Runs checks on a tree outside a verification, and stores the results.
    pub fn run_checks(&mut self, tree: &Oid, checks: &[Check], reporter: &mut dyn Reporter) -> Result<Vec<CheckRun>, StepError> {
        self.run_checks_in(&mut BenchPlace::default(), tree, checks, reporter)
    }

    /// The same in a workspace that stays open for more checks on the tree.
    pub fn run_checks_in(
        &mut self,
        place: &mut BenchPlace,
        tree: &Oid,
        checks: &[Check],
        reporter: &mut dyn Reporter,
    ) -> Result<Vec<CheckRun>, StepError> {
        Ok(self.with_bench(place, |bench, results| bench.run_and_note(results, tree, checks, reporter))?)
    }

    /// The tree of the run's last commit.
    pub fn tip_tree(&self) -> Result<Oid, GitError> {
        self.git.tree_of(&self.tip)
    }
}
