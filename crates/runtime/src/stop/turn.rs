//! The end of a turn in a session that a loop holds: what was seen is decided about, and what the loop remembers of it.

use std::ffi::OsString;
use std::path::Path;

use serde::Deserialize;
use verdone_core::hook::HookInput;
use verdone_core::plan::progress::{LoopState as ProgressState, LoopStatus};
use verdone_core::stop::{
    BlockCause, Held, Holder, LoopState, LoopStatusName, OnContext, Open, Same, StopDecision, StopFacts, StopSettings, Work,
    Yield, decide, early, reasons_of,
};

use crate::plan_file::PlanFile;
use crate::process::start_detached;
use crate::project::HOME;
use crate::signal::Signals;
use crate::site::shown;

use super::look::Looker;
use super::{Gate, Judged, PAUSE, StopError, Trace, ralph, transcript};

/// What the client says, and what is known of the session's loop.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    pub(super) active: bool,
    pub(super) background: Option<&'a str>,
    pub(super) state: Option<LoopState>,
    pub(super) notes: Vec<String>,
}

pub(super) fn judge(
    gate: &Gate<'_>,
    input: &HookInput<'_>,
    asked: Asked<'_>,
    judging: impl FnOnce() -> Signals,
) -> Result<Judged, StopError> {
    let Asked { active, background, state, notes } = asked;
    let other = ralph::holds(gate);
    let holder = match (&state, other.is_empty()) {
        (Some(state), _) if state.is_active() => Holder::Loop(held(gate, state)),
        (Some(_) | None, false) => Holder::OtherTool,
        (Some(state), true) => Holder::Ended(state.status),
        (None, true) => Holder::Nobody,
    };
    let mut facts = StopFacts {
        holder,
        active,
        background: Vec::new(),
        paused: false,
        api_error: None,
        context: None,
        notes,
        work: Work::Unknown,
    };
    let settings = &gate.config.stop;
    if !matches!(facts.holder, Holder::Nobody | Holder::Ended(_)) {
        let tail = transcript::tail(input);
        facts.background = live(background);
        facts.paused = std::fs::symlink_metadata(gate.root.join(HOME).join(PAUSE)).is_ok();
        facts.api_error = tail.api_error;
        facts.context = tail.context;
    }
    let state = state.filter(LoopState::is_active);
    if let Some(why) = early(&facts, settings) {
        if let Some(mut state) = state.filter(|_| !matches!(why, Yield::Background { .. })) {
            state.let_go = Some(why.words());
            gate.files.put_counters(&state)?;
        }
        return Ok((facts, StopDecision::Yield { why }, Trace::default()));
    }
    let signals = judging();
    let missing = |why: &String| (BlockCause::OtherTool, why.clone());
    let Some(mut state) = state else {
        facts.work = Work::Open(Open { missing: other.iter().map(missing).collect(), ..Open::default() });
        let decision = decide(&facts, settings);
        return Ok((facts, decision, Trace::default()));
    };
    let waits = state.waits;
    let seen = Looker {
        gate,
        state: &mut state,
        other: other.iter().map(missing).collect(),
        notes: Vec::new(),
        alarms: Vec::new(),
        // A Stop that waited in vain told nobody: what came of it meanwhile is told before it is run again.
        renew: !active && waits == 0,
        signals: &signals,
    };
    let looked = seen.look();
    if !gate.files.is_held() {
        // The user ended the loop meanwhile, and with it the verification.
        let why = Yield::Ended(LoopStatusName::Stopped);
        return Ok((facts, StopDecision::Yield { why }, Trace::default()));
    }
    let looked = looked?;
    facts.work = looked.work;
    facts.notes.extend(looked.notes);
    if let (Work::Open(open), Holder::Loop(held)) = (&facts.work, &mut facts.holder) {
        held.same = state.count_same(&looked.tree.key, &reasons_of(open));
    }
    let spawns = settings.on_context == OnContext::Spawn && looked.tree.clean && state.plan.is_some();
    let on_context = if spawns { OnContext::Spawn } else { OnContext::Yield };
    let decision = decide(&facts, &StopSettings { on_context, ..settings.clone() });
    keep(gate, &mut state, &facts, &decision, looked.plan)?;
    Ok((facts, decision, Trace { tree: Some(looked.tree.key), verdict: looked.verdict, alarms: looked.alarms }))
}

/// What the loop remembers of a decision, and what else follows from it.
fn keep(
    gate: &Gate<'_>,
    state: &mut LoopState,
    facts: &StopFacts,
    decision: &StopDecision,
    plan: Option<PlanFile>,
) -> Result<(), StopError> {
    let mut progress = ProgressState::InProgress;
    let marked = if let Work::Open(open) = &facts.work { open.marked.is_some() } else { true };
    match decision {
        StopDecision::Block { cause: BlockCause::Verifying, .. } => state.waits += 1,
        StopDecision::Block { .. } => {
            (state.blocks, state.waits, state.let_go) = (state.blocks + 1, 0, None);
        }
        StopDecision::Yield { why } => {
            state.waits = 0;
            state.let_go = Some(why.words());
            state.status = why.ends_loop().unwrap_or(state.status);
            match why {
                Yield::Same { .. } => state.same = Same::default(),
                Yield::Complete { .. } => progress = ProgressState::Complete,
                Yield::Limit { .. } => {
                    let open = if let Work::Open(open) = &facts.work { Some(open) } else { None };
                    let story = open.and_then(|open| open.story.as_ref()).map(|story| story.id.as_str().into());
                    let later = open.into_iter().flat_map(|open| open.stories.iter().map(|(id, _)| id.clone()));
                    progress = ProgressState::ReachedLimit { remaining: story.into_iter().chain(later).collect() };
                }
                Yield::Context { spawn: true, .. } => spawn_run(gate, state)?,
                Yield::Foreign
                | Yield::Off
                | Yield::Ended(_)
                | Yield::NothingToVerify { .. }
                | Yield::Background { .. }
                | Yield::ApiFailure { .. }
                | Yield::Paused
                | Yield::HeldOnce
                | Yield::Context { .. }
                | Yield::StillVerifying { .. }
                | Yield::Fault { .. }
                | Yield::NothingLeft { .. }
                | Yield::NotOurs => {}
            }
        }
    }
    if let Some(mut plan) = plan {
        let max_iterations = (state.max_blocks > 0).then_some(state.max_blocks);
        plan.record_status(&LoopStatus { iteration: state.blocks, max_iterations, state: progress })?;
    }
    if state.status == LoopStatusName::Complete {
        gate.loops.forget_incomplete()?;
        state.incomplete = None;
    }
    if marked || !state.is_active() { gate.files.put(state) } else { gate.files.put_counters(state) }
}

/// A run of its own goes on with the plan, in the background.
fn spawn_run(gate: &Gate<'_>, state: &LoopState) -> Result<(), StopError> {
    let log = gate.files.dir.join("run.log");
    let file = std::fs::File::create(&log).map_err(|source| super::files::file_error(&log, source))?;
    let plan = state.plan.clone().unwrap_or_default();
    let arguments = [OsString::from("run"), OsString::from(plan)];
    start_detached(&arguments, gate.root, Some(file)).map_err(|source| super::files::file_error(&log, source))?;
    Ok(())
}

fn held(gate: &Gate<'_>, state: &LoopState) -> Held {
    let goes_on = match &state.plan {
        Some(plan) => format!("verdone run {}", shown(Path::new(plan), gate.root)),
        None => "verdone loop start".to_owned(),
    };
    let beside = state.plan.as_ref().map(|plan| Path::new(plan).with_file_name("progress.txt"));
    Held {
        task: state.task.clone(),
        blocks: state.blocks,
        max_blocks: state.max_blocks,
        same: 0,
        goes_on,
        has_progress: beside.is_some_and(|path| path.is_file()),
    }
}

/// Tasks in the background that have not ended.
fn live(tasks: Option<&str>) -> Vec<String> {
    #[derive(Deserialize)]
    struct Entry {
        #[serde(default)]
        status: String,
        #[serde(default)]
        description: String,
        #[serde(default)]
        id: String,
    }
    const OVER: [&str; 8] = ["completed", "failed", "killed", "stopped", "cancelled", "canceled", "error", "done"];
    let listed: Vec<Entry> = tasks.and_then(|tasks| serde_json::from_str(tasks).ok()).unwrap_or_default();
    let alive = listed.into_iter().filter(|task| !OVER.contains(&task.status.as_str()));
    alive.map(|task| if task.description.is_empty() { task.id } else { task.description }).collect()
}
