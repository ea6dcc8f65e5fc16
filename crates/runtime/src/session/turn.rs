//! The end of a turn in a session held by a loop: decides on the worker's finding and
//! updates the gate's counters. Writes neither to git nor to the journal.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use verdone_core::base::id::digest;
use verdone_core::base::sanitise::sanitise_line;
use verdone_core::engine::session::{
    BlockCause, Finding, HeldLoop, Holder, LoopCounters, LoopStatus, OnContext, Open, ReleaseReason, RepeatedBlock, StopDecision,
    StopFacts, StopSettings, Work, decide, decide_without_work, reasons_of,
};
use verdone_core::hook::HookInput;
use verdone_plan::progress::{LoopState as ProgressState, LoopStatus as ProgressStatus};
use verdone_text::shell_word::shell_argument;

use crate::base::plain_file::read_regular;
use crate::process::signal::Signals;
use crate::process::start_detached;
use crate::project::plan_file::{PlanFile, PlanLocation};
use crate::project::shown;

use super::files::{LARGEST, file_error};
use super::subagents::is_paused;
use super::worker_client::{Answered, Request, Wanted, Worker};
use super::{Gate, Judged, StopError, Trace, orchestrated, other_tools_state, state_files, transcript, tree, turn_limit};

/// What the client reports, and the session's loop.
#[derive(Debug)]
pub(super) struct StopEvent<'a> {
    pub(super) active: bool,
    pub(super) background: Option<&'a str>,
    pub(super) held: Option<HeldLoop>,
    pub(super) notes: Vec<String>,
}

pub(super) fn judge(
    gate: &Gate<'_>,
    input: &HookInput<'_>,
    asked: StopEvent<'_>,
    judging: impl FnOnce() -> Signals,
) -> Result<Judged, StopError> {
    let StopEvent { active, background, held, notes } = asked;
    let other = other_tools_state::holds(gate);
    let has_orchestrator = other_tools_state::has_orchestrator(gate);
    let holder = match (&held, other.is_empty()) {
        (Some(held), _) if held.is_active() => Holder::Loop(numbers(gate, held)),
        (Some(_) | None, false) => Holder::OtherTool,
        (Some(_) | None, true) if has_orchestrator => Holder::OtherTool,
        (Some(held), true) => Holder::Ended(held.status),
        (None, true) => Holder::Nobody,
    };
    let mut facts = StopFacts { active, notes, ..StopFacts::new(holder) };
    let settings = &gate.config.stop;
    if !matches!(facts.holder, Holder::Nobody | Holder::Ended(_)) {
        let tail = transcript::tail(input);
        facts.background = live(background);
        facts.paused = is_paused(gate);
        facts.api_error = tail.api_error;
        facts.context = tail.context;
    }
    let held = held.filter(HeldLoop::is_active);
    if let Some(why) = decide_without_work(&facts, settings) {
        turn_limit::end_turn(gate);
        if let Some(mut held) = held.filter(|_| !matches!(why, ReleaseReason::Background { .. })) {
            held.gate.let_go = Some(why.describe());
            gate.files.count(&held)?;
        }
        return Ok((facts, StopDecision::Yield { why }, Trace::default()));
    }
    let signals = judging();
    let missing: Vec<(BlockCause, String)> = other.into_iter().map(|why| (BlockCause::OtherTool, why)).collect();
    let Some(mut held) = held else {
        if has_orchestrator {
            return orchestrated::judge(gate, facts, missing, &signals);
        }
        facts.work = Work::Open(Open { missing, ..Open::default() });
        let decision = decide(&facts, settings);
        return Ok((facts, decision, Trace::default()));
    };
    let files = held.plan.as_ref().map(|plan| PlanLocation::new(plan.into()).files()).unwrap_or_default();
    let tree = tree::fingerprint(gate.root, gate.top, &files)?;
    let tasks = gate.files.open_tasks(None);
    let held_open = !tasks.is_empty() || !missing.is_empty();
    let answered = ask(gate, &held, &tree.key, held_open, active, &signals);
    if !gate.files.is_held() {
        // The user ended the loop in the meantime, and the verification with it.
        let why = ReleaseReason::Ended(LoopStatus::Stopped);
        return Ok((facts, StopDecision::Yield { why }, Trace::default()));
    }
    let mut trace = Trace { tree: Some(tree.key.clone()), verdict: Some("running") };
    facts.work = match answered? {
        Answered::Running { seconds } => {
            let checks = crate::verify::checks::gates(gate.config).into_iter().map(|check| check.name).collect();
            Work::Verifying { checks, seconds, waits: held.gate.waits }
        }
        Answered::Found { finding, cached } => {
            trace.verdict = Some(if cached { "cached" } else { "ran" });
            held.gate.told = Some(finding.at.clone());
            facts.notes.extend(finding.notes);
            with_tasks(finding.work, missing, tasks)
        }
    };
    if let (Work::Open(open), Holder::Loop(numbers)) = (&facts.work, &mut facts.holder) {
        numbers.same = held.gate.count_same(&tree.key, &reasons_of(open));
    }
    let spawns = settings.on_context == OnContext::Spawn && tree.clean && held.plan.is_some();
    let on_context = if spawns { OnContext::Spawn } else { OnContext::Yield };
    let decision = decide(&facts, &StopSettings { on_context, ..settings.clone() });
    keep(gate, &mut held, &facts, &decision)?;
    facts.notes.extend(state_files::record_loop(gate, &held, &facts));
    Ok((facts, decision, trace))
}

/// Equal for equal files and an equal plan.
pub(super) fn question(key: &str, plan: Option<&Path>) -> String {
    let files = plan.map(|plan| PlanLocation::new(plan.to_owned()).files()).unwrap_or_default();
    // Progress files are written by us.
    let is_progress =
        |path: &&std::path::PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("progress"));
    let texts = files.iter().filter(|path| !is_progress(path)).map(|path| read_regular(path, LARGEST).map(|text| digest(&text)));
    let texts: Vec<String> = texts.map(Result::unwrap_or_default).collect();
    digest(format!("{key}\0{}", texts.join("\0")).as_bytes())
}

fn ask(
    gate: &Gate<'_>,
    held: &HeldLoop,
    key: &str,
    held_open: bool,
    active: bool,
    signals: &Signals,
) -> Result<Answered, StopError> {
    let (sealed_copy, name) = gate.files.sealed_copy.as_ref().ok_or(StopError::NoSecret)?;
    let request = Request {
        question: question(key, held.plan.as_deref().map(Path::new)),
        session: gate.session.to_owned(),
        name: name.clone(),
        what: Wanted::Turn { held_open },
    };
    // A Stop that timed out reported nothing. Report its finding before asking again.
    let renew = !active && held.gate.waits == 0;
    let is_enough = |finding: &Finding| {
        let is_told = held.gate.told.as_ref() == Some(&finding.at);
        // For a new prompt, rerun failed checks: the user may have fixed something outside the files.
        let holds = match &finding.work {
            Work::Open(open) => open.failed.is_empty() || !renew,
            Work::Complete { .. } => held_open,
            Work::Unknown | Work::Blocked { .. } | Work::Nothing { .. } | Work::Verifying { .. } => false,
        };
        !is_told || (finding.stands && holds)
    };
    let worker = Worker { root: gate.root, sealed_copy, folder: name };
    worker.ask(&request, is_enough, gate.config.stop.wait.duration(), signals)
}

/// Other open items hold a session even if its stories are done.
fn with_tasks(work: Work, missing: Vec<(BlockCause, String)>, tasks: Vec<String>) -> Work {
    match work {
        Work::Open(mut open) => {
            open.missing.extend(missing);
            Work::Open(Open { tasks, ..open })
        }
        Work::Complete { .. } if !missing.is_empty() || !tasks.is_empty() => {
            Work::Open(Open { missing, tasks, ..Open::default() })
        }
        other
        @ (Work::Complete { .. } | Work::Blocked { .. } | Work::Nothing { .. } | Work::Verifying { .. } | Work::Unknown) => other,
    }
}

/// Updates the gate's counters and handles the consequences of a decision.
fn keep(gate: &Gate<'_>, held: &mut HeldLoop, facts: &StopFacts, decision: &StopDecision) -> Result<(), StopError> {
    let mut progress = ProgressState::InProgress;
    held.gate.count_decision(decision);
    if let StopDecision::Yield { why } = decision {
        match why {
            ReleaseReason::Same { .. } => held.gate.same = RepeatedBlock::default(),
            ReleaseReason::Complete { .. } => progress = ProgressState::Complete,
            ReleaseReason::Limit { .. } => progress = ProgressState::ReachedLimit { remaining: remaining(facts) },
            ReleaseReason::Context { spawn: true, .. } => spawn_run(gate, held)?,
            ReleaseReason::Foreign
            | ReleaseReason::Off
            | ReleaseReason::Ended(_)
            | ReleaseReason::NothingToVerify { .. }
            | ReleaseReason::Background { .. }
            | ReleaseReason::ApiFailure { .. }
            | ReleaseReason::Paused
            | ReleaseReason::HeldOnce
            | ReleaseReason::Context { .. }
            | ReleaseReason::Blocked { .. }
            | ReleaseReason::StillVerifying { .. }
            | ReleaseReason::Fault { .. }
            | ReleaseReason::NothingLeft { .. }
            | ReleaseReason::Checked { .. }
            | ReleaseReason::NotOurs => {}
        }
    }
    match decision {
        StopDecision::Block { .. } => turn_limit::begin_turn(gate, held)?,
        StopDecision::Yield { .. } => turn_limit::end_turn(gate),
    }
    record_progress(held, progress)?;
    let ended =
        if let StopDecision::Yield { why } = decision { why.ends_loop().map(|status| (status, why.describe())) } else { None };
    let Some((status, reason)) = ended else { return gate.files.count(held) };
    // A complete or blocked loop was already ended by the worker that found it so.
    if !matches!(facts.work, Work::Complete { .. } | Work::Blocked { .. }) {
        let (sealed_copy, name) = gate.files.sealed_copy.as_ref().ok_or(StopError::NoSecret)?;
        let what = Wanted::End { status, reason };
        let request = Request { question: String::new(), session: gate.session.to_owned(), name: name.clone(), what };
        Worker { root: gate.root, sealed_copy, folder: name }.end(&request)?;
    }
    if status == LoopStatus::Complete {
        gate.loops.forget_incomplete()?;
        held.gate.incomplete = None;
    }
    gate.files.release(held, status)
}

fn remaining(facts: &StopFacts) -> Vec<verdone_core::base::id::StoryId> {
    let Work::Open(open) = &facts.work else { return Vec::new() };
    let story = open.story.as_ref().map(|story| story.id.as_str().into());
    story.into_iter().chain(open.stories.iter().map(|(id, _)| id.clone())).collect()
}

/// Updates the header of `progress.txt`, if the plan has one.
fn record_progress(held: &HeldLoop, state: ProgressState) -> Result<(), StopError> {
    let Some(plan) = held.plan.as_ref().filter(|plan| has_progress(plan)) else { return Ok(()) };
    let status = ProgressStatus { iteration: held.gate.blocks, state };
    PlanFile::open(PlanLocation::new(plan.into()))?.record_status(&status)?;
    Ok(())
}

fn has_progress(plan: &str) -> bool {
    Path::new(plan).with_file_name("progress.txt").is_file()
}

/// Starts a run that continues the plan in the background.
fn spawn_run(gate: &Gate<'_>, held: &HeldLoop) -> Result<(), StopError> {
    let log = gate.files.dir.join("run.log");
    let failed = |source| file_error(&log, source);
    fs::create_dir_all(&gate.files.dir).map_err(failed)?;
    let file = fs::File::create(&log).map_err(failed)?;
    let arguments = [OsString::from("run"), OsString::from(held.plan.clone().unwrap_or_default())];
    start_detached(&arguments, gate.root, Some(file)).map_err(failed)?;
    Ok(())
}

fn numbers(gate: &Gate<'_>, held: &HeldLoop) -> LoopCounters {
    let goes_on = match &held.plan {
        Some(plan) => format!("verdone run {}", shell_argument(&sanitise_line(&shown(Path::new(plan), gate.root)))),
        None => "verdone loop start".to_owned(),
    };
    LoopCounters {
        task: held.task.clone(),
        blocks: held.gate.blocks,
        max_blocks: held.max_blocks,
        same: 0,
        goes_on,
        has_progress: held.plan.as_deref().is_some_and(has_progress),
    }
}

/// Background tasks that have not ended.
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
