//! A run from the outside: prepares it, refuses with a reason, or drives it to its end.

mod branch;
mod checkout_lock;
pub mod context;
pub mod driver;
pub mod land;
pub mod lifecycle;
mod merge_request;
mod plan;
pub mod planning;
pub mod prune;
pub mod recover;
mod requests;
pub mod review;
pub mod step;
mod ticked;
mod tool_calls;
mod tool_socket;
pub mod undo;
mod unused_user_notes;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use jiff::Timestamp;
use verdone_core::base::id::{Oid, RunId, StoryId, digest};
use verdone_core::check::Check;
use verdone_core::config::{Config, LandMode};
use verdone_core::done::{KnownBeforeWork, best_case, stated_complexity};
use verdone_core::engine::prompt;
use verdone_core::engine::run::Rules;
use verdone_core::journal::event::{Event, Seal};
use verdone_core::journal::update::{Reporter, Update};
use verdone_plan::{Plan, Problem, ReviewState, Status};

use crate::agent::{RunAgent, check_agent};
use crate::base::active_clock::Stopwatch;
use crate::base::finding::{Finding, Health};
use crate::git::{Git, GitError};
use crate::guard::Guard;
use crate::preflight::{self, Conditioned};
use crate::process::notify::{self, Deliveries, Notifier};
use crate::process::signal::Signals;
use crate::process::sleep_inhibitor::SleepInhibitor;
use crate::process::watchdog::{Starting, Watchdog};
use crate::process::{self, RUN_VARIABLE};
use crate::project::Project;
use crate::project::approval::not_approved;
use crate::project::approval::{ApprovalError, Approvals};
use crate::project::config_file::SettingsError;
use crate::project::plan_file::format_name;
use crate::project::plan_file::{self, FindError, PlanFile, PlanFileError, PlanRequest};
use crate::project::shown;
use crate::project::template::read_template;
use crate::run::context::{AttemptContext, RunContext, RunSetup};
use crate::run::driver::Driver;
use crate::run::lifecycle::Scripts;
use crate::run::recover::RecoverError;
use crate::run::tool_socket::ToolSocket;
use crate::session::done;
use crate::store::{Holder, Journal, JournalError, LockError, Store};
use crate::verify::Results;
use crate::verify::checks;
use crate::verify::checks::gates_digest;
use crate::workspace::{WorkspaceError, WorkspaceRequest, Workspaces};

pub use branch::{RunBranch, Wanted};
pub use checkout_lock::CheckoutLock;
pub use plan::{Refreshed, RunPlan, RunPlanError};
pub use ticked::proven_stories;

/// The user's request, with all settings merged.
#[derive(Debug)]
pub struct RunRequest {
    pub project: Project,
    pub plan: PlanRequest,
    pub config: Config,
    pub only: Option<StoryId>,
    pub red_baseline: bool,
    /// Also commit stories that no check covers.
    pub unchecked: bool,
    /// The branch for the story commits.
    pub branch: Option<String>,
    /// Start over from HEAD, ignoring earlier runs of the plan.
    pub fresh: bool,
    /// The project's specifications folder, for lifecycle scripts. Default: `specs`.
    pub spec_dir: Option<PathBuf>,
    /// Variables for lifecycle scripts, from a fresher project.
    pub exports: Vec<(String, String)>,
    /// Warnings about the settings.
    pub warnings: Vec<String>,
    /// A flag or variable gives the limit of iterations, so `progress.txt` does not.
    pub limit_given: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The user must fix something first.
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
    Workspace(#[from] WorkspaceError),
    #[error(transparent)]
    RunPlan(#[from] RunPlanError),
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error("{doing}: {source}")]
    Io { doing: String, source: io::Error },
}

/// A prepared run.
#[derive(Debug)]
pub struct Ready {
    pub request: RunRequest,
    pub git: Git,
    pub plan: PlanFile,
    pub gates: Vec<Check>,
    pub frozen: HashMap<StoryId, Vec<Check>>,
    /// The prompt template and where it came from.
    pub template: (String, String),
}

impl Ready {
    /// Reads everything that a run needs. Checks nothing yet.
    pub fn read(mut request: RunRequest) -> Result<Self, RunError> {
        let git = Git::open(&request.project.root)?;
        let plan = PlanFile::open(plan_file::find(&request.plan)?)?;
        if let Some(limit) = plan.max_iterations().filter(|_| !request.limit_given) {
            request.config.limits.max_iterations = limit;
        }
        let gates = checks::gates(&request.config);
        let frozen = freeze(plan.plan(), &request.config, &request.project.root);
        if let Some(only) = &mut request.only {
            let Some(meant) = plan.plan().story_meant(only) else {
                let known: Vec<&str> = plan.plan().stories.iter().map(|story| story.id.as_str()).take(20).collect();
                let message = format!("{} has no story {:?}", shown(plan.path(), &request.project.start), only.as_str());
                return Err(RunError::Refused(Finding::bad("story", message, [&format!("its stories: {}", known.join(", "))])));
            };
            only.clone_from(&meant.id);
            if meant.status == Status::Done {
                let finding = ticked::already_done(only, &shown(plan.path(), &request.project.start));
                return Err(RunError::Refused(finding));
            }
        }
        let template =
            read_template(&request.project.root, "building", prompt::BUILDING).map_err(io_error("reading the template"))?;
        Ok(Self { request, git, plan, gates, frozen, template })
    }

    /// All preconditions, met or not.
    pub fn examine(&self) -> Result<Vec<Finding>, RunError> {
        let root = &self.request.project.root;
        // Run these processes in parallel.
        let (status, identity, filters) = std::thread::scope(|scope| {
            let identity = scope.spawn(|| self.git.identity());
            let filters = scope.spawn(|| preflight::filters(&self.git, root));
            let status = self.git.status();
            let identity = identity.join().unwrap_or(Err(GitError::Missing));
            (status, identity, filters.join().unwrap_or(Err(GitError::Missing)))
        });
        let filters = filters?;
        // Without a required filter, git may not even be able to report changes.
        if status.is_err() && !filters.is_empty() {
            return Ok(filters);
        }
        let status = status?;
        let mut findings = filters;
        findings.extend(preflight::repository(&self.git, &status, identity, &self.ours()));
        findings.push(check_agent(&self.request.config, root));
        findings.extend(preflight::judge(&self.request.config, root));
        findings.extend(preflight::ci(&self.request.config, root));
        findings.extend(notify::examine(&self.request.config, root));
        let own = |id: &StoryId| self.frozen.get(id).map_or(&[][..], Vec::as_slice);
        findings.extend(preflight::checks(self.plan.plan(), &self.gates, own, self.request.unchecked, root));
        findings.extend(self.approval()?);
        findings.extend(self.conditions()?);
        Ok(findings)
    }

    /// An unapproved plan written by an agent decides nothing, not even the branch.
    pub(crate) fn approval(&self) -> Result<Option<Finding>, RunError> {
        let approvals = Approvals::read(&self.request.project.root)?;
        Ok(not_approved(&approvals, &self.plan_name(), || self.plan.document().fingerprint()))
    }

    /// Conditions that no agent could meet: a run would only waste money.
    fn conditions(&self) -> Result<Option<Finding>, RunError> {
        let done = &self.request.config.done;
        if !done.asks_more_than_a_run() {
            return Ok(None);
        }
        let stages: Vec<String> = done::gate_facts(&self.gates, None).into_keys().collect();
        let stories = || self.plan.plan().open().filter(|story| self.request.only.as_ref().is_none_or(|only| *only == story.id));
        let conditioned = stories().map(|story| Conditioned {
            story: Some(&story.id),
            complexity: story.complexity,
            has_own_checks: self.frozen.get(&story.id).is_some_and(|checks| !checks.is_empty()),
        });
        let unknown = preflight::never_known(done, &stages, conditioned);
        if !unknown.is_empty() {
            return Ok(preflight::conditions("run", &unknown));
        }
        let approvals = Approvals::read(&self.request.project.root)?;
        let hardest = stories().max_by_key(|story| stated_complexity(done, story.complexity).value);
        let plan = done::plan_found(&self.plan, hardest, &self.plan_name(), &approvals);
        let report = best_case(done, KnownBeforeWork { plan, has_own_checks: true, stages: &stages });
        Ok(preflight::conditions("run", &report.open()))
    }

    /// Whether a repository path belongs to Verdone or the plan: a run reads those from the checkout.
    pub fn ours(&self) -> impl Fn(&Path) -> bool {
        let (top, home, protected) =
            (self.git.top().to_owned(), self.request.project.root.join(".verdone"), self.plan.protected_paths());
        move |path| {
            let path = top.join(path);
            path.starts_with(&home) || protected.contains(&path)
        }
    }

    pub fn plan_name(&self) -> String {
        shown(self.plan.path(), &self.request.project.root)
    }

    /// The branch that the run would work on.
    pub fn branch(&self) -> Result<RunBranch, RunError> {
        let named = self.request.branch.as_deref().or(self.plan.plan().branch.as_deref());
        let wanted = Wanted { named, fresh: self.request.fresh, plan: &self.plan_name() };
        RunBranch::choose(&self.git, &Store::new(&self.request.project.root), &wanted)
    }

    fn rules(&self) -> Rules {
        let config = &self.request.config;
        Rules {
            limits: config.limits.clone(),
            red_check: config.red_check,
            red_baseline: self.request.red_baseline,
            fail_behavior: config.hooks.fail_behavior,
            land_each: config.run.land == LandMode::Auto,
            pause_at: config.agent.claude.pause_at,
            on_review: config.run.on_review.unwrap_or_else(|| plan::on_review(self.plan.plan())),
            regression: config.regression.clone(),
        }
    }

    /// The workspaces of a run. Nothing is created until they are opened.
    pub fn workspaces(&self, run: &RunId, run_dir: &Path) -> Result<Workspaces, RunError> {
        let RunRequest { project, config, .. } = &self.request;
        let objects = self.git.object_folders()?;
        Ok(Workspaces::new(&WorkspaceRequest { project, config, run: run.as_str(), run_dir, objects }))
    }

    /// Builds the context of a run. Writes nothing before the first step.
    pub fn into_context(
        self,
        (run, run_dir): (RunId, PathBuf),
        branch: &RunBranch,
        spaces: Workspaces,
        signals: Signals,
    ) -> Result<(RunContext, Rules), RunError> {
        let rules = self.rules();
        let Self { request, git, plan, gates, frozen, template } = self;
        let RunRequest { project, config, only, spec_dir, exports, unchecked, .. } = request;
        let root = project.root;
        let agent = RunAgent::new(config.agent.name, git.common_dir(), || Guard::of_run(&root, git.top(), &run_dir))?;
        let start = git.merge_base(&branch.head, &branch.tip)?.unwrap_or_else(|| branch.tip.clone());
        let secrets: Vec<_> = exports.iter().cloned().chain(notify::webhook_secret(&config)).collect();
        let redactor = process::redactor_from_environment(&secrets);
        let setup = RunSetup {
            start,
            branch: branch.name_for(&run),
            target: branch.target.clone(),
            scripts: Scripts::freeze(&root),
            spec_dir: spec_dir.unwrap_or_else(|| root.join("specs")),
            redactor: Arc::new(redactor),
            clock: Stopwatch::start(),
            since: SystemTime::now(),
            done_before: BTreeSet::new(),
            root,
            run,
            run_dir,
            config,
            gates,
            frozen,
            only,
            signals,
            template,
            unchecked,
            exports,
        };
        let context = RunContext {
            attempt: AttemptContext { since: setup.since, candidate: None, claims_from: 0, lessons: Vec::new(), question: None },
            tip: branch.tip.clone(),
            plan: RunPlan::of_user(&git, plan),
            git: git.marked(RUN_VARIABLE, setup.run.as_str()),
            spaces,
            results: Results::default(),
            built: None,
            judged: Vec::new(),
            ci_answers: Vec::new(),
            green: None,
            turns_run: 0,
            checks_run: 0,
            agent,
            tools: None,
            setup,
        };
        Ok((context, rules))
    }

    /// What the plan's author should know: boxes and headings that are no stories, labels with typos, and so on.
    pub fn plan_warnings(&self) -> Vec<String> {
        let name = self.plan_name();
        let text = |problem: &Problem| match &problem.hint {
            Some(hint) => format!("{name}:{}: {} ({hint})", problem.line, problem.message),
            None => format!("{name}:{}: {}", problem.line, problem.message),
        };
        self.plan.plan().warnings.iter().map(text).collect()
    }

    /// Drives the run to its end. Returns its exit code.
    pub fn run(self, ours: CheckoutLock, signals: Signals, reporter: &mut dyn Reporter) -> Result<Ended, RunError> {
        let CheckoutLock { mut lock } = ours;
        let store = Store::new(&self.request.project.root);
        for text in self.request.warnings.iter().chain(&self.plan_warnings()) {
            reporter.report(Update::Notice { text });
        }
        for finding in self.examine()? {
            match finding.health {
                Health::Bad => return Err(RunError::Refused(finding)),
                Health::Warning | Health::Neutral => reporter.report(Update::Notice { text: &finding.in_a_line() }),
                Health::Good => {}
            }
        }
        let branch = self.branch()?;
        branch.announce(&self.git, reporter)?;
        // Start the watchdog only now: the checks before ran programs and ended their
        // leftovers, which could have included a starting watchdog.
        let watchdog = Watchdog::start(self.request.config.limits.grace.duration());
        let known = proven_stories(&self.git, &store, (&self.plan_name(), self.plan.plan()), &branch.tip)?;
        let done_before = ticked::announce(&known, self.plan.plan(), &self.git, reporter)?;
        let now = Timestamp::now();
        let created = store.create(self.git.common_dir(), now);
        let (run, run_dir) = created.map_err(io_error(&format!("creating the run directory in {}", store.path().display())))?;
        let watchdog = watch(watchdog, &run, reporter);
        process::adopt_orphans();
        let inhibitor = self.request.config.run.inhibit_sleep.then(|| SleepInhibitor::start(&run)).flatten();
        let holder = Holder { pid: std::process::id(), run: Some(run.clone()), since: now.to_string() };
        lock.record_holder(&holder).map_err(io_error("writing the lock"))?;
        // If the state is unreadable, nothing is resumed; a fresh session is always correct.
        let left = recover::left_session(&store, &run, &self.plan_name()).unwrap_or_default().filter(|_| !self.request.fresh);
        unused_user_notes::carry_over(&store, &run, &self.plan_name())
            .map_err(io_error("carrying over notes of the last run"))?;
        let mut spaces = self.workspaces(&run, &run_dir)?;
        let folder = spaces.open(&self.git)?;
        for text in spaces.take_notes() {
            reporter.report(Update::Notice { text: &text });
        }
        let user = PlanFile::open(self.plan.location().clone())?;
        let plan = RunPlan::open(&self.git, user, &branch.tip, &branch.head, &folder.join("plan"))?;
        let start = self.start_event(&run, &branch, spaces.seal(), plan.plan())?;
        let (mut context, rules) = self.into_context((run, run_dir), &branch, spaces, signals)?;
        context.agent.resume(left);
        context.plan = plan;
        context.setup.done_before = done_before;
        context.tools = ToolSocket::of_run(&context.setup.run_dir, reporter);
        let journal = Journal::create(&context.setup.run_dir)?;
        if branch.at.as_ref() != Some(&branch.tip) {
            context.git.set_branch(&context.setup.branch, &branch.tip, branch.at.as_ref())?;
        }
        let name = context.setup.branch.clone();
        let mut notifier = Notifier::new(&context.setup.config, &context.setup.root, reporter);
        let code = Driver::new(context, rules, journal, &mut notifier).run(start)?;
        let notifications = notifier.into_deliveries();
        drop(inhibitor);
        if let Some(watchdog) = watchdog {
            watchdog.dismiss();
        }
        Ok(Ended { code, branch: name, began_at: branch.tip, notifications })
    }

    fn start_event(&self, run: &RunId, branch: &RunBranch, seal: Seal, plan: &Plan) -> Result<Event, RunError> {
        let stories = &plan.stories;
        Ok(Event::RunStarted {
            run: run.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            plan: self.plan_name(),
            format: format_name(self.plan.plan()),
            agent: self.request.config.agent.name.name().to_owned(),
            mode: "building".to_owned(),
            stories: stories.len(),
            open: stories.iter().filter(|story| story.status != Status::Done).count(),
            branch: Some(branch.name_for(run)),
            head: Some(branch.tip.clone()),
            target: branch.target.clone(),
            seal: Some(seal),
            frozen: self.frozen_digest(),
            max_iterations: self.request.config.limits.max_iterations,
            unchecked: self.request.unchecked,
            gates: Some(gates_digest(&self.request.config)),
            reviews: self.reviews()?,
            evidence: self.git.last_evidence(&branch.tip)?,
            session: None,
        })
    }

    /// Stories from earlier runs that need review.
    fn reviews(&self) -> Result<BTreeMap<StoryId, ReviewState>, RunError> {
        let (store, plan) = (Store::new(&self.request.project.root), self.plan_name());
        let found = review::pending(&store)?.into_iter().filter(|review| review.plan == plan);
        Ok(found.map(|review| (review.place.story.clone(), review.waiting)).collect())
    }

    /// One digest of everything that decides: settings, gates and the stories' checks.
    fn frozen_digest(&self) -> String {
        let mut checks: Vec<_> = self.frozen.iter().collect();
        checks.sort_by_key(|(id, _)| *id);
        let all = serde_json::to_vec(&(&self.request.config, &self.gates, checks)).unwrap_or_default();
        digest(&all)
    }
}

/// How a run ended, and where its commits are.
#[derive(Debug)]
pub struct Ended {
    pub code: u8,
    pub branch: String,
    /// The tip of the branch when the run started.
    pub began_at: Oid,
    /// Notifications that are still on their way.
    pub notifications: Deliveries,
}

/// If no watchdog can be started, the run continues without one: after a kill, the next run cleans up.
pub(crate) fn watch(starting: io::Result<Starting>, run: &RunId, reporter: &mut dyn Reporter) -> Option<Watchdog> {
    let told = |error: io::Error| {
        let text =
            format!("cannot start a watchdog ({error}); if this run is killed, its agent keeps running until the next run");
        reporter.report(Update::Notice { text: &text });
    };
    starting.and_then(|starting| starting.watch(run)).map_err(told).ok()
}

/// The stories' own checks, as currently in the plan.
pub(crate) fn freeze(plan: &Plan, config: &Config, root: &Path) -> HashMap<StoryId, Vec<Check>> {
    let path = std::env::var_os("PATH");
    let exists = |program: &str| process::program_exists(program, path.as_deref(), root);
    plan.stories
        .iter()
        .map(|story| (story.id.clone(), checks::own_checks(plan_file::resolve_checks(story, exists), config)))
        .filter(|(_, checks)| !checks.is_empty())
        .collect()
}

fn io_error(doing: &str) -> impl FnOnce(io::Error) -> RunError + '_ {
    move |source| RunError::Io { doing: doing.to_owned(), source }
}
