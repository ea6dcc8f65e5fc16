//! What `verdone verify` saw: the tree, every check, and how it ends.

use verdone_core::check::CheckRun;
use verdone_core::event::VerifyOutcome;
use verdone_core::id::Oid;

use crate::event_lines::{Line, checked, tail};
use crate::style::{Mark, Style};
use crate::width::clean;
use crate::words::{outcome, plural, sentence};

/// `left` are the checks that were not run any more.
pub fn verification(tree: &Oid, found: &VerifyOutcome, runs: &[CheckRun], left: &[String], style: &Style) -> String {
    let dot = style.dot();
    let mut lines = vec![Line::top(Mark::Info, format!("Tree {}", clean(tree.short())))];
    for run in runs {
        lines.push(checked(run, dot));
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

fn last(found: &VerifyOutcome, runs: &[CheckRun]) -> Line {
    let blocking = runs.iter().filter(|run| !run.advisory).count();
    match found {
        VerifyOutcome::Passed => {
            Line::top(Mark::Good, format!("Passed: {}", plural(blocking, "check that counts", "checks that count")))
        }
        VerifyOutcome::Failed if blocking == 0 => Line::top(Mark::Unproven, "Unknown: every gate is advisory, so nothing counts"),
        VerifyOutcome::Failed => match runs.iter().find(|run| run.blocks()) {
            Some(run) => Line::top(Mark::Bad, format!("Not passed: {} {}", clean(&run.name), clean(&run.outcome.words()))),
            None => Line::top(Mark::Bad, "Not passed"),
        },
        VerifyOutcome::NothingChanged
        | VerifyOutcome::Unsettled
        | VerifyOutcome::HistoryMoved
        | VerifyOutcome::Refused
        | VerifyOutcome::Interrupted => Line::top(Mark::Bad, sentence(outcome(found))),
    }
}
