//! Starting and ending a loop by hand: what it is about, which session it holds, and everything that is frozen at its start.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use jiff::Timestamp;
use verdone_core::check::{Check, CheckRun};
use verdone_core::config::Config;
use verdone_core::event::Checkpoint;
use verdone_core::evidence::NotedCheck;
use verdone_core::finish::StopSignal;
use verdone_core::id::{RunId, StoryId, digest};
use verdone_core::plan::progress::max_iterations_in;
use verdone_core::plan::{Progress, Selection, Status, Story, select};
use verdone_core::span::Span;
use verdone_core::stop::{Base, Current, Frozen, FrozenSettings, LOOP_VERSION, LoopState, LoopStatusName, Same};
use verdone_core::tamper::{Said, said};
use verdone_core::verdict::Red;

use crate::approval::{ApprovalError, Approvals};
use crate::check_runner::{CheckContext, Guarded, run_checks};
use crate::git::{CheckpointRequest, Git, GitError, PathSet};
use crate::hook::policy_of;
use crate::known_files::KnownFiles;
use crate::plan_file::{PlanFile, PlanLocation, resolve_checks};
use crate::process::{program_exists, redactor_from_environment};
use crate::project::HOME;
use crate::seal::Seal;
use crate::signal::Signals;
use crate::site::{own_checks, shown, ways};
use crate::step::red_of;
use crate::tamper::words_of;

use super::alarms::sight;
use super::commit::red_proofs;
use super::files::{Loops, file_error};
use super::verify::end_worker;
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
    /// What the checks of the first story say before anybody works on it.
    pub red: Red,
}

#[derive(Debug, thiserror::Error)]
pub enum ArmError {
    #[error("{whose} has a loop already, about {about}")]
    Already { whose: String, about: String },
    #[error("every story of {plan} is done")]
    NothingOpen { plan: String },
    #[error("nothing could be verified: there is no gate{}", if *.stories { ", and no story has a check of its own" } else { "" })]
    NothingToVerify { stories: bool },
    #[error("{plan} was written by an agent ({agent}), and its commands were not accepted yet")]
    NotApproved { plan: String, agent: String },
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
pub fn arm(request: ArmRequest<'_>) -> Result<Armed, ArmError> {
    let ArmRequest { root, top, config, task, plan, max_iterations, whose } = request;
    let loops = Loops::of(root);
    let (held, name) = match &whose {
        Whose::Session(id) => (loops.session(id).state()?.filter(LoopState::is_active), format!("the session {id}")),
        Whose::Next => (loops.next()?, "the next session".to_owned()),
    };
    if let Some(held) = held {
        let plan = held.plan.as_ref().map(|plan| shown(Path::new(plan), root));
        return Err(ArmError::Already { whose: name, about: plan.unwrap_or_else(|| format!("{:?}", held.task)) });
    }
    let plan = plan.map(PlanFile::open).transpose().map_err(StopError::from)?;
    let plan_name = plan.as_ref().map(|plan| shown(plan.path(), root));
    let ours: Vec<PathBuf> = plan.as_ref().map(PlanFile::protected_paths).unwrap_or_default();
    let mut state = LoopState {
        version: LOOP_VERSION,
        status: LoopStatusName::Active,
        task: task.to_owned(),
        plan: plan.as_ref().map(|plan| plan.path().display().to_string()),
        started_at: Timestamp::now().to_string(),
        max_blocks: max_iterations.or_else(|| plan.as_ref().and_then(limit_beside)).unwrap_or(config.stop.max_blocks),
        blocks: 0,
        base: Base::default(),
        settings: None,
        tree: None,
        start: None,
        git: None,
        checkpoint: None,
        open: std::collections::BTreeMap::new(),
        done_before: None,
        marked: Vec::new(),
        reopened: Vec::new(),
        at_most: std::collections::BTreeMap::new(),
        alarms: Vec::new(),
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
    let file = policy_of(root, top).map_or_else(|_| config.clone(), |file| file.config);
    state.settings = Some(FrozenSettings::of(config, &file));
    let (red, failed) = see_red(root, config, &state)?;
    let seen = tree::look(root, top, &ours)?;
    state.base = seen.base();
    state.tree = Some(Git::open(root)?.tree_now(config.limits.largest_file(), &mut KnownFiles::of(root, top))?.tree);
    state.start.clone_from(&state.tree);
    state.git = Some(sight(root, top, &ours)?);
    if let Some(current) = &mut state.current {
        (current.base, current.was_red) = (state.base.clone(), red == Red::Red);
        state.red.insert(current.story.clone(), failed);
    }
    if let Some(first) = state.current.as_ref().map(|current| current.story.clone()) {
        state.saw_before(&first, red);
    }
    if config.stop.commit && plan.is_some() {
        state.checkpoint = Some(checkpoint(root, config)?);
    }
    match &whose {
        Whose::Session(id) => loops.session(id).put(&state)?,
        Whose::Next => loops.put_next(&state)?,
    }
    loops.forget_incomplete()?;
    Ok(Armed { state, plan: plan_name, without_check, red })
}

/// Ends a loop; says whether there was one that held.
pub fn end(root: &Path, whose: &Whose) -> Result<bool, StopError> {
    let loops = Loops::of(root);
    match whose {
        Whose::Next => {
            // What nobody can read, the user can end.
            let waits = loops.next().map_or(true, |next| next.is_some());
            loops.remove_next()?;
            Ok(waits)
        }
        Whose::Session(id) => {
            let files = loops.session(id);
            let Ok(state) = files.state() else {
                files.forget_loop()?;
                return Ok(true);
            };
            let Some(mut state) = state.filter(LoopState::is_active) else { return Ok(false) };
            if !root.join(HOME).is_dir() {
                // The user deleted it, and wants none of it back.
                files.forget_loop()?;
                return Ok(true);
            }
            state.status = LoopStatusName::Stopped;
            state.incomplete = None;
            files.put(&state)?;
            // What it verifies now would be committed and marked for nobody.
            end_worker(&files.dir);
            loops.forget_incomplete()?;
            Ok(true)
        }
    }
}

/// The open stories, with their checks as they are now.
fn freeze(plan: &PlanFile, root: &Path, state: &mut LoopState) {
    let stories = &plan.plan().stories;
    let (done, open): (Vec<usize>, Vec<usize>) = (0..stories.len()).partition(|index| stories[*index].status == Status::Done);
    state.done_before = Some(done.into_iter().map(|index| stories[index].id.clone()).collect());
    state.open.extend(frozen(plan, &open, root));
    if let Selection::Story { index } = select(plan.plan(), &Progress::default(), None) {
        let story = plan.plan().stories[index].id.clone();
        state.current = Some(Current { story, base: state.base.clone(), was_red: false });
    }
}

/// These stories as they are now.
pub(super) fn frozen(plan: &PlanFile, stories: &[usize], root: &Path) -> Vec<(StoryId, Frozen)> {
    let path = std::env::var_os("PATH");
    let exists = |program: &str| program_exists(program, path.as_deref(), root);
    let one = |index: &usize| {
        let story: &Story = &plan.plan().stories[*index];
        let words = words_of(story);
        let words = if said(&words) == Said::default() { String::new() } else { words };
        let marks = if story.status == Status::Done { Vec::new() } else { plan.document().marks_of(*index) };
        let scope = story.scope.to_vec();
        let checks = resolve_checks(story, exists);
        let (title, complexity) = (story.title.clone(), story.complexity);
        let frozen = Frozen { title, checks, scope, complexity, words, marks, unaccepted: false };
        (story.id.clone(), frozen)
    };
    stories.iter().map(one).collect()
}

/// Tries the checks of the first story: what passes later proves something only if it fails now. Given up after a while.
fn see_red(root: &Path, config: &Config, state: &LoopState) -> Result<(Red, Vec<NotedCheck>), ArmError> {
    let first = state.current.as_ref().and_then(|current| state.open.get(&current.story));
    let checks = own_checks(first.map(|first| first.checks.clone()).unwrap_or_default(), config);
    if checks.is_empty() {
        return Ok((Red::Absent, Vec::new()));
    }
    let signals = Signals::install().unwrap_or_else(|_| Signals::none());
    // Nobody reads their output; a command that is killed leaves nothing in the project.
    let dir = tempfile::Builder::new().prefix("verdone-red-check-").tempdir();
    let dir = dir.map_err(|source| file_error(&std::env::temp_dir(), source))?;
    let runs = run_first(&checks, root, config, dir.path(), &signals).map_err(|source| file_error(dir.path(), source))?;
    if let Some(signal) = signals.requested() {
        return Err(ArmError::Interrupted(signal));
    }
    let red = red_of(&runs);
    let cut_short = runs.len() < checks.len() && red != Red::Red;
    Ok((if cut_short { Red::Unknown } else { red }, red_proofs(&runs)))
}

/// One after the other, in this very process: they end with it.
fn run_first(checks: &[Check], root: &Path, config: &Config, dir: &Path, signals: &Signals) -> io::Result<Vec<CheckRun>> {
    fs::create_dir(dir.join("checks"))?;
    let began = Instant::now();
    let grace = config.limits.grace.duration();
    let guarded = Guarded::begin(grace);
    let redactor = redactor_from_environment(&[]);
    let mut runs = Vec::new();
    for check in checks {
        let left = config.stop.wait.duration().saturating_sub(began.elapsed());
        if left.is_zero() || signals.requested().is_some() {
            break;
        }
        let left = Span::from_millis(left.as_millis() as u64);
        let timeout = if check.timeout.limit().is_some() { check.timeout.min(left) } else { left };
        let context = CheckContext {
            written: None,
            inside: None,
            cwd: root,
            run_dir: dir,
            number: 1 + runs.len() as u32,
            env: guarded.env(),
            cap: config.limits.output_bytes,
            grace,
            redactor: &redactor,
            ways: ways(&config.gates),
        };
        let results = run_checks(&[Check { timeout, ..check.clone() }], &context, signals, &mut |_| {})?;
        runs.extend(results.into_iter().map(|result| result.run));
    }
    Ok(runs)
}

fn limit_beside(plan: &PlanFile) -> Option<u32> {
    let beside = plan.path().with_file_name("progress.txt");
    let is_list = plan.path().file_name().is_some_and(|name| name == "feature_list.json");
    let text = crate::regular::read_regular(&beside, 1024 * 1024).ok().filter(|_| is_list)?;
    max_iterations_in(&String::from_utf8_lossy(&text))
}

/// What is untracked now is the user's, and never enters a story's commit.
fn checkpoint(root: &Path, config: &Config) -> Result<Checkpoint, GitError> {
    let git = Git::open(root)?;
    let now = Timestamp::now();
    let random = digest(format!("{now} {}", std::process::id()).as_bytes());
    let chain = RunId(format!("{}-{}", now.strftime("%Y%m%d-%H%M%S"), &random[..4]));
    let skip: PathSet = git.repo_path(&root.join(HOME)).into_iter().collect();
    git.checkpoint(&CheckpointRequest {
        chain: &chain,
        label: "before a loop",
        skip: &skip,
        largest_file: config.limits.largest_file(),
    })
}
