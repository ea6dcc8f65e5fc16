//! The Stop gate of sessions that Verdone did not start, and their loops. The hook asks and answers (`turn`, `subagents`, `worker_client`). The worker
//! verifies, marks, commits and writes the journal (`worker`, `drive` and its steps). The core decides. Runs need no such gate, because
//! their driver verifies the work.

mod abandoned;
mod checkout;
pub mod claims;
mod commit;
pub mod done;
mod drive;
mod files;
mod journal;
mod learn;
mod memory;
mod notices;
mod orchestrated;
mod other_tools_state;
mod plan;
mod plan_messages;
mod regression;
mod sealed_copy;
mod start_loop;
mod state_files;
mod subagents;
mod team_counts;
pub mod tools;
mod transcript;
mod tree;
mod turn;
mod turn_limit;
mod verify;
mod worker;
mod worker_client;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use verdone_core::check::CheckRun;
use verdone_core::config::Config;
use verdone_core::engine::session::{
    Base, BlockCause, HeldLoop, Incomplete, MOST_FAULTS, ReleaseReason, StopDecision, StopFacts, StopRecord, StoryToDo, Work,
    fault_words, incomplete_words, loop_words, seen_on_tree,
};
use verdone_core::hook::{Answer, HookEvent, HookInput, Record, StartSource};

use crate::git::GitError;
use crate::guard::{GateAnswer, SessionGate};
use crate::process::signal::Signals;
use crate::project::plan_file::PlanFileError;
use crate::session::done::DoneError;
use crate::verify::VerifyError;
use crate::workspace::WorkspaceError;

use files::Task;
use subagents::TeamWork;

pub use abandoned::{AbandonedLoops, FORGOTTEN_DAYS};
pub(crate) use files::SessionFiles;
pub use files::{Loops, SeenLoop, SessionLoop};
pub use sealed_copy::root_of_held_loop;
pub use start_loop::{LoopOwner, StartLoopError, StartLoopRequest, StartedLoop, end_loop, start_loop};
pub(crate) use tree::{Tree, fingerprint as look_at_tree};
pub use worker::{ARGUMENT, main};

/// The message if an earlier version left a loop.
const OLD_LOOP: &str = "a loop in this session was started by an earlier version of Verdone and cannot continue: start it again \
                        with `verdone loop start`";

/// While this file exists, no session is held.
pub const PAUSE: &str = "pause";

#[derive(Debug, thiserror::Error)]
pub enum StopError {
    #[error("{path}: {source}", path = path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{path} cannot be parsed: {source}", path = path.display())]
    Broken { path: PathBuf, source: serde_json::Error },
    #[error("{path} was written by a newer version of Verdone (format {version})", path = path.display())]
    Newer { path: PathBuf, version: u32 },
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Plan(#[from] PlanFileError),
    #[error("{path} cannot be read or was not written by Verdone: the user can end the loop with `{end}`", path = path.display())]
    Copy { path: PathBuf, end: String },
    #[error("the settings cannot be read: {0}")]
    Settings(String),
    #[error("the verification ended without a result")]
    NoVerdict,
    #[error("the verification was cancelled")]
    CalledOff,
    #[error("git uses the files in {}, not those of the project: see `git config core.worktree`", top.display())]
    Elsewhere { top: PathBuf },
    #[error(transparent)]
    Verify(#[from] VerifyError),
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    #[error("there is no place outside the work tree for the secret that seals findings: set XDG_STATE_HOME")]
    NoSecret,
    #[error("cannot evaluate the conditions in [done]: {0}")]
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

/// Whether the gate must answer this event even if the settings cannot be read: a loop that holds the session has its own settings.
pub(crate) fn must_answer_without_settings(root: &Path, input: &HookInput<'_>) -> bool {
    let asks = matches!(
        input.event,
        HookEvent::Stop { .. }
            | HookEvent::SubagentStop { .. }
            | HookEvent::TaskCompleted { .. }
            | HookEvent::TeammateIdle { .. }
    );
    asks && Loops::new(root).session(&input.common.session).is_held()
}

/// Results of the loop's last verification if it saw exactly the current work tree, and whether nothing failed. `None` if it saw another
/// tree. `ours` are the files that Verdone itself writes.
pub(crate) fn seen_before(root: &Path, top: &Path, session: &str, ours: &[PathBuf]) -> Option<(Vec<CheckRun>, bool)> {
    let finding = Loops::new(root).session(session).finding().ok()??;
    let tree = tree::fingerprint(root, top, ours).ok()?;
    let (runs, passed) = seen_on_tree(&finding)?;
    (finding.tree == tree.key).then(|| (runs.to_vec(), passed))
}

/// The loop of a session, ended or not, and its current story. An unreadable loop counts as none.
pub(crate) fn loop_of(root: &Path, session: &str) -> Option<SeenLoop> {
    Loops::new(root).session(session).seen().ok()?
}

/// Whether files differ from that base. `None` if git cannot tell.
pub(crate) fn differs_from(base: &Base, root: &Path, top: &Path, ours: &[PathBuf]) -> Option<bool> {
    Some(tree::fingerprint(root, top, ours).ok()?.differs(base))
}

impl SessionGate for Gate<'_> {
    /// If the command starts a loop, remembers the session, so that the loop can find it.
    fn sees_command(&self, command: &str) {
        if command.contains("loop start") && command.contains("verdone") {
            self.loops.remember_starting_loop(self.session);
        }
    }

    fn holds(&self) -> bool {
        self.files.is_held()
    }

    fn begins(&self, source: StartSource) -> Result<Option<String>, String> {
        self.greet(source).map_err(|error| error.to_string())
    }

    fn answer(&self, input: &HookInput<'_>, judging: &mut dyn FnMut() -> Signals) -> Result<Option<GateAnswer>, String> {
        self.respond(input, judging).map_err(|error| error.to_string())
    }
}

impl<'a> Gate<'a> {
    /// `unreadable` says why the settings file cannot be read; `config` then holds other settings.
    pub(crate) fn new(root: &'a Path, top: &'a Path, config: &'a Config, unreadable: Option<&'a str>, session: &'a str) -> Self {
        let loops = Loops::new(root);
        let files = loops.session(session);
        Self { root, top, config, unreadable, session, loops, files }
    }

    /// What an agent must know when its session starts: its loop, or what an earlier one left open.
    fn greet(&self, source: StartSource) -> Result<Option<String>, StopError> {
        // A conversation that continues under another id is not the next session.
        if matches!(source, StartSource::Startup | StartSource::Resume) {
            self.loops.claim(&self.files)?;
        }
        if let Some(held) = self.files.held()? {
            return Ok(Some(loop_words(&held, self.story()?.as_ref())));
        }
        let Some(mut left) = self.loops.incomplete().filter(|left| !left.told) else { return Ok(None) };
        left.told = true;
        self.loops.keep_incomplete(&left)?;
        Ok(Some(incomplete_words(&left)))
    }

    /// The answer to an event that asks whether something may end; `None` for other
    /// events. Calls `judging` before anything that can take longer than a normal answer.
    fn respond(&self, input: &HookInput<'_>, judging: impl FnOnce() -> Signals) -> Result<Option<GateAnswer>, StopError> {
        let judges = matches!(
            input.event,
            HookEvent::Stop { .. }
                | HookEvent::SubagentStop { .. }
                | HookEvent::TaskCompleted { .. }
                | HookEvent::TeammateIdle { .. }
        );
        let held = if judges && self.files.has_loop() { self.files.last()? } else { None };
        let mut notes = Vec::new();
        if matches!(input.event, HookEvent::Stop { .. }) && held.is_none() && self.files.had_old_loop() {
            notes.push(OLD_LOOP.to_owned());
        }
        let frozen = held.as_ref().filter(|held| held.is_active()).map(|held| held.settings.clone());
        match (&frozen, self.unreadable) {
            (Some(frozen), why) => {
                notes.extend(frozen.changed(why.map_or(Ok(self.config), Err)));
                let (loops, files) = (self.loops.clone(), self.files.clone());
                Gate { config: &frozen.config, unreadable: None, loops, files, ..*self }.judge(input, held, notes, judging)
            }
            (None, Some(why)) if judges => Err(StopError::Settings(why.to_owned())),
            (None, _) => self.judge(input, held, notes, judging),
        }
    }

    /// The same with the effective settings: those from the start of the loop.
    fn judge(
        &self,
        input: &HookInput<'_>,
        held: Option<HeldLoop>,
        notes: Vec<String>,
        judging: impl FnOnce() -> Signals,
    ) -> Result<Option<GateAnswer>, StopError> {
        let began = Instant::now();
        let agent = input.common.agent_id.as_deref();
        let active = held.clone().filter(HeldLoop::is_active);
        let (mut facts, decision, seen) = match &input.event {
            HookEvent::Stop { active, background_tasks, .. } => {
                let background = background_tasks.map(serde_json::value::RawValue::get);
                turn::judge(self, input, turn::StopEvent { active: *active, background, held, notes: notes.clone() }, judging)?
            }
            HookEvent::SubagentStop { active: held } => {
                let Some(work) = TeamWork::find(self, active) else { return Ok(None) };
                let Some(judged) = subagents::subagent(self, &work, input, *held, judging)? else { return Ok(None) };
                judged
            }
            HookEvent::TaskCompleted { task, subject } => {
                let judged = TeamWork::find(self, active).map(|work| subagents::task(self, &work, task, judging)).transpose()?;
                if !matches!(judged, Some((_, StopDecision::Block { .. }, _))) {
                    self.note_task(task, subject, false, agent)?;
                }
                let Some(judged) = judged else { return Ok(None) };
                judged
            }
            HookEvent::TeammateIdle { teammate } => {
                let Some(work) = TeamWork::find(self, active) else { return Ok(None) };
                subagents::teammate(self, &work, teammate, judging)?
            }
            HookEvent::TaskCreated { task, subject } => {
                self.note_task(task, subject, true, agent)?;
                return Ok(None);
            }
            HookEvent::PostToolUse { call, .. } if call.tool == "TaskUpdate" => {
                self.task_is_gone(call.input.get())?;
                return Ok(None);
            }
            HookEvent::SessionEnd { reason } => return self.ends(reason),
            HookEvent::PreToolUse(call) => return Ok(turn_limit::overdue(self, call)),
            HookEvent::UserPromptSubmit { .. } => {
                self.files.held()?.map_or(Ok(()), |held| turn_limit::begin_turn(self, &held))?;
                return Ok(None);
            }
            HookEvent::SessionStart { .. }
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
        let mut record = StopRecord::from_decision(&facts, &decision);
        if let Err(error) = learn::learn(self, &facts, &decision) {
            record.notes.push(format!("the lesson of this decision was not saved: {error}"));
        }
        record.tree = seen.tree;
        record.verdict = seen.verdict.map(str::to_owned);
        record.agent_type = input.common.agent_type.as_deref().map(str::to_owned);
        record.ms = began.elapsed().as_millis() as u64;
        self.files.forget_faults();
        Ok(Some(GateAnswer {
            answer: decision.answer_with(&input.common.event_name, &facts.notes),
            records: vec![Record::Stop(record)],
        }))
    }

    /// The current story, from the last finding.
    fn story(&self) -> Result<Option<StoryToDo>, StopError> {
        Ok(self.files.finding()?.and_then(|finding| if let Work::Open(open) = finding.work { open.story } else { None }))
    }

    /// Records open work when the session ends. A resumed session continues with it.
    fn ends(&self, reason: &str) -> Result<Option<GateAnswer>, StopError> {
        let Some(mut held) = self.files.held()? else {
            // What the worker left for a session without a loop is not needed any more.
            self.files.forget_loop()?;
            return Ok(None);
        };
        let story = self.story()?.map(|story| story.id);
        let let_go = held.gate.let_go.clone();
        let left = Incomplete {
            session: self.session.to_owned(),
            story: story.clone(),
            task: held.task.clone(),
            reason: let_go.map_or_else(|| reason.to_owned(), |why| format!("{reason}; {why}")),
            at: jiff::Timestamp::now().to_string(),
            told: false,
        };
        self.loops.keep_incomplete(&left)?;
        let reason = left.reason.clone();
        held.gate.incomplete = Some(left);
        self.files.count(&held)?;
        Ok(Some(GateAnswer { answer: Answer::Silent, records: vec![Record::Incomplete { story, reason }] }))
    }

    fn note_task(&self, task: &str, subject: &str, open: bool, agent: Option<&str>) -> Result<(), StopError> {
        let cut = |text: &str| text[..text.floor_char_boundary(500)].to_owned();
        self.files.note_task(&Task { id: cut(task), subject: cut(subject), open, agent: agent.map(cut) })
    }

    /// Removing a task from the agent's list does not fire a separate event.
    fn task_is_gone(&self, input: &str) -> Result<(), StopError> {
        let input: serde_json::Value = serde_json::from_str(input).unwrap_or_default();
        match (input["status"].as_str(), input["taskId"].as_str()) {
            (Some("deleted"), Some(task)) => self.note_task(task, "", false, None),
            (Some(_) | None, _) => Ok(()),
        }
    }
}

/// The origin of a decision, for its record.
#[derive(Debug, Default)]
pub(super) struct Trace {
    pub(super) tree: Option<String>,
    pub(super) verdict: Option<&'static str>,
}

pub(super) type Judged = (StopFacts, StopDecision, Trace);

/// The answer if the gate itself fails: holds the session a few times in a row, then releases it with an explanation.
pub(crate) fn fault(session: &SessionFiles, active: bool, cause: &str) -> StopDecision {
    let times = session.count_fault(active);
    if times > MOST_FAULTS {
        let why = ReleaseReason::Fault { times: times - 1, cause: cause.to_owned() };
        return StopDecision::Yield { why };
    }
    StopDecision::Block { cause: BlockCause::Fault, reason: fault_words(cause, times) }
}
