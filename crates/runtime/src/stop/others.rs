//! Ends that are not the end of a turn: a subagent, a task, a teammate. Only in sessions that a loop holds.

use verdone_core::check::{CheckOrigin, CheckRun, Stage};
use verdone_core::debris;
use verdone_core::hook::HookInput;
use verdone_core::stop::{
    BlockCause, Held, Holder, Litter, LoopState, Open, StopDecision, StopFacts, Work, Yield, debris_words, decide, early,
};

use crate::plan_file::{PlanFile, PlanLocation};
use crate::regular::read_regular;
use crate::signal::Signals;
use crate::site::gates;

use super::look::source;
use super::verify::{Ask, Seen, verdict};
use super::{Gate, Judged, StopError, Trace, tree};

/// Larger files were not written by hand.
const LARGEST: u64 = 1024 * 1024;

/// A subagent: its tasks, what it left in the code, and the gates that are quick.
pub(super) fn subagent(
    gate: &Gate<'_>,
    state: Option<LoopState>,
    input: &HookInput<'_>,
    active: bool,
    judging: impl FnOnce() -> Signals,
) -> Result<Option<Judged>, StopError> {
    let kind = input.common.agent_type.as_deref().unwrap_or_default();
    let agent = input.common.agent_id.as_deref().unwrap_or_default();
    let Some(state) = state.filter(|_| gate.config.stop.holds_subagent(kind)) else { return Ok(None) };
    let signals = judging();
    let mut open = Open { tasks: gate.files.open_tasks(Some(agent)), ..Open::default() };
    let debris: Vec<Litter> = litter(gate, &state)?.into_iter().filter(|found| found.debris.blocking).collect();
    if !debris.is_empty() {
        open.missing.push((BlockCause::Debris, debris_words(&debris)));
    }
    let ours = match &state.plan {
        Some(plan) => PlanFile::open(PlanLocation::of(plan.into()))?.protected_paths(),
        None => Vec::new(),
    };
    let tree = tree::look(gate.root, gate.top, &ours)?;
    let mut trace = Trace { tree: Some(tree.key.clone()), ..Trace::default() };
    let quick: Vec<_> =
        gates(gate.config).into_iter().filter(|check| check.origin == CheckOrigin::Gate(Stage::Correctness)).collect();
    let mut work = None;
    if !quick.is_empty() {
        let ask = Ask::of(gate.config, (gate.root, gate.top), &tree, &quick, ours);
        match verdict(&gate.files.agent_dir(agent)?, &ask, !active, gate.config.stop.wait.duration(), &signals)? {
            Seen::Ended { verdict, cached } => {
                trace.verdict = Some(source(cached));
                open.failed = verdict.runs.into_iter().filter(CheckRun::blocks).collect();
            }
            Seen::Running { seconds } => {
                trace.verdict = Some("running");
                let checks = quick.iter().map(|check| check.name.clone()).collect();
                work = Some(Work::Verifying { checks, seconds, waits: 0 });
            }
        }
    }
    let is_done = open == Open::default() && work.is_none();
    let work = match work {
        Some(work) => work,
        None => Work::Open(open),
    };
    // The client's word on whether it was held before is not reliable for subagents.
    let same = if is_done { 0 } else { gate.files.count_agent(agent)? };
    let held = Held { same, goes_on: "verdone".to_owned(), ..Held::default() };
    let facts = StopFacts { active, work, ..facts(Holder::Loop(held)) };
    let decision = if is_done {
        let why = early(&facts, &gate.config.stop).unwrap_or(Yield::NothingLeft { gates: quick.len() });
        StopDecision::Yield { why }
    } else {
        decide(&facts, &gate.config.stop)
    };
    Ok(Some((facts, decision, trace)))
}

/// A task is not complete while what was added for it is not finished.
pub(super) fn task(
    gate: &Gate<'_>,
    state: Option<LoopState>,
    judging: impl FnOnce() -> Signals,
) -> Result<Option<Judged>, StopError> {
    refuse(gate, state, judging, None, |found| found.debris.blocking)
}

/// A teammate does not idle while what it used to find a fault is still there.
pub(super) fn teammate(
    gate: &Gate<'_>,
    state: Option<LoopState>,
    name: &str,
    judging: impl FnOnce() -> Signals,
) -> Result<Option<Judged>, StopError> {
    refuse(gate, state, judging, Some(name), |found| found.debris.kind.is_debugging())
}

/// `teammate` is held only so often: nobody else would let it idle.
fn refuse(
    gate: &Gate<'_>,
    state: Option<LoopState>,
    judging: impl FnOnce() -> Signals,
    teammate: Option<&str>,
    counts: fn(&Litter) -> bool,
) -> Result<Option<Judged>, StopError> {
    let Some(state) = state else { return Ok(None) };
    judging();
    let found: Vec<Litter> = litter(gate, &state)?.into_iter().filter(counts).collect();
    let facts = facts(Holder::Loop(Held::default()));
    let times = match teammate.filter(|_| !found.is_empty()) {
        Some(name) => gate.files.count_agent(&format!("teammate {name}"))?,
        None => 0,
    };
    let most = gate.config.stop.same_limit;
    let decision = if found.is_empty() {
        StopDecision::Yield { why: Yield::NothingLeft { gates: 0 } }
    } else if most > 0 && times >= most {
        StopDecision::Yield { why: Yield::Same { times, reason: "debugging is left in the code".to_owned() } }
    } else {
        StopDecision::Block { cause: BlockCause::Debris, reason: debris_words(&found) }
    };
    Ok(Some((facts, decision, Trace::default())))
}

/// What is left in lines that were added since the loop began.
fn litter(gate: &Gate<'_>, state: &LoopState) -> Result<Vec<Litter>, StopError> {
    let added = tree::git(gate.top)?.added_lines(state.base.head.as_ref())?;
    let own = state.plan.as_ref().and_then(|plan| std::path::Path::new(plan).strip_prefix(gate.top).ok().map(ToOwned::to_owned));
    let theirs = added.iter().filter(|file| own.as_deref() != Some(std::path::Path::new(&file.path)));
    let mut found = Vec::new();
    for file in theirs {
        // A file that went since, or that nobody wrote by hand, has none.
        let Ok(bytes) = read_regular(&gate.top.join(&file.path), LARGEST) else { continue };
        let numbers: Vec<u32> = file.lines.iter().map(|(number, _)| *number).collect();
        let all = debris::debris(&file.path, &String::from_utf8_lossy(&bytes), &numbers);
        found.extend(all.into_iter().map(|debris| Litter { path: file.path.clone(), debris }));
    }
    Ok(found)
}

fn facts(holder: Holder) -> StopFacts {
    StopFacts {
        holder,
        active: false,
        background: Vec::new(),
        paused: false,
        api_error: None,
        context: None,
        notes: Vec::new(),
        work: Work::Unknown,
    }
}
