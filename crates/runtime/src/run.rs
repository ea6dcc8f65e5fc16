//! A run from the outside: getting ready, refusing with a reason, and driving it to its end.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jiff::Timestamp;
use verdone_core::check::Check;
use verdone_core::config::Config;
use verdone_core::done::{out_of_reach, stated_complexity};
use verdone_core::event::Event;
use verdone_core::id::{RunId, StoryId, digest};
use verdone_core::machine::Rules;
use verdone_core::plan::{Plan, Status};
use verdone_core::prompt;
use verdone_core::update::{Reporter, Update};

use crate::agent::Claude;
use crate::approval::{ApprovalError, Approvals};
use crate::check_runner::Memory;
use crate::clock::Stopwatch;
use crate::config_file::SettingsError;
use crate::done;
use crate::driver::Driver;
use crate::git::{Git, GitError, Kind, PathSet, Refs};
use crate::home::Home;
use crate::hook::Guard;
use crate::lifecycle::Scripts;
use crate::place::PlaceError;
use crate::plan_file::{self, FindError, PlanFile, PlanFileError, PlanRequest};
use crate::preflight::{self, Dirty, Finding, Health};
use crate::process::{self, RUN_VARIABLE};
use crate::project::{GitDirs, Project};
use crate::protected::Protected;
use crate::recover::{self, RecoverError};
use crate::signal::Signals;
use crate::site::{self, Site};
use crate::store::{Holder, Journal, JournalError, LockError, RunLock, Store, owed, proven};
use crate::template::read_template;
use crate::watchdog::{Starting, Watchdog};

/// Where a user has switched this rule off, an agent may write its client's settings.
const AGENT_SETTINGS: &str = "agent-settings";

/// What the user asked for, settings already merged.
#[derive(Debug)]
pub struct RunRequest {
    pub project: Project,
    pub plan: PlanRequest,
    pub config: Config,
    pub only: Option<StoryId>,
    pub red_baseline: bool,
    pub unverified: bool,
    /// Set uncommitted changes aside instead of refusing.
    pub allow_dirty: bool,
    /// Where the project's specifications are, for lifecycle scripts; `specs` where nobody says.
    pub spec_dir: Option<PathBuf>,
    /// Variables for lifecycle scripts, from a fresher project.
    pub exports: Vec<(String, String)>,
    /// What the settings have to say to the user.
    pub warnings: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Something has to be put in order first.
    #[error("{}", .0.message)]
    Refused(Finding),
    #[error(transparent)]
    Find(#[from] FindError),
    #[error(transparent)]
    Plan(#[from] PlanFileError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Approval(#[from] ApprovalError),
    #[error(transparent)]
    Recover(#[from] RecoverError),
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error("{doing}: {source}")]
    Io { doing: String, source: io::Error },
}

/// A work tree that is ours alone and in order.
#[derive(Debug)]
pub struct WorkTree {
    lock: RunLock,
}

impl WorkTree {
    /// Takes the work tree for a run, and puts in order what a dead one left behind. Comes before the settings and the plan are
    /// read, because the dead run's agent may have changed them.
    pub fn take(project: &Project, signals: &Signals, reporter: &mut dyn Reporter) -> Result<Self, RunError> {
        refuse_nested()?;
        refuse_pipes(&project.git_top)?;
        // Git is not asked where it is possible: a dead run's agent may have changed what it would answer.
        let lock = match GitDirs::of(&project.git_top) {
            Some(dirs) => RunLock::take(&dirs.own)?,
            None => RunLock::take(Git::open(&project.root)?.git_dir())?,
        };
        recover::recover(project, signals, reporter)?;
        Ok(Self { lock })
    }
}

/// The agent or a check of a run must not start another one: they would wait for each other, or share an agent's budget.
pub(crate) fn refuse_nested() -> Result<(), RunError> {
    let Some(outer) = std::env::var_os(RUN_VARIABLE) else { return Ok(()) };
    let message = format!("this is inside run {} already", outer.to_string_lossy());
    let hint = format!("wait until it has ended; if it has, unset {RUN_VARIABLE}");
    Err(RunError::Refused(Finding::bad("run", message, [&hint])))
}

/// Git would wait for ever for somebody to write into one of these.
fn refuse_pipes(top: &Path) -> Result<(), RunError> {
    let is_pipe = |name: &&&str| fs::symlink_metadata(top.join(name)).is_ok_and(|meta| meta.file_type().is_fifo());
    let Some(name) = [".gitignore", ".gitattributes"].iter().find(is_pipe) else { return Ok(()) };
    Err(RunError::Refused(Finding::bad("work tree", format!("{name} is a pipe, not a file"), ["remove it"])))
}

/// A run that could begin.
#[derive(Debug)]
pub struct Ready {
    pub request: RunRequest,
    pub git: Git,
    pub plan: PlanFile,
    pub gates: Vec<Check>,
    pub frozen: HashMap<StoryId, Vec<Check>>,
    /// The prompt's template and where it came from.
    pub template: (String, String),
}

impl Ready {
    /// Changes of the user's that earlier runs could not put back, as lines.
    fn tell_owed(&self, store: &Store, reporter: &mut dyn Reporter) -> Result<(), RunError> {
        for (run, command) in owed(&self.git, store)? {
            let text = format!("run {run} still keeps changes of yours that it could not put back; to get them: {command}");
            reporter.report(Update::Notice { text: &text });
        }
        Ok(())
    }

    /// Reads everything that a run needs and looks at nothing else yet.
    pub fn read(request: RunRequest) -> Result<Self, RunError> {
        let git = Git::open(&request.project.root)?;
        let plan = PlanFile::open(plan_file::find(&request.plan)?)?;
        let gates = site::gates(&request.config);
        let frozen = freeze(plan.plan(), &request.config, &request.project.root);
        if let Some(only) = &request.only
            && plan.plan().story(only).is_none()
        {
            let known: Vec<&str> = plan.plan().stories.iter().map(|story| story.id.as_str()).take(20).collect();
            let message = format!("{} has no story {:?}", site::shown(plan.path(), &request.project.start), only.as_str());
            return Err(RunError::Refused(Finding::bad("story", message, [&format!("its stories: {}", known.join(", "))])));
        }
        let template =
            read_template(&request.project.root, "building", prompt::BUILDING).map_err(io_error("reading the template"))?;
        Ok(Self { request, git, plan, gates, frozen, template })
    }

    /// Everything that has to be in order, good or bad.
    pub fn examine(&self) -> Result<Vec<Finding>, RunError> {
        let root = &self.request.project.root;
        // Processes that do not wait for each other.
        let (status, identity, filters) = std::thread::scope(|scope| {
            let identity = scope.spawn(|| self.git.identity());
            let filters = scope.spawn(|| preflight::filters(&self.git, root));
            let status = self.git.status();
            let identity = identity.join().unwrap_or(Err(GitError::Missing));
            (status, identity, filters.join().unwrap_or(Err(GitError::Missing)))
        });
        let filters = filters?;
        // Without its filter, git may not even be able to say what has changed.
        if status.is_err() && !filters.is_empty() {
            return Ok(filters);
        }
        let status = status?;
        let skip = self.git.repo_path(&root.join(".verdone")).into_iter().collect();
        let fits = self.git.fits_a_checkpoint(&status, &skip, (&self.request.config.limits).into());
        let dirty = if self.request.allow_dirty { Dirty::SetAside } else { Dirty::Refused };
        let mut findings = filters;
        findings.extend(preflight::repository(&self.git, &status, identity, &self.ours(), dirty)?);
        if self.request.allow_dirty {
            let (top, fresher) = (self.git.top(), root.join(".fresher"));
            findings.extend(preflight::cannot_leave(&status, &|path: &Path| top.join(path).starts_with(&fresher)));
        }
        if let Err(error) = fits {
            findings.push(Finding::bad(
                "files",
                error.to_string(),
                [error.hint().unwrap_or("look at the files that git status lists")],
            ));
        }
        findings.push(preflight::agent(&self.request.config, root));
        findings.extend(preflight::judge(&self.request.config, root));
        let own = |id: &StoryId| self.frozen.get(id).map_or(&[][..], Vec::as_slice);
        findings.extend(preflight::checks(
            self.plan.plan(),
            &self.gates,
            own,
            self.request.config.own_check,
            self.request.unverified,
            root,
        ));
        findings.extend(preflight::shares(&self.gates, root));
        findings.extend(self.approval()?);
        findings.extend(self.conditions()?);
        Ok(findings)
    }

    /// What an agent wrote and the user has not accepted decides nothing, not even on which branch to be.
    pub(crate) fn approval(&self) -> Result<Option<Finding>, RunError> {
        let approvals = Approvals::read(&self.request.project.root)?;
        Ok(preflight::approval(&approvals, &self.plan_name(), || self.plan.document().fingerprint()))
    }

    /// Conditions that no agent could meet: a run would only spend money on them.
    fn conditions(&self) -> Result<Option<Finding>, RunError> {
        let done = &self.request.config.done;
        if !done.asks_more_than_a_run() {
            return Ok(None);
        }
        let approvals = Approvals::read(&self.request.project.root)?;
        let stories = self.plan.plan().open().filter(|story| self.request.only.as_ref().is_none_or(|only| *only == story.id));
        let hardest = stories.max_by_key(|story| stated_complexity(done, story.complexity).value);
        let plan = done::plan_found(&self.plan, hardest, &self.plan_name(), &approvals);
        let stages = done::gate_facts(&self.gates, None);
        Ok(preflight::conditions(&out_of_reach(done, plan, stages.keys().map(String::as_str))))
    }

    /// What would leave the work tree when the run begins, as git names it.
    pub fn changes_to_set_aside(&self) -> Result<Vec<String>, RunError> {
        if !self.request.allow_dirty {
            return Ok(Vec::new());
        }
        let ours = self.ours();
        let changed = self.git.status()?.entries.into_iter().filter(|entry| matches!(entry.kind, Kind::Tracked { .. }));
        Ok(changed.filter(|entry| !ours(entry.path.as_path())).map(|entry| entry.path.to_string()).collect())
    }

    /// Whether a path of the repository is Verdone's or the plan's: those never count as dirty.
    pub fn ours(&self) -> impl Fn(&Path) -> bool {
        let (top, home, protected) =
            (self.git.top().to_owned(), self.request.project.root.join(".verdone"), self.plan.protected_paths());
        move |path| {
            let path = top.join(path);
            path.starts_with(&home) || protected.contains(&path)
        }
    }

    pub fn plan_name(&self) -> String {
        site::shown(self.plan.path(), &self.request.project.root)
    }

    /// A site to build prompts on, without a run: nothing is written.
    pub fn into_site(self, run: RunId, run_dir: PathBuf, signals: Signals) -> Result<(Site, Rules), RunError> {
        let root = self.request.project.root;
        let protected = Protected::snapshot(&root).map_err(io_error("reading .verdone/"))?;
        let settings = Protected::all_git_settings(self.git.common_dir(), self.git.git_dir());
        let mut settings = settings.map_err(io_error("reading git's settings"))?;
        settings.push(Protected::scripts_of_fresher(&root).map_err(io_error("reading .fresher/"))?);
        let agent_settings = self.request.config.policy.off.iter().all(|rule| rule != AGENT_SETTINGS);
        if self.request.config.agent.name == "claude" && agent_settings {
            settings.extend(Protected::client_settings(&root).map_err(io_error("reading .claude/"))?);
        }
        let rules = Rules {
            limits: self.request.config.limits.clone(),
            red_check: self.request.config.red_check,
            red_baseline: self.request.red_baseline,
            unverified: self.request.unverified,
            fail_behavior: self.request.config.hooks.fail_behavior,
            allow_dirty: self.request.allow_dirty,
            pause_at: self.request.config.agent.claude.pause_at,
            tamper: self.request.config.tamper,
            own_check: self.request.config.own_check,
            regression: self.request.config.regression.clone(),
        };
        let scripts = Scripts::freeze(&root);
        let home = Home::of(&root, &run_dir);
        let spec_dir = self.request.spec_dir.unwrap_or_else(|| root.join("specs"));
        let claude = match self.request.config.agent.name.as_str() {
            "claude" => {
                let guard = Guard::of_run(&root, self.git.top(), &run_dir)?;
                Claude::guarded_by(guard, self.git.common_dir())
            }
            _ => Claude::default(),
        };
        let site = Site {
            // So that a git hook of a run that died is found and ended by the next one.
            git: self.git.marked(RUN_VARIABLE, run.as_str()),
            root,
            run,
            run_dir,
            plan: self.plan,
            config: self.request.config,
            gates: self.gates,
            frozen: self.frozen,
            only: self.request.only,
            signals,
            clock: Stopwatch::start(),
            attempt_since: SystemTime::now(),
            redactor: process::redactor_from_environment(&self.request.exports),
            protected,
            home,
            mended: Vec::new(),
            settings,
            known_runs: BTreeSet::new(),
            template: self.template,
            refs: Refs::default(),
            memory: Memory::default(),
            judged: Vec::new(),
            candidate: None,
            green: None,
            before_turn: None,
            debris: BTreeMap::new(),
            untracked_before: PathSet::default(),
            claims_from: 0,
            turns_run: 0,
            checks_run: 0,
            claude,
            scripts,
            spec_dir,
            exports: self.request.exports,
        };
        Ok((site, rules))
    }

    /// Drives the run to its end; answers with its exit code.
    pub fn run(self, ours: WorkTree, signals: Signals, reporter: &mut dyn Reporter) -> Result<u8, RunError> {
        let WorkTree { mut lock } = ours;
        let store = Store::of(&self.request.project.root);
        for text in &self.request.warnings {
            reporter.report(Update::Notice { text });
        }
        for finding in self.examine()? {
            match finding.health {
                Health::Bad => return Err(RunError::Refused(finding)),
                Health::Warning => reporter.report(Update::Notice { text: &finding.in_a_line() }),
                Health::Good => {}
            }
        }
        // What was examined ran programs, and ended whatever they left: a watchdog in its start would have been taken for that.
        let watchdog = Watchdog::start(self.request.config.limits.grace.duration());
        self.tell_claims(&store, reporter)?;
        self.tell_owed(&store, reporter)?;
        let now = Timestamp::now();
        let created = store.create(self.git.common_dir(), now);
        let (run, run_dir) = created.map_err(io_error(&format!("making a run's directory in {}", store.path().display())))?;
        let watchdog = watch(watchdog, &run, reporter);
        process::adopt_orphans();
        let holder = Holder { pid: std::process::id(), run: Some(run.clone()), since: now.to_string() };
        lock.tell(&holder).map_err(io_error("writing the lock"))?;
        let journal = Journal::create(&run_dir)?;
        let start = self.start_event(&run)?;
        // What cannot be read is not resumed; a fresh session is always right.
        let left = recover::left_session(&store, &run, &self.plan_name()).unwrap_or_default();
        let (mut site, rules) = self.into_site(run, run_dir, signals)?;
        site.claude.resume(left);
        site.known_runs = store.directories().map_err(io_error("reading .verdone/runs/"))?;
        let all = site.settings.iter().chain([&site.protected]);
        Protected::save(all, &site.run_dir).map_err(io_error("copying .verdone/ and git's settings"))?;
        let (root, run_dir) = (site.root.clone(), site.run_dir.clone());
        let code = Driver::new(site, rules, journal, reporter).run(start)?;
        if let Some(watchdog) = watchdog {
            watchdog.dismiss();
        }
        // A run that had to give up may leave an attempt to the next one, and with it what the attempt changed.
        if matches!(recover::unfinished(&root), Ok(None)) {
            Protected::forget(&run_dir);
        }
        Ok(code)
    }

    /// A box that is ticked without evidence is only a claim.
    fn tell_claims(&self, store: &Store, reporter: &mut dyn Reporter) -> Result<(), RunError> {
        let done: Vec<&StoryId> =
            self.plan.plan().stories.iter().filter(|story| story.status == Status::Done).map(|story| &story.id).collect();
        if done.is_empty() {
            return Ok(());
        }
        let known = proven(store, &self.plan_name())?;
        let claimed: Vec<&str> = done.into_iter().filter(|id| !known.contains_key(*id)).map(StoryId::as_str).collect();
        if let Some(first) = claimed.first() {
            let more = if claimed.len() > 1 { format!(" and {} more", claimed.len() - 1) } else { String::new() };
            let text = format!("ticked without evidence, so claimed and not verified: {first}{more}");
            reporter.report(Update::Notice { text: &text });
        }
        Ok(())
    }

    fn start_event(&self, run: &RunId) -> Result<Event, RunError> {
        let status = self.git.status()?;
        let stories = &self.plan.plan().stories;
        Ok(Event::RunStarted {
            run: run.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            plan: self.plan_name(),
            format: format_name(self.plan.plan()),
            agent: self.request.config.agent.name.clone(),
            mode: "building".to_owned(),
            stories: stories.len(),
            open: stories.iter().filter(|story| story.status != Status::Done).count(),
            branch: status.branch,
            head: status.head,
            frozen: self.frozen_digest(),
            max_iterations: self.request.config.limits.max_iterations,
            unverified: self.request.unverified,
            gates: Some(gates_digest(&self.request.config)),
            evidence: self.git.last_evidence()?,
        })
    }

    /// One digest over everything that decides: settings, gates and the stories' checks.
    fn frozen_digest(&self) -> String {
        let mut checks: Vec<_> = self.frozen.iter().collect();
        checks.sort_by_key(|(id, _)| *id);
        let all = serde_json::to_vec(&(&self.request.config, &self.gates, checks)).unwrap_or_default();
        digest(&all)
    }
}

/// A run does without a watchdog where none can be started: the next one ends what a killed one left.
pub(crate) fn watch(starting: io::Result<Starting>, run: &RunId, reporter: &mut dyn Reporter) -> Option<Watchdog> {
    let told = |error: io::Error| {
        let text = format!("no watchdog could be started ({error}); if this run is killed, its agent goes on until the next run");
        reporter.report(Update::Notice { text: &text });
    };
    starting.and_then(|starting| starting.watch(run)).map_err(told).ok()
}

/// What every story's evidence names: a gate that was defined otherwise proved something else.
pub(crate) fn gates_digest(config: &Config) -> String {
    let defined = serde_json::to_vec(&config.gate).unwrap_or_default();
    format!("sha256:{}", digest(&defined))
}

/// The name of a format as JSON spells it.
pub fn format_name(plan: &Plan) -> String {
    serde_json::to_value(plan.format).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

/// The stories' own checks, as the plan has them now.
pub(crate) fn freeze(plan: &Plan, config: &Config, root: &Path) -> HashMap<StoryId, Vec<Check>> {
    let path = std::env::var_os("PATH");
    let exists = |program: &str| process::program_exists(program, path.as_deref(), root);
    plan.stories
        .iter()
        .map(|story| (story.id.clone(), site::own_checks(plan_file::resolve_checks(story, exists), config)))
        .filter(|(_, checks)| !checks.is_empty())
        .collect()
}

fn io_error(doing: &str) -> impl FnOnce(io::Error) -> RunError + '_ {
    move |source| RunError::Io { doing: doing.to_owned(), source }
}
