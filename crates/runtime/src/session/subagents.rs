//! Ends other than the end of a turn: of a subagent, a task or a teammate. They are judged in sessions with a loop, and in others if the
//! settings say so.

use std::fs;
use std::path::{Path, PathBuf};

use verdone_core::base::id::Oid;
use verdone_core::check::{CheckOrigin, Stage};
use verdone_core::done::debris;
use verdone_core::engine::session::{
    BlockCause, GateCount, HeldLoop, Holder, Litter, LoopCounters, Open, ReleaseReason, StopDecision, StopFacts, TeamGates, Work,
    debris_words, decide, decide_by_litter, decide_without_work, may_be_wanted, reasons_of,
};
use verdone_core::hook::HookInput;

use crate::base::plain_file::read_regular;
use crate::process::signal::Signals;
use crate::project::HOME;
use crate::project::plan_file::PlanLocation;
use crate::verify::checks::gates;

use super::team_counts::Member;
use super::worker::folder_of_agent;
use super::worker_client::{Answered, Request, Wanted, Worker};
use super::{Gate, Judged, PAUSE, StopError, Trace, other_tools_state, tree, turn};

/// Larger files were not written by hand.
const LARGEST: u64 = 1024 * 1024;

/// The work that a team's ends are judged by.
#[derive(Debug)]
pub(super) struct TeamWork {
    /// Lines added since this commit come from the session.
    since: Option<Oid>,
    plan: Option<PathBuf>,
    max_blocks: u32,
    in_loop: bool,
}

impl TeamWork {
    /// The work of the session's loop, or of the session itself. `None` if its ends are not judged.
    pub(super) fn find(gate: &Gate<'_>, held: Option<HeldLoop>) -> Option<Self> {
        if let Some(held) = held {
            let plan = held.plan.map(PathBuf::from);
            return Some(Self { since: held.base.head, plan, max_blocks: held.max_blocks, in_loop: true });
        }
        let is_judged = match gate.config.stop.team_gates {
            TeamGates::Loop => false,
            TeamGates::Auto => other_tools_state::has_orchestrator(gate),
            TeamGates::Always => true,
        };
        is_judged.then(|| Self {
            since: gate.files.head_at_start().or_else(|| Some(tree::git(gate.top).ok()?.head_commit().ok()??.0)),
            plan: None,
            max_blocks: gate.config.stop.max_blocks,
            in_loop: false,
        })
    }

    fn files(&self) -> Vec<PathBuf> {
        self.plan.as_ref().map(|plan| PlanLocation::new(plan.clone()).files()).unwrap_or_default()
    }

    fn counters(&self, count: &GateCount, same: u32) -> LoopCounters {
        let goes_on = if self.in_loop { "verdone".to_owned() } else { String::new() };
        LoopCounters { blocks: count.blocks, max_blocks: self.max_blocks, same, goes_on, ..LoopCounters::default() }
    }
}

/// Checks a subagent: its tasks, debris it left in the code, and the quick gates.
pub(super) fn subagent(
    gate: &Gate<'_>,
    work: &TeamWork,
    input: &HookInput<'_>,
    active: bool,
    judging: impl FnOnce() -> Signals,
) -> Result<Option<Judged>, StopError> {
    let kind = input.common.agent_type.as_deref().unwrap_or_default();
    let agent = input.common.agent_id.as_deref().unwrap_or_default();
    if !gate.config.stop.holds_subagent(kind) {
        return Ok(None);
    }
    let signals = judging();
    let mut open = Open { tasks: gate.files.open_tasks(Some(agent)), ..Open::default() };
    let debris: Vec<Litter> = litter(gate, work)?.into_iter().filter(|found| found.debris.blocking).collect();
    if !debris.is_empty() {
        open.missing.push((BlockCause::Debris, debris_words(&debris)));
    }
    let tree = tree::fingerprint(gate.root, gate.top, &work.files())?;
    let mut trace = Trace { tree: Some(tree.key.clone()), ..Trace::default() };
    let is_quick = CheckOrigin::Gate(Stage::Correctness);
    let quick = gates(gate.config).into_iter().filter(|check| check.origin == is_quick).map(|check| check.name);
    let quick: Vec<String> = quick.collect();
    let mut count = gate.files.counts_of(Member::Subagent(agent));
    let mut facts = StopFacts { active, ..facts(gate, LoopCounters::default()) };
    let mut running = None;
    if !quick.is_empty() && decide_without_work(&facts, &gate.config.stop).is_none() {
        match quick_gates(gate, work, agent, &tree.key, active, &signals)? {
            Answered::Found { finding, cached } => {
                trace.verdict = Some(if cached { "cached" } else { "ran" });
                if let Work::Open(found) = finding.work {
                    open.failed.extend(found.failed);
                    open.missing.extend(found.missing);
                }
            }
            Answered::Running { seconds } => {
                trace.verdict = Some("running");
                running = Some(Work::Verifying { checks: quick.clone(), seconds, waits: count.waits });
            }
        }
    }
    let is_done = open == Open::default() && running.is_none();
    // For subagents, the client does not reliably report whether it was held before.
    let same = if is_done || running.is_some() { 0 } else { count.count_same(&tree.key, &reasons_of(&open)) };
    facts.holder = Holder::Loop(work.counters(&count, same));
    facts.work = running.unwrap_or(Work::Open(open));
    let decision = if is_done {
        let why = decide_without_work(&facts, &gate.config.stop).unwrap_or(ReleaseReason::NothingLeft { gates: quick.len() });
        StopDecision::Yield { why }
    } else {
        decide(&facts, &gate.config.stop)
    };
    gate.files.count_member(Member::Subagent(agent), count, &decision)?;
    Ok(Some((facts, decision, trace)))
}

fn quick_gates(
    gate: &Gate<'_>,
    work: &TeamWork,
    agent: &str,
    key: &str,
    active: bool,
    signals: &Signals,
) -> Result<Answered, StopError> {
    let (sealed_copy, name) = gate.files.sealed_copy.as_ref().ok_or(StopError::NoSecret)?;
    let what = if work.in_loop {
        Wanted::QuickGates
    } else {
        Wanted::Checkout { stage: Some(Stage::Correctness), deadline: gate.config.stop.verify_deadline }
    };
    let question = turn::question(key, work.plan.as_deref());
    let request = Request { question, session: gate.session.to_owned(), name: name.clone(), what };
    let folder = folder_of_agent(name, agent);
    let worker = Worker { root: gate.root, sealed_copy, folder: &folder };
    worker.ask(&request, |_| active, gate.config.stop.wait.duration(), signals)
}

/// A task is not complete while code added for it is unfinished or has debugging output.
pub(super) fn task(gate: &Gate<'_>, work: &TeamWork, id: &str, judging: impl FnOnce() -> Signals) -> Result<Judged, StopError> {
    judging();
    let found = litter(gate, work)?;
    // Whoever cannot finish a task can leave it open. Output that is wanted would keep it open forever.
    let is_counted = may_be_wanted(&found);
    refuse(gate, work, is_counted.then_some(Member::Task(id)), &found)
}

/// A teammate may not idle while its debugging code is still there. Nobody else would release it, so it is held only a limited number
/// of times.
pub(super) fn teammate(
    gate: &Gate<'_>,
    work: &TeamWork,
    name: &str,
    judging: impl FnOnce() -> Signals,
) -> Result<Judged, StopError> {
    judging();
    let found: Vec<Litter> = litter(gate, work)?.into_iter().filter(|found| found.debris.kind.is_debugging()).collect();
    refuse(gate, work, Some(Member::Teammate(name)), &found)
}

/// Without a `member`, the refusals are not counted.
fn refuse(gate: &Gate<'_>, work: &TeamWork, member: Option<Member<'_>>, found: &[Litter]) -> Result<Judged, StopError> {
    let mut facts = facts(gate, LoopCounters::default());
    let Some(member) = member else {
        let decision = decide_by_litter(found, &facts, &gate.config.stop);
        return Ok((facts, decision, Trace::default()));
    };
    let tree = tree::fingerprint(gate.root, gate.top, &work.files())?;
    let mut count = gate.files.counts_of(member);
    let same = if found.is_empty() { 0 } else { count.count_same(&tree.key, &debris_words(found)) };
    facts.holder = Holder::Loop(work.counters(&count, same));
    let decision = decide_by_litter(found, &facts, &gate.config.stop);
    gate.files.count_member(member, count, &decision)?;
    Ok((facts, decision, Trace { tree: Some(tree.key), ..Trace::default() }))
}

fn facts(gate: &Gate<'_>, counters: LoopCounters) -> StopFacts {
    StopFacts { paused: is_paused(gate), ..StopFacts::new(Holder::Loop(counters)) }
}

/// Whether the user's pause file exists.
pub(super) fn is_paused(gate: &Gate<'_>) -> bool {
    fs::symlink_metadata(gate.root.join(HOME).join(PAUSE)).is_ok()
}

/// Debris in lines added since the work began.
fn litter(gate: &Gate<'_>, work: &TeamWork) -> Result<Vec<Litter>, StopError> {
    let added = tree::git(gate.top)?.added_lines(work.since.as_ref())?;
    let own = work.plan.as_deref().and_then(|plan| plan.strip_prefix(gate.top).ok());
    let theirs = added.iter().filter(|file| own != Some(Path::new(&file.path)));
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
