//! Where a run happens: the repository, the plan, the settings and everything else that its steps share.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use verdone_core::check::{Check, CheckRun, CommandSpec, Gate, GateSettings, Where, due, stages};
use verdone_core::config::Config;
use verdone_core::done::{JudgeRecord, stated_complexity};
use verdone_core::event::Checkpoint;
use verdone_core::id::{Oid, RunId, StoryId, digest};
use verdone_core::proof::OwnCheck;
use verdone_core::redact::Redactor;
use verdone_core::update::{Reporter, Speaker, Update};

use crate::agent::Claude;
use crate::check_runner::{CheckContext, CheckMoment, CleanPlaces, Memory, Ways, run_checks};
use crate::clock::Stopwatch;
use crate::git::{Candidate, CandidateRules, ChangedPath, Git, GitError, PathSet, Refs, RepoPath};
use crate::home::Home;
use crate::keep::Keep;
use crate::lifecycle::Scripts;
use crate::plan_file::PlanFile;
use crate::process::{EnvPlan, Moment, RUN_VARIABLE};
use crate::protected::Protected;
use crate::regular::read_regular;
use crate::signal::Signals;

/// Everything a step may touch.
#[derive(Debug)]
pub struct Site {
    pub git: Git,
    /// Where `.verdone/` is and checks run.
    pub root: PathBuf,
    pub run: RunId,
    pub run_dir: PathBuf,
    pub plan: PlanFile,
    pub config: Config,
    pub gates: Vec<Check>,
    /// The stories' own checks as they were when the run began: later edits are not run.
    pub frozen: HashMap<StoryId, Vec<Check>>,
    /// Work on this story alone.
    pub only: Option<StoryId>,
    pub signals: Signals,
    /// Active time of the run.
    pub clock: Stopwatch,
    /// When the attempt began, as the file system dates it.
    pub attempt_since: SystemTime,
    pub redactor: Redactor,
    pub protected: Protected,
    /// The run's own directories, and which of them had to be put back since that was last told.
    pub home: Home,
    pub mended: Vec<String>,
    /// Settings and hooks of git, and those of fresher: put back like our own.
    pub settings: Vec<Protected>,
    /// The directories of earlier runs and of this one.
    pub known_runs: BTreeSet<OsString>,
    /// The template of the prompt and where it came from.
    pub template: (String, String),
    /// Branches, tags and stash as they were when they were last looked at.
    pub refs: Refs,
    /// What gates said about the trees of this run.
    pub memory: Memory,
    /// The tree that was verified and is to be committed.
    pub candidate: Option<Candidate>,
    /// Clear answers of a judge about trees of stories: who is asked again until the answer suits has proven nothing.
    pub judged: Vec<(StoryId, Oid, JudgeRecord)>,
    /// The tree of the last story commit, and the commands that were green on it.
    pub green: Option<(Oid, Vec<CommandSpec>)>,
    /// The tree right before the first turn, where the red check changed tracked files.
    pub before_turn: Option<Oid>,
    /// Untracked files that checks of this attempt made, by their content: nobody's work, until somebody changes them.
    pub debris: BTreeMap<RepoPath, String>,
    /// Untracked files that the red check changed: the agent is not to blame for them.
    pub untracked_before: PathSet,
    /// How long the file of claims was when the attempt began: what stands before was said about another one.
    pub claims_from: u64,
    /// Turns and checks so far: they number the kept files.
    pub turns_run: u32,
    pub checks_run: u32,
    /// The client that stays for many turns, where the agent is one.
    pub claude: Claude,
    /// The lifecycle scripts as they were when the run began.
    pub scripts: Scripts,
    /// Where the project's specifications are, for the scripts.
    pub spec_dir: PathBuf,
    /// Variables for the scripts, from a fresher project.
    pub exports: Vec<(String, String)>,
}

impl Site {
    /// The plan as people know it: relative to the project where it lies below it.
    pub fn plan_name(&self) -> String {
        shown(self.plan.path(), &self.root)
    }

    /// Snapshots the work tree, the plan's files included wherever they lie.
    pub fn checkpoint(&self, label: &str) -> Result<Checkpoint, GitError> {
        self.keep().checkpoint(label, &self.plan.protected_paths())
    }

    pub fn keep(&self) -> Keep<'_> {
        let limits = (&self.config.limits).into();
        Keep { git: &self.git, root: &self.root, run: &self.run, run_dir: &self.run_dir, limits }
    }

    /// What never enters a story's commit: our own folder, and what checks left behind.
    pub fn candidate_rules(&self) -> CandidateRules {
        let mut rules = self.keep().candidate_rules();
        rules.excluded.extend(self.debris.keys().cloned());
        rules
    }

    /// The plan and what belongs to it, as git names them.
    pub fn plan_paths(&self) -> PathSet {
        self.plan.protected_paths().iter().filter_map(|path| self.git.repo_path(path)).collect()
    }

    /// Remembers files as made by checks.
    pub fn add_debris(&mut self, paths: impl IntoIterator<Item = RepoPath>) {
        for path in paths {
            let content = self.content_of(&path);
            self.debris.insert(path, content);
        }
    }

    /// What a turn wrote over is the agent's now.
    pub fn forget_changed_debris(&mut self) {
        let debris = std::mem::take(&mut self.debris);
        self.debris = debris.into_iter().filter(|(path, content)| self.content_of(path) == *content).collect();
    }

    /// Nothing for what is no readable file: it is never the same as a file.
    fn content_of(&self, path: &RepoPath) -> String {
        let place = self.git.top().join(path.as_path());
        read_regular(&place, u64::MAX).map_or_else(|_| String::new(), |bytes| digest(&bytes))
    }

    /// To be called whenever an agent, or code of its, may have run: what comes next writes into the run's directory.
    pub fn mend_home(&mut self) -> io::Result<()> {
        self.mended.extend(self.home.mend()?);
        Ok(())
    }

    /// What happened to other branches, tags and the stash since the last look. They are left as they are; what nothing may hold
    /// any more is kept with the run.
    pub fn refs_moved(&mut self, own_branch: Option<&str>) -> Result<Vec<String>, GitError> {
        let now = self.git.refs()?;
        let moved = self.refs.moved(&now, own_branch);
        self.refs = now;
        // Best effort: commits that are gone already cannot be kept, and their ids are told all the same.
        let _ = self.git.keep_commits(&self.run, &moved.lost, "refs that were changed during the attempt");
        Ok(moved.told)
    }

    pub fn own_checks(&self, story: &StoryId) -> &[Check] {
        self.frozen.get(story).map_or(&[], Vec::as_slice)
    }

    /// What has to pass for a story, its own checks first; `changed` are its changes so far.
    pub fn checks_of(&self, story: &StoryId, changed: &[ChangedPath]) -> Vec<Check> {
        let below = self.git.repo_path(&self.root).map(|folder| folder.to_string()).filter(|folder| !folder.is_empty());
        let in_project = |path: String| match &below {
            Some(folder) => path.strip_prefix(folder.as_str()).and_then(|rest| rest.strip_prefix('/')).map(str::to_owned),
            None => Some(path),
        };
        let changed: Vec<String> = changed.iter().filter_map(|change| in_project(change.path.to_string())).collect();
        let planned = self.plan.plan().story(story).and_then(|story| story.complexity);
        let complexity = stated_complexity(&self.config.done, planned).value.into();
        self.own_checks(story).iter().cloned().chain(due(&self.gates, Some(&changed), complexity)).collect()
    }

    /// Whether tests of the attempt's own have to prove the story.
    pub fn asks_for_tests(&self, story: &StoryId) -> bool {
        self.config.own_check == OwnCheck::AgentTest && self.own_checks(story).is_empty()
    }

    /// Runs checks and shows what they say. Story checks first, then gates stage by stage.
    pub fn run_checks(&mut self, checks: &[Check], reporter: &mut dyn Reporter) -> io::Result<Vec<CheckRun>> {
        self.run_checks_at(&self.root.clone(), None, checks, reporter)
    }

    /// The same where the tree is known that is checked: gates may run in a clean copy of it, and one that passed on it in this run
    /// is not asked again.
    pub fn run_checks_on(
        &mut self,
        tree: Option<&Oid>,
        checks: &[Check],
        reporter: &mut dyn Reporter,
    ) -> io::Result<Vec<CheckRun>> {
        self.run_checks_at(&self.root.clone(), tree, checks, reporter)
    }

    /// The same elsewhere: in a clean tree.
    pub fn run_checks_in(&mut self, cwd: &Path, checks: &[Check], reporter: &mut dyn Reporter) -> io::Result<Vec<CheckRun>> {
        self.run_checks_at(cwd, None, checks, reporter)
    }

    fn run_checks_at(
        &mut self,
        cwd: &Path,
        tree: Option<&Oid>,
        checks: &[Check],
        reporter: &mut dyn Reporter,
    ) -> io::Result<Vec<CheckRun>> {
        let places = tree.map(|tree| CleanPlaces::of(&self.git, tree, &self.root, &self.config.clean, &self.signals));
        let place_of = places.as_ref().map(|places| |check: &Check| places.place_of(check));
        let known = tree.map(|tree| |check: &Check| self.memory.recall(tree, check));
        let ways = Ways {
            known: known.as_ref().map(|known| known as _),
            place_of: place_of.as_ref().map(|place_of| place_of as _),
            ..ways(&self.config.gates)
        };
        let context = CheckContext {
            cwd,
            run_dir: &self.run_dir,
            number: self.checks_run + 1,
            env: EnvPlan::default().with(RUN_VARIABLE, self.run.as_str()),
            cap: self.config.limits.output_bytes,
            grace: self.config.limits.grace.duration(),
            redactor: &self.redactor,
            ways,
        };
        let clock = self.clock;
        let mut runs = run_checks(checks, &context, &self.signals, &mut |moment| show(reporter, clock, &moment))?;
        drop(places);
        if let Some(tree) = tree {
            self.memory.mark_flaky(tree, checks, &mut runs);
        }
        self.mend_home()?;
        self.checks_run += runs.len() as u32;
        Ok(runs)
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

/// The checks of a story, ready to run.
pub fn own_checks(commands: Vec<CommandSpec>, config: &Config) -> Vec<Check> {
    commands.into_iter().map(|command| Check::own(command, config.limits.check_time)).collect()
}

/// The gates of the config and of `--check`, ready to run, in the order of their stages.
pub fn gates(config: &Config) -> Vec<Check> {
    let ready = |gate: &Gate| {
        let mut check = gate.check(config.limits.check_time);
        if check.terms.place == Where::Clean {
            if check.terms.setup.is_empty() {
                check.terms.setup.clone_from(&config.clean.setup);
            }
            if check.terms.share.is_empty() {
                check.terms.share.clone_from(&config.clean.share);
            }
        }
        check
    };
    let gates: Vec<Check> = config.gate.iter().map(ready).collect();
    stages(&gates).into_iter().flatten().cloned().collect()
}

/// How the settings want gates to be run together.
pub(crate) fn ways(settings: &GateSettings) -> Ways<'static> {
    const MOST: usize = 4;
    let processors = || std::thread::available_parallelism().map_or(1, usize::from).min(MOST);
    let parallel = if settings.parallel == 0 { processors() } else { settings.parallel as usize };
    Ways { parallel, keep_going: !settings.stop_at_failing_stage, known: None, place_of: None }
}

/// A path for people.
pub fn shown(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}
