//! What `verdone verify` saw: the tree, every check, and how it ends.

use verdone_core::check::{CheckOutcome, CheckRun};
use verdone_core::event::VerifyOutcome;
use verdone_core::id::Oid;

use crate::event_lines::{Line, checked, checked_as, tail};
use crate::style::{Mark, Style};
use crate::width::clean;
use crate::words::plural;

/// `left` are the checks that were not run any more.
pub fn verification(tree: &Oid, found: &VerifyOutcome, runs: &[CheckRun], left: &[String], style: &Style) -> String {
    let dot = style.dot();
    let mut lines = vec![Line::top(Mark::Info, format!("Tree {}", clean(tree.short())))];
    for run in runs {
        lines.push(if says_nothing(run) { checked_as(Mark::Unproven, run, dot) } else { checked(run, dot) });
        if !run.outcome.passed() {
            lines.extend(tail(run));
        }
    }
    let names: Vec<String> = left.iter().map(|name| clean(name)).collect();
    if !names.is_empty() {
        let text = format!("Not run, because an earlier stage failed: {}", names.join(", "));
        lines.push(Line::Finding { mark: Mark::Info, indent: 2, text });
    }
    lines.push(last(found, runs));
    let rows = lines.iter().flat_map(|line| line.rows(style, Some(style.width)));
    rows.fold(String::new(), |out, row| out + row.trim_end() + "\n")
}

/// Neither green nor red.
fn says_nothing(run: &CheckRun) -> bool {
    match run.outcome {
        CheckOutcome::Unknown { .. } | CheckOutcome::Interrupted => !run.advisory,
        CheckOutcome::Passed | CheckOutcome::Failed { .. } | CheckOutcome::Signalled { .. } | CheckOutcome::TimedOut { .. } => {
            false
        }
    }
}

fn last(found: &VerifyOutcome, runs: &[CheckRun]) -> Line {
    let blocking = runs.iter().filter(|run| !run.advisory).count();
    match found {
        VerifyOutcome::Passed => {
            Line::top(Mark::Good, format!("Passed: {}", plural(blocking, "check that counts", "checks that count")))
        }
        VerifyOutcome::Failed if blocking == 0 => Line::top(Mark::Unproven, "Unknown: every gate is advisory, so nothing counts"),
        VerifyOutcome::Failed => {
            // What is red comes before what nobody can tell.
            let red = runs.iter().find(|run| run.blocks() && !says_nothing(run));
            let words = |run: &CheckRun| format!("{} {}", clean(&run.name), clean(&run.outcome.words()));
            match (red, runs.iter().find(|run| run.blocks())) {
                (Some(run), _) => Line::top(Mark::Bad, format!("Not passed: {}", words(run))),
                (None, Some(run)) => Line::top(Mark::Unproven, format!("Unknown: {}", words(run))),
                (None, None) => Line::top(Mark::Unproven, "Unknown: not every check ran"),
            }
        }
        VerifyOutcome::NothingChanged => Line::top(Mark::Bad, "Nothing changed"),
        VerifyOutcome::Refused => Line::top(Mark::Bad, "Refused"),
        VerifyOutcome::Interrupted => Line::top(Mark::Bad, "Interrupted"),
    }
}
