//! Starting and ending a loop by hand: what it is about, which session it holds, and everything that is frozen at its start.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use verdone_core::check::CommandSpec;
use verdone_core::config::Config;
use verdone_core::event::Checkpoint;
use verdone_core::id::{RunId, digest};
use verdone_core::plan::progress::max_iterations_in;
use verdone_core::plan::{Progress, Selection, select};
use verdone_core::stop::{Current, Frozen, LOOP_VERSION, LoopState, LoopStatusName, Same};

use crate::approval::{ApprovalError, Approvals};
use crate::git::{CheckpointRequest, Git, GitError, PathSet};
use crate::plan_file::{PlanFile, PlanLocation, resolve_checks};
use crate::process::program_exists;
use crate::project::HOME;
use crate::seal::Seal;
use crate::site::shown;

use super::files::Loops;
use super::{StopError, tree};

/// Whose loop it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    Session(String),
    /// The next session that begins in the project.
    Next,
}

#[derive(Debug)]
pub struct ArmRequest<'a> {
    pub root: &'a Path,
    pub top: &'a Path,
    pub config: &'a Config,
    pub task: &'a str,
    /// Nothing where the gates alone decide.
    pub plan: Option<PlanLocation>,
    pub max_iterations: Option<u32>,
    pub whose: Whose,
}

/// A loop that was started.
#[derive(Debug)]
pub struct Armed {
    pub state: LoopState,
    /// The plan as people know it.
    pub plan: Option<String>,
    /// Stories that have no check of their own.
    pub without_check: usize,
}

#[derive(Debug, thiserror::Error)]
pub enum ArmError {
    #[error("{whose} has a loop already: {task:?}")]
    Already { whose: String, task: String },
    #[error("every story of {plan} is done")]
    NothingOpen { plan: String },
    #[error("nothing could be verified: there is no gate{}", if *.stories { ", and no story has a check of its own" } else { "" })]
    NothingToVerify { stories: bool },
    #[error("{plan} was written by an agent ({agent}), and its commands were not accepted yet")]
    NotApproved { plan: String, agent: String },
    #[error(transparent)]
    Stop(#[from] StopError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Approval(#[from] ApprovalError),
}

/// Starts a loop.
pub fn arm(request: ArmRequest<'_>) -> Result<Armed, ArmError> {
    let ArmRequest { root, top, config, task, plan, max_iterations, whose } = request;
    let loops = Loops::of(root);
    let (held, name) = match &whose {
        Whose::Session(id) => (loops.session(id).state()?.filter(LoopState::is_active), format!("the session {id}")),
        Whose::Next => (loops.next()?, "the next session".to_owned()),
    };
    if let Some(held) = held {
        return Err(ArmError::Already { whose: name, task: held.task });
    }
    let plan = plan.map(PlanFile::open).transpose().map_err(StopError::from)?;
    let plan_name = plan.as_ref().map(|plan| shown(plan.path(), root));
    let ours: Vec<PathBuf> = plan.as_ref().map(PlanFile::protected_paths).unwrap_or_default();
    let seen = tree::look(root, top, &ours)?;
    let mut state = LoopState {
        version: LOOP_VERSION,
        status: LoopStatusName::Active,
        task: task.to_owned(),
        plan: plan.as_ref().map(|plan| plan.path().display().to_string()),
        started_at: Timestamp::now().to_string(),
        max_blocks: max_iterations.or_else(|| plan.as_ref().and_then(limit_beside)).unwrap_or(config.stop.max_blocks),
        blocks: 0,
        base: seen.base(),
        checkpoint: None,
        open: std::collections::BTreeMap::new(),
        marked: Vec::new(),
        current: None,
        gates_were_red: false,
        same: Same::default(),
        waits: 0,
        let_go: None,
        incomplete: None,
        red: std::collections::BTreeMap::new(),
    };
    if let (Some(plan), Some(name)) = (&plan, &plan_name) {
        let approvals = Approvals::read(root)?;
        if let Some(agent) = approvals.missing(name, || plan.document().fingerprint()) {
            return Err(ArmError::NotApproved { plan: name.clone(), agent: agent.to_owned() });
        }
        freeze(plan, root, &mut state);
        if state.open.is_empty() {
            return Err(ArmError::NothingOpen { plan: name.clone() });
        }
    }
    if Seal::from_environment(root, top).is_none() {
        return Err(StopError::NoSecret.into());
    }
    let without_check = state.open.values().filter(|story| story.checks.is_empty()).count();
    if config.gate.is_empty() && without_check == state.open.len() {
        return Err(ArmError::NothingToVerify { stories: plan.is_some() });
    }
    if config.stop.commit && plan.is_some() {
        state.checkpoint = Some(checkpoint(root, config, &ours)?);
    }
    match &whose {
        Whose::Session(id) => loops.session(id).put(&state)?,
        Whose::Next => loops.put_next(&state)?,
    }
    loops.forget_incomplete()?;
    Ok(Armed { state, plan: plan_name, without_check })
}

/// Ends a loop; says whether there was one that held.
pub fn end(root: &Path, whose: &Whose) -> Result<bool, StopError> {
    let loops = Loops::of(root);
    match whose {
        Whose::Next => {
            let waits = loops.next()?.is_some();
            loops.remove_next()?;
            Ok(waits)
        }
        Whose::Session(id) => {
            let files = loops.session(id);
            let Some(mut state) = files.state()?.filter(LoopState::is_active) else { return Ok(false) };
            state.status = LoopStatusName::Stopped;
            state.incomplete = None;
            files.put(&state)?;
            loops.forget_incomplete()?;
            Ok(true)
        }
    }
}

/// The open stories, with their checks as they are now.
fn freeze(plan: &PlanFile, root: &Path, state: &mut LoopState) {
    let path = std::env::var_os("PATH");
    let exists = |program: &str| program_exists(program, path.as_deref(), root);
    for story in plan.plan().open() {
        let checks: Vec<CommandSpec> = resolve_checks(story, exists);
        state.open.insert(story.id.clone(), Frozen { title: story.title.clone(), checks });
    }
    if let Selection::Story { index } = select(plan.plan(), &Progress::default(), None) {
        let story = plan.plan().stories[index].id.clone();
        state.current = Some(Current { story, base: state.base.clone(), was_red: false });
    }
}

fn limit_beside(plan: &PlanFile) -> Option<u32> {
    let beside = plan.path().with_file_name("progress.txt");
    let is_list = plan.path().file_name().is_some_and(|name| name == "feature_list.json");
    let text = crate::regular::read_regular(&beside, 1024 * 1024).ok().filter(|_| is_list)?;
    max_iterations_in(&String::from_utf8_lossy(&text))
}

/// What is untracked now is the user's, and never enters a story's commit.
fn checkpoint(root: &Path, config: &Config, extra: &[PathBuf]) -> Result<Checkpoint, GitError> {
    let git = Git::open(root)?;
    let now = Timestamp::now();
    let random = digest(format!("{now} {}", std::process::id()).as_bytes());
    let chain = RunId(format!("{}-{}", now.strftime("%Y%m%d-%H%M%S"), &random[..4]));
    let skip: PathSet = git.repo_path(&root.join(HOME)).into_iter().collect();
    git.checkpoint(&CheckpointRequest {
        chain: &chain,
        label: "before a loop",
        extra,
        skip: &skip,
        limits: (&config.limits).into(),
    })
}
