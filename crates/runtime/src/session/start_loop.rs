//! Starts and ends a loop manually: its task, the session it holds, and everything that is frozen at its start.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use verdone_core::base::finish::{Finish, StopSignal};
use verdone_core::base::id::{RunId, StoryId, digest};
use verdone_core::base::verdict::Red;
use verdone_core::config::Config;
use verdone_core::engine::session::{Finding, Frozen, FrozenSettings, GateCount, HeldLoop, LOOP_VERSION, LoopStatus, Open, Work};
use verdone_core::journal::event::{Checkpoint, Event, Seal, SealLevel};
use verdone_plan::Status;

use crate::base::finding::{self, Health};
use crate::git::{CheckpointRequest, Git, GitError, PathSet};
use crate::guard::policy_of;
use crate::preflight::{self, Conditioned};
use crate::process::signal::Signals;
use crate::project::approval::{ApprovalError, Approvals};
use crate::project::plan_file::format_name;
use crate::project::plan_file::{PlanFile, PlanLocation};
use crate::project::ralph_state;
use crate::project::shown;
use crate::project::{HOME, Project};
use crate::session::done::gate_facts;
use crate::store::Store;
use crate::verify::checks::gates;
use crate::verify::checks::gates_digest;

use super::drive::{Driver, Parts};
use super::files::Loops;
use super::journal::LoopJournal;
use super::memory::Memory;
use super::plan::{LoopPlan, TASK, frozen};
use super::sealed_copy::{self, Durable, FINDING, LOOP, SealedCopy};
use super::worker_client::end_worker;
use super::{StopError, learn, tree};

/// The owner of a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoopOwner {
    Session(String),
    /// The next session that starts in the project.
    Next,
}

#[derive(Debug)]
pub struct StartLoopRequest<'a> {
    pub project: &'a Project,
    pub config: &'a Config,
    pub task: &'a str,
    /// `None` if only the gates decide.
    pub plan: Option<PlanLocation>,
    pub max_iterations: Option<u32>,
    pub whose: LoopOwner,
}

/// A loop that was started.
#[derive(Debug)]
pub struct StartedLoop {
    pub held: HeldLoop,
    /// The plan's name for people.
    pub plan: Option<String>,
    /// The number of stories without checks.
    pub without_check: usize,
    /// The first story, and the result of its checks before any work.
    pub first: Option<(StoryId, Red)>,
}

#[derive(Debug, thiserror::Error)]
pub enum StartLoopError {
    #[error("{whose} already has a loop for {about}")]
    Already { whose: String, about: String },
    #[error("every story of {plan} is done")]
    NothingOpen { plan: String },
    #[error("nothing can be verified: there is no gate{}", if *.stories { ", and no story has its own check" } else { "" })]
    NothingToVerify { stories: bool },
    #[error("{plan} was written by an agent ({agent}), and its commands have not been approved yet")]
    NotApproved { plan: String, agent: String },
    #[error("{}", .0.message)]
    Refused(finding::Finding),
    #[error("no story can be worked on: {why}")]
    NothingRunnable { why: String },
    #[error("interrupted: no loop was started")]
    Interrupted(StopSignal),
    #[error(transparent)]
    Stop(#[from] StopError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Approval(#[from] ApprovalError),
}

/// Starts a loop.
pub fn start_loop(request: StartLoopRequest<'_>) -> Result<StartedLoop, StartLoopError> {
    let StartLoopRequest { project, config, task, plan, max_iterations, whose } = request;
    let (root, top) = (&project.root, &project.git_top);
    let loops = Loops::new(root);
    let (files, name) = match &whose {
        LoopOwner::Session(id) => (loops.session(id), format!("the session {id}")),
        LoopOwner::Next => (loops.named(sealed_copy::NEXT), "the next session".to_owned()),
    };
    if let Some(held) = files.held()? {
        let plan = held.plan.as_ref().map(|plan| shown(Path::new(plan), root));
        return Err(StartLoopError::Already { whose: name, about: plan.unwrap_or_else(|| format!("{:?}", held.task)) });
    }
    let plan = plan.map(PlanFile::open).transpose().map_err(StopError::from)?;
    let plan_name = plan.as_ref().map(|plan| shown(plan.path(), root));
    let (stories, done_before) = match (&plan, &plan_name) {
        (Some(plan), Some(name)) => {
            let approvals = Approvals::read(root)?;
            if let Some(agent) = approvals.missing(name, || plan.document().fingerprint()) {
                return Err(StartLoopError::NotApproved { plan: name.clone(), agent: agent.to_owned() });
            }
            freeze(plan, root)
        }
        _ => (BTreeMap::from([(StoryId::from(TASK), Frozen { title: task.to_owned(), ..Frozen::default() })]), BTreeSet::new()),
    };
    if let Some(plan) = plan_name.as_ref().filter(|_| stories.is_empty()) {
        return Err(StartLoopError::NothingOpen { plan: plan.clone() });
    }
    let (sealed_copy, folder) =
        files.sealed_copy.as_ref().filter(|(sealed_copy, _)| sealed_copy.has_seal()).ok_or(StopError::NoSecret)?;
    let without_check = stories.values().filter(|story| story.checks.is_empty()).count();
    if config.gate.is_empty() && without_check == stories.len() {
        return Err(StartLoopError::NothingToVerify { stories: plan.is_some() });
    }
    if let Some(finding) = never_done(config, root, &stories, plan.is_some()) {
        return Err(StartLoopError::Refused(finding));
    }
    let file = policy_of(root, top).map_or_else(|_| config.clone(), |file| file.config);
    let ours: Vec<PathBuf> = plan.as_ref().map(|plan| plan.location().files()).unwrap_or_default();
    let git = Git::open(root)?;
    let store = |source| StopError::File { path: Store::new(root).path().to_owned(), source };
    let (run, run_dir) = Store::new(root).create(git.common_dir(), Timestamp::now()).map_err(store)?;
    let held = HeldLoop {
        version: LOOP_VERSION,
        run: run.clone(),
        status: LoopStatus::Active,
        task: task.to_owned(),
        plan: plan.as_ref().map(|plan| plan.path().display().to_string()),
        started_at: Timestamp::now().to_string(),
        max_blocks: max_iterations.or_else(|| plan.as_ref().and_then(PlanFile::max_iterations)).unwrap_or(config.stop.max_blocks),
        settings: FrozenSettings::new(config, &file),
        base: tree::fingerprint(root, top, &ours)?.base(),
        checkpoint: if config.stop.commit && plan.is_some() { Some(checkpoint(&git, &run, root, config)?) } else { None },
        stories,
        done_before,
        gate: GateCount::default(),
    };
    sealed_copy.make(folder)?;
    let session = if let LoopOwner::Session(id) = &whose { id.clone() } else { String::new() };
    let start = Start { project, sealed_copy, folder, git: &git, session };
    let first = start.begin(&held, LoopPlan::new(plan, task)).inspect_err(|_| {
        // Remove everything: the loop does not hold the session, and there was no run.
        let _ = sealed_copy.remove(folder);
        let _ = fs::remove_dir_all(&run_dir);
    })?;
    if let LoopOwner::Session(_) = &whose {
        files.make_folder()?;
    }
    loops.forget_incomplete()?;
    Ok(StartedLoop { held, plan: plan_name, without_check, first })
}

/// Why the loop could never finish: a required condition that cannot be evaluated.
fn never_done(config: &Config, root: &Path, stories: &BTreeMap<StoryId, Frozen>, has_plan: bool) -> Option<finding::Finding> {
    if !config.done.asks_more_than_a_run() {
        return None;
    }
    let stages: Vec<String> = gate_facts(&gates(config), None).into_keys().collect();
    let conditioned = stories.iter().map(|(id, story)| Conditioned {
        story: has_plan.then_some(id),
        complexity: story.complexity,
        has_own_checks: !story.checks.is_empty(),
    });
    let unknown = preflight::never_known(&config.done, &stages, conditioned);
    let asked = [preflight::judge(config, root), preflight::ci(config, root), preflight::conditions("loop", &unknown)];
    asked.into_iter().flatten().find(|finding| finding.health == Health::Bad)
}

/// The context in which a loop starts.
struct Start<'a> {
    project: &'a Project,
    sealed_copy: &'a SealedCopy,
    folder: &'a str,
    git: &'a Git,
    session: String,
}

impl Start<'_> {
    /// Writes the journal up to the agent's first turn. From then on the loop holds the session.
    fn begin(&self, held: &HeldLoop, plan: LoopPlan) -> Result<Option<(StoryId, Red)>, StartLoopError> {
        let signals = Signals::install().unwrap_or_else(|_| Signals::none());
        let event = self.event(held, &plan)?;
        let parts = Parts {
            project: self.project.clone(),
            session: self.session.clone(),
            held: held.clone(),
            journal: LoopJournal::create(self.sealed_copy, self.folder, Store::new(&self.project.root), &held.run),
            memory: Memory::default(),
            plan,
            signals: signals.clone(),
        };
        let mut driver = Driver::new(parts)?;
        let begun = driver.start(event);
        if let Some(signal) = signals.requested() {
            return Err(StartLoopError::Interrupted(signal));
        }
        begun?;
        let Some(attempt) = driver.state().attempt.clone() else {
            return Err(StartLoopError::NothingRunnable { why: driver.journal.end_reason().unwrap_or_default() });
        };
        driver.memory.keep(self.sealed_copy, self.folder)?;
        let open: Open = driver.open();
        let finding = Finding {
            at: Timestamp::now().to_string(),
            asked: String::new(),
            after: String::new(),
            tree: held.base.key.clone(),
            work: Work::Open(open),
            notes: Vec::new(),
            stands: false,
            report: None,
        };
        self.sealed_copy.put(self.folder, FINDING, &finding, Durable::Yes)?;
        self.sealed_copy.put(self.folder, LOOP, held, Durable::Yes)?;
        let red = attempt.red.unwrap_or(Red::Unknown);
        Ok(held.plan.is_some().then_some((attempt.place.story, red)))
    }

    fn event(&self, held: &HeldLoop, plan: &LoopPlan) -> Result<Event, StartLoopError> {
        let config = &held.settings.config;
        let stories = &plan.view.stories;
        let status = self.git.status()?;
        let frozen = serde_json::to_vec(&(config, &held.stories)).unwrap_or_default();
        Ok(Event::RunStarted {
            run: held.run.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            plan: plan.file().map(|file| shown(file.path(), &self.project.root)).unwrap_or_default(),
            format: plan.file().map(|file| format_name(file.plan())).unwrap_or_default(),
            agent: "session".to_owned(),
            mode: "session".to_owned(),
            stories: stories.len(),
            open: stories.iter().filter(|story| story.status != Status::Done).count(),
            branch: status.branch,
            head: status.head,
            target: None,
            // The session belongs to the user and is not confined.
            seal: Some(Seal::new(SealLevel::Unsealed)),
            frozen: digest(&frozen),
            max_iterations: held.max_blocks,
            unchecked: false,
            gates: Some(gates_digest(config)),
            evidence: self.git.last_evidence_of_head()?,
            session: Some(self.session.clone()),
            reviews: BTreeMap::new(),
        })
    }
}

/// Ends a loop. Returns whether one held the session.
pub fn end_loop(root: &Path, whose: &LoopOwner) -> Result<bool, StopError> {
    let ended = end_held_loop(root, whose)?;
    if let (true, LoopOwner::Session(id)) = (ended, whose) {
        // The loop has ended; a lesson that stays does no harm, and the user can delete its line.
        let _ = learn::forget_overridden(root, id);
    }
    if let (true, LoopOwner::Session(id), Some(home)) = (ended, whose, ralph_state::home()) {
        ralph_state::remove_loop(&home, id).map_err(|source| StopError::File { path: home, source })?;
    }
    Ok(ended)
}

fn end_held_loop(root: &Path, whose: &LoopOwner) -> Result<bool, StopError> {
    let loops = Loops::new(root);
    let files = match whose {
        LoopOwner::Next => loops.named(sealed_copy::NEXT),
        LoopOwner::Session(id) => loops.session(id),
    };
    if !files.is_held() {
        return Ok(false);
    }
    // Otherwise the worker would commit and mark a story of a loop that has ended.
    if let Some((sealed_copy, name)) = &files.sealed_copy {
        end_worker(&sealed_copy.dir().join(name));
    }
    let held = files.held();
    // If the user deleted the folder, do not recreate it. A loop that cannot be read can still be ended.
    let Some(held) = held.ok().flatten().filter(|_| root.join(HOME).is_dir()) else {
        files.forget_loop()?;
        return Ok(true);
    };
    if let Ok(Some(mut journal)) = files.journal(&held) {
        journal.end(Finish::Manual, "stopped by the user")?;
    }
    match whose {
        LoopOwner::Next => files.forget_loop()?,
        LoopOwner::Session(_) => files.release(&held, LoopStatus::Stopped)?,
    }
    loops.forget_incomplete()?;
    Ok(true)
}

/// The open stories with their current checks, and the ids of the others.
fn freeze(plan: &PlanFile, root: &Path) -> (BTreeMap<StoryId, Frozen>, BTreeSet<StoryId>) {
    let stories = &plan.plan().stories;
    let (done, open): (Vec<usize>, Vec<usize>) = (0..stories.len()).partition(|index| stories[*index].status == Status::Done);
    let done = done.into_iter().map(|index| stories[index].id.clone()).collect();
    (frozen(plan, &open, root).into_iter().collect(), done)
}

/// Files that are untracked now belong to the user and never become part of a story's commit.
fn checkpoint(git: &Git, run: &RunId, root: &Path, config: &Config) -> Result<Checkpoint, GitError> {
    let skip: PathSet = git.repo_path(&root.join(HOME)).into_iter().collect();
    let largest_file = config.limits.largest_file();
    git.checkpoint(&CheckpointRequest { chain: run, label: "before a loop", skip: &skip, largest_file })
}
