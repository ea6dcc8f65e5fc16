//! The Stop gate on disk: which session a loop holds, what the tree and the plan say when it wants to stop, the verification, and what
//! is kept of the decision. What to decide is the core's; a run has no such gate, its driver is one.

mod alarms;
mod arm;
mod at_work;
mod commit;
mod custody;
mod files;
mod left;
mod look;
mod loop_file;
mod marks;
mod others;
mod ralph;
mod regression;
mod same;
mod transcript;
mod tree;
mod turn;
mod verify;
mod worker;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use verdone_core::check::{Check, CheckRun};
use verdone_core::config::Config;
use verdone_core::hook::{Answer, HookEvent, HookInput, Record, StartSource};
use verdone_core::stop::{
    Base, BlockCause, LoopState, MOST_FAULTS, StopDecision, StopFacts, StopRecord, Yield, fault_words, incomplete_words,
    loop_words,
};

use crate::done::DoneError;
use crate::git::GitError;
use crate::plan_file::PlanFileError;
use crate::seal::Seal;
use crate::signal::Signals;

use files::Task;
use loop_file::Found;

pub(crate) use alarms::tampering;
pub use arm::{ArmError, ArmRequest, Armed, Whose, arm, end};
pub use custody::armed_root;
pub(crate) use files::SessionFiles;
pub use files::{Loops, SessionLoop};
pub use left::{FORGOTTEN_DAYS, LeftLoops};
pub(crate) use regression::checks_of_marked;
pub(crate) use tree::{Tree, look as look_at_tree};
pub use worker::{ARGUMENT, main};

/// While this file is there, nothing is held.
pub const PAUSE: &str = "pause";

#[derive(Debug, thiserror::Error)]
pub enum StopError {
    #[error("{path}: {source}", path = path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{path} cannot be understood: {source}", path = path.display())]
    Broken { path: PathBuf, source: serde_json::Error },
    #[error("{path} was written by a later Verdone (format {version})", path = path.display())]
    Newer { path: PathBuf, version: u32 },
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Plan(#[from] PlanFileError),
    #[error("{path} cannot be read, or is not one that Verdone wrote: the user ends the loop with `{end}`", path = path.display())]
    Copy { path: PathBuf, end: String },
    #[error("the settings cannot be read: {0}")]
    Settings(String),
    #[error("the verification ended without a verdict")]
    NoVerdict,
    #[error("there is no place outside of the work tree for the secret that verdicts are sealed with: set XDG_STATE_HOME")]
    NoSecret,
    #[error("the conditions of [done] cannot be judged: {0}")]
    Conditions(#[from] Box<DoneError>),
}

/// The gate of one session.
#[derive(Debug)]
pub(crate) struct Gate<'a> {
    pub(super) root: &'a Path,
    pub(super) top: &'a Path,
    pub(super) config: &'a Config,
    unreadable: Option<&'a str>,
    pub(super) session: &'a str,
    pub(super) loops: Loops,
    pub(super) files: SessionFiles,
}

/// Whether settings that cannot be read are no reason to be silent about this event: a loop that holds the session has its own.
pub(crate) fn judges_alone(root: &Path, input: &HookInput<'_>) -> bool {
    let asks = matches!(
        input.event,
        HookEvent::Stop { .. }
            | HookEvent::SubagentStop { .. }
            | HookEvent::TaskCompleted { .. }
            | HookEvent::TeammateIdle { .. }
    );
    asks && Loops::of(root).session(&input.common.session).is_held()
}

/// What the gate of a session saw of these checks on the work tree as it is; nothing where it saw another tree or other checks. `ours`
/// are the files that Verdone writes itself.
pub(crate) fn seen_before(
    root: &Path,
    top: &Path,
    session: &str,
    ours: &[PathBuf],
    checks: &[Check],
    story: &str,
) -> Option<(Vec<CheckRun>, bool)> {
    let dir = Loops::of(root).session(session).dir;
    let seal = Seal::from_environment(root, top)?;
    let tree = tree::look(root, top, ours).ok()?;
    let verdict = verify::seen_before(&dir, &seal, &tree.key, checks, story)?;
    Some((verdict.runs, verdict.green))
}

/// The loop of a session, over or not; one that cannot be read is none.
pub(crate) fn loop_of(root: &Path, session: &str) -> Option<LoopState> {
    Loops::of(root).session(session).state().ok()?
}

/// Whether files differ from what they were then; nothing where git cannot tell.
pub(crate) fn differs_from(base: &Base, root: &Path, top: &Path, ours: &[PathBuf]) -> Option<bool> {
    Some(tree::look(root, top, ours).ok()?.differs(base))
}

/// What the gate says to an event.
#[derive(Debug, Default)]
pub(crate) struct Said {
    pub(crate) answer: Answer,
    pub(crate) records: Vec<Record>,
}

impl<'a> Gate<'a> {
    /// `unreadable` says why the settings of the file cannot be read; `config` is not theirs then.
    pub(crate) fn of(root: &'a Path, top: &'a Path, config: &'a Config, unreadable: Option<&'a str>, session: &'a str) -> Self {
        let loops = Loops::of(root);
        let files = loops.session(session);
        Self { root, top, config, unreadable, session, loops, files }
    }

    pub(crate) fn holds(&self) -> bool {
        self.files.is_held()
    }

    /// A command that is about to run: one that starts a loop is remembered, so that the loop finds its session.
    pub(crate) fn sees_command(&self, command: &str) {
        if command.contains("loop start") && command.contains("verdone") {
            self.loops.asks(self.session);
        }
    }

    /// What an agent should know when its session begins: its loop, or what an earlier one left open.
    pub(crate) fn begins(&self, source: StartSource) -> Result<Option<String>, StopError> {
        // A conversation that goes on under another id is not the next session.
        if matches!(source, StartSource::Startup | StartSource::Resume) {
            self.loops.claim(&self.files)?;
        }
        if self.files.has_loop()
            && let Some(state) = self.files.state()?.filter(LoopState::is_active)
        {
            return Ok(Some(loop_words(&state)));
        }
        let Some(mut left) = self.loops.incomplete().filter(|left| !left.told) else { return Ok(None) };
        left.told = true;
        self.loops.keep_incomplete(&left)?;
        Ok(Some(incomplete_words(&left)))
    }

    /// The answer to an event that asks whether something may end; nothing where the event is another one. `judging` is called before
    /// anything that can take longer than an answer.
    pub(crate) fn answer(&self, input: &HookInput<'_>, judging: impl FnOnce() -> Signals) -> Result<Option<Said>, StopError> {
        let judges = matches!(
            input.event,
            HookEvent::Stop { .. }
                | HookEvent::SubagentStop { .. }
                | HookEvent::TaskCompleted { .. }
                | HookEvent::TeammateIdle { .. }
        );
        let found = if !judges || !self.files.has_loop() {
            Found::default()
        } else if matches!(input.event, HookEvent::Stop { .. }) {
            self.files.found()?
        } else {
            // What is odd about the file is told at the end of the turn, where everybody hears it.
            Found { state: self.files.state()?, note: None }
        };
        let (state, mut notes) = (found.state, Vec::from_iter(found.note));
        let frozen = state.as_ref().filter(|state| state.is_active()).and_then(|state| state.settings.clone());
        match (&frozen, self.unreadable) {
            (Some(frozen), why) => {
                notes.extend(frozen.changed(why.map_or(Ok(self.config), Err)));
                let (loops, files) = (self.loops.clone(), self.files.clone());
                Gate { config: &frozen.config, unreadable: None, loops, files, ..*self }.judge(input, state, notes, judging)
            }
            (None, Some(why)) if judges => Err(StopError::Settings(why.to_owned())),
            (None, _) => self.judge(input, state, notes, judging),
        }
    }

    /// The same by settings that count: those of the loop's start.
    fn judge(
        &self,
        input: &HookInput<'_>,
        state: Option<LoopState>,
        notes: Vec<String>,
        judging: impl FnOnce() -> Signals,
    ) -> Result<Option<Said>, StopError> {
        let began = Instant::now();
        let agent = input.common.agent_id.as_deref();
        let active = state.clone().filter(LoopState::is_active);
        let (mut facts, decision, seen) = match &input.event {
            HookEvent::Stop { active, background_tasks, .. } => {
                let background = background_tasks.map(serde_json::value::RawValue::get);
                turn::judge(self, input, turn::Asked { active: *active, background, state, notes: notes.clone() }, judging)?
            }
            HookEvent::SubagentStop { active: held } => match others::subagent(self, active, input, *held, judging)? {
                Some(judged) => judged,
                None => return Ok(None),
            },
            HookEvent::TaskCompleted { task, subject } => {
                let judged = others::task(self, active, judging)?;
                if !matches!(judged, Some((_, StopDecision::Block { .. }, _))) {
                    self.note_task(task, subject, false, agent)?;
                }
                let Some(judged) = judged else { return Ok(None) };
                judged
            }
            HookEvent::TeammateIdle { teammate } => match others::teammate(self, active, teammate, judging)? {
                Some(judged) => judged,
                None => return Ok(None),
            },
            HookEvent::TaskCreated { task, subject } => {
                self.note_task(task, subject, true, agent)?;
                return Ok(None);
            }
            HookEvent::PostToolUse { call, .. } if call.tool == "TaskUpdate" => {
                self.task_is_gone(call.input.get())?;
                return Ok(None);
            }
            HookEvent::SessionEnd { reason } => return self.ends(reason),
            HookEvent::SessionStart { .. }
            | HookEvent::UserPromptSubmit { .. }
            | HookEvent::PreToolUse(_)
            | HookEvent::PermissionRequest(_)
            | HookEvent::PostToolUse { .. }
            | HookEvent::PostToolUseFailure { .. }
            | HookEvent::PostToolBatch
            | HookEvent::ConfigChange { .. }
            | HookEvent::PreCompact
            | HookEvent::PostCompact
            | HookEvent::SubagentStart
            | HookEvent::Notification { .. }
            | HookEvent::StopFailure { .. }
            | HookEvent::Other => return Ok(None),
        };
        if !matches!(input.event, HookEvent::Stop { .. }) {
            facts.notes = notes;
        }
        let mut record = StopRecord::of(&facts, &decision);
        record.alarms = seen.alarms;
        record.tree = seen.tree;
        record.verdict = seen.verdict.map(str::to_owned);
        record.agent_type = input.common.agent_type.as_deref().map(str::to_owned);
        record.ms = began.elapsed().as_millis() as u64;
        self.files.forget_faults();
        Ok(Some(Said {
            answer: decision.answer_with(&input.common.event_name, &facts.notes),
            records: vec![Record::Stop(record)],
        }))
    }

    /// Work that is open when the session ends is written down; a resumed session goes on with it.
    fn ends(&self, reason: &str) -> Result<Option<Said>, StopError> {
        if !self.files.has_loop() {
            return Ok(None);
        }
        let Some(mut state) = self.files.state()?.filter(LoopState::is_active) else { return Ok(None) };
        let story = state.current.as_ref().map(|current| current.story.to_string());
        let left = verdone_core::stop::Incomplete {
            session: self.session.to_owned(),
            story: story.clone(),
            task: state.task.clone(),
            reason: state.let_go.clone().map_or_else(|| reason.to_owned(), |why| format!("{reason}; {why}")),
            at: jiff::Timestamp::now().to_string(),
            told: false,
        };
        self.loops.keep_incomplete(&left)?;
        let reason = left.reason.clone();
        state.incomplete = Some(left);
        self.files.put(&state)?;
        Ok(Some(Said { answer: Answer::Silent, records: vec![Record::Incomplete { story, reason }] }))
    }

    fn note_task(&self, task: &str, subject: &str, open: bool, agent: Option<&str>) -> Result<(), StopError> {
        let cut = |text: &str| text[..text.floor_char_boundary(500)].to_owned();
        self.files.note_task(&Task { id: cut(task), subject: cut(subject), open, agent: agent.map(cut) })
    }

    /// A task that the agent took off its list fires no event of its own.
    fn task_is_gone(&self, input: &str) -> Result<(), StopError> {
        let input: serde_json::Value = serde_json::from_str(input).unwrap_or_default();
        match (input["status"].as_str(), input["taskId"].as_str()) {
            (Some("deleted"), Some(task)) => self.note_task(task, "", false, None),
            (Some(_) | None, _) => Ok(()),
        }
    }
}

/// Where a decision came from, for its record.
#[derive(Debug, Default)]
pub(super) struct Trace {
    pub(super) tree: Option<String>,
    pub(super) verdict: Option<&'static str>,
    pub(super) alarms: Vec<String>,
}

pub(super) type Judged = (StopFacts, StopDecision, Trace);

/// The answer when the gate itself is broken: held at most a few times in a row, then let go with a word about it.
pub(crate) fn fault(session: &SessionFiles, active: bool, cause: &str) -> StopDecision {
    let times = session.count_fault(active);
    if times > MOST_FAULTS {
        let why = Yield::Fault { times: times - 1, cause: cause.to_owned() };
        return StopDecision::Yield { why };
    }
    StopDecision::Block { cause: BlockCause::Fault, reason: fault_words(cause, times) }
}
