//! The end of a turn in a session without a loop that has an orchestrator's state file. The file alone cannot let the session stop: its
//! changes have to be committed, and the gates have to pass.

use verdone_core::engine::session::{BlockCause, Finding, Open, ReleaseReason, StopDecision, StopFacts, StopMode, Work, decide};

use crate::process::signal::Signals;
use crate::verify::checks::gates;

use super::team_counts::Member;
use super::worker_client::{Answered, Request, Wanted, Worker};
use super::{Gate, Judged, StopError, Trace, tree, turn};

/// Decides about a session whose state files leave this work open.
pub(super) fn judge(
    gate: &Gate<'_>,
    mut facts: StopFacts,
    missing: Vec<(BlockCause, String)>,
    signals: &Signals,
) -> Result<Judged, StopError> {
    let settings = &gate.config.stop;
    let count = gate.files.counts_of(Member::Session);
    // A Stop that waited for the gates has not held the session yet.
    facts.active &= count.waits == 0;
    if facts.active && settings.mode_for(&facts.holder) == StopMode::Once {
        let decision = StopDecision::Yield { why: ReleaseReason::HeldOnce };
        gate.files.count_member(Member::Session, count, &decision)?;
        return Ok((facts, decision, Trace::default()));
    }
    let tree = tree::fingerprint(gate.root, gate.top, &[])?;
    let mut trace = Trace { tree: Some(tree.key.clone()), ..Trace::default() };
    let mut open = Open { missing, tasks: gate.files.open_tasks(None), ..Open::default() };
    open.missing.extend(tree.uncommitted_words().map(|words| (BlockCause::Uncommitted, words)));
    let names: Vec<String> = gates(gate.config).into_iter().map(|check| check.name).collect();
    let mut running = None;
    if !names.is_empty() {
        match ask(gate, &tree.key, signals)? {
            Answered::Found { finding, cached } => {
                trace.verdict = Some(if cached { "cached" } else { "ran" });
                if let Work::Open(found) = finding.work {
                    open.failed = found.failed;
                    open.missing.extend(found.missing);
                }
            }
            Answered::Running { seconds } => {
                trace.verdict = Some("running");
                running = Some(Work::Verifying { checks: names.clone(), seconds, waits: count.waits });
            }
        }
    }
    let is_done = open == Open::default() && running.is_none();
    facts.work = running.unwrap_or(Work::Open(open));
    let decision = if is_done {
        StopDecision::Yield { why: ReleaseReason::Checked { gates: names.len() } }
    } else {
        decide(&facts, settings)
    };
    gate.files.count_member(Member::Session, count, &decision)?;
    Ok((facts, decision, trace))
}

fn ask(gate: &Gate<'_>, key: &str, signals: &Signals) -> Result<Answered, StopError> {
    let (sealed_copy, name) = gate.files.sealed_copy.as_ref().ok_or(StopError::NoSecret)?;
    let request = Request {
        question: turn::question(key, None),
        session: gate.session.to_owned(),
        name: name.clone(),
        what: Wanted::Checkout { stage: None, deadline: gate.config.stop.verify_deadline },
    };
    let worker = Worker { root: gate.root, sealed_copy, folder: name };
    worker.ask(&request, |finding: &Finding| finding.stands, gate.config.stop.wait.duration(), signals)
}
