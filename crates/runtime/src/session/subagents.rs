//! Ends other than the end of a turn: of a subagent, a task or a teammate. Only in sessions held by a loop.

use verdone_core::check::{CheckOrigin, Stage};
use verdone_core::done::debris;
use verdone_core::engine::session::{
    BlockCause, HeldLoop, Holder, Litter, LoopCounters, Open, ReleaseReason, StopDecision, StopFacts, Work, debris_words, decide,
    decide_without_work,
};
use verdone_core::hook::HookInput;

use crate::base::plain_file::read_regular;
use crate::process::signal::Signals;
use crate::project::plan_file::PlanLocation;
use crate::verify::checks::gates;

use super::worker::folder_of_agent;
use super::worker_client::{Answered, Request, Wanted, Worker};
use super::{Gate, Judged, StopError, Trace, tree, turn};

/// Larger files were not written by hand.
const LARGEST: u64 = 1024 * 1024;

/// Checks a subagent: its tasks, debris it left in the code, and the quick gates.
pub(super) fn subagent(
    gate: &Gate<'_>,
    state: Option<HeldLoop>,
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
    let files = state.plan.as_ref().map(|plan| PlanLocation::new(plan.into()).files()).unwrap_or_default();
    let tree = tree::fingerprint(gate.root, gate.top, &files)?;
    let mut trace = Trace { tree: Some(tree.key.clone()), ..Trace::default() };
    let quick: Vec<String> = gates(gate.config)
        .into_iter()
        .filter(|check| check.origin == CheckOrigin::Gate(Stage::Correctness))
        .map(|check| check.name)
        .collect();
    let mut work = None;
    if !quick.is_empty() {
        let (sealed_copy, name) = gate.files.sealed_copy.as_ref().ok_or(StopError::NoSecret)?;
        let request = Request {
            question: turn::question(&tree.key, state.plan.as_deref().map(std::path::Path::new)),
            session: gate.session.to_owned(),
            name: name.clone(),
            what: Wanted::QuickGates,
        };
        let folder = folder_of_agent(name, agent);
        let worker = Worker { root: gate.root, sealed_copy, folder: &folder };
        match worker.ask(&request, |_| active, gate.config.stop.wait.duration(), &signals)? {
            Answered::Found { finding, cached } => {
                trace.verdict = Some(if cached { "cached" } else { "ran" });
                if let Work::Open(found) = finding.work {
                    open.failed.extend(found.failed);
                }
            }
            Answered::Running { seconds } => {
                trace.verdict = Some("running");
                work = Some(Work::Verifying { checks: quick.clone(), seconds, waits: 0 });
            }
        }
    }
    let is_done = open == Open::default() && work.is_none();
    let work = match work {
        Some(work) => work,
        None => Work::Open(open),
    };
    // For subagents, the client does not reliably report whether it was held before.
    let same = if is_done { 0 } else { gate.files.count_agent(agent)? };
    let held = LoopCounters { same, goes_on: "verdone".to_owned(), ..LoopCounters::default() };
    let facts = StopFacts { active, work, ..StopFacts::new(Holder::Loop(held)) };
    let decision = if is_done {
        let why = decide_without_work(&facts, &gate.config.stop).unwrap_or(ReleaseReason::NothingLeft { gates: quick.len() });
        StopDecision::Yield { why }
    } else {
        decide(&facts, &gate.config.stop)
    };
    Ok(Some((facts, decision, trace)))
}

/// A task is not complete while code added for it is unfinished.
pub(super) fn task(
    gate: &Gate<'_>,
    state: Option<HeldLoop>,
    judging: impl FnOnce() -> Signals,
) -> Result<Option<Judged>, StopError> {
    refuse(gate, state, judging, None, |found| found.debris.blocking)
}

/// A teammate may not idle while its debugging code is still there.
pub(super) fn teammate(
    gate: &Gate<'_>,
    state: Option<HeldLoop>,
    name: &str,
    judging: impl FnOnce() -> Signals,
) -> Result<Option<Judged>, StopError> {
    refuse(gate, state, judging, Some(name), |found| found.debris.kind.is_debugging())
}

/// A `teammate` is held only a limited number of times: no one else would release it.
fn refuse(
    gate: &Gate<'_>,
    state: Option<HeldLoop>,
    judging: impl FnOnce() -> Signals,
    teammate: Option<&str>,
    counts: fn(&Litter) -> bool,
) -> Result<Option<Judged>, StopError> {
    let Some(state) = state else { return Ok(None) };
    judging();
    let found: Vec<Litter> = litter(gate, &state)?.into_iter().filter(counts).collect();
    let facts = StopFacts::new(Holder::Loop(LoopCounters::default()));
    let times = match teammate.filter(|_| !found.is_empty()) {
        Some(name) => gate.files.count_agent(&format!("teammate {name}"))?,
        None => 0,
    };
    let most = gate.config.stop.same_limit;
    let decision = if found.is_empty() {
        StopDecision::Yield { why: ReleaseReason::NothingLeft { gates: 0 } }
    } else if most > 0 && times >= most {
        StopDecision::Yield { why: ReleaseReason::Same { times, reason: "debugging is left in the code".to_owned() } }
    } else {
        StopDecision::Block { cause: BlockCause::Debris, reason: debris_words(&found) }
    };
    Ok(Some((facts, decision, Trace::default())))
}

/// Debris in lines added since the loop started.
fn litter(gate: &Gate<'_>, held: &HeldLoop) -> Result<Vec<Litter>, StopError> {
    let added = tree::git(gate.top)?.added_lines(held.base.head.as_ref())?;
    let own = held.plan.as_ref().and_then(|plan| std::path::Path::new(plan).strip_prefix(gate.top).ok().map(ToOwned::to_owned));
    let theirs = added.iter().filter(|file| own.as_deref() != Some(std::path::Path::new(&file.path)));
    let mut found = Vec::new();
    for file in theirs {
        // Skip files that are gone by now or were not written by hand.
        let Ok(bytes) = read_regular(&gate.top.join(&file.path), LARGEST) else { continue };
        let numbers: Vec<u32> = file.lines.iter().map(|(number, _)| *number).collect();
        let all = debris::debris(&file.path, &String::from_utf8_lossy(&bytes), &numbers);
        found.extend(all.into_iter().map(|debris| Litter { path: file.path.clone(), debris }));
    }
    Ok(found)
}
