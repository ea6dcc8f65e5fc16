//! The gates on the checkout of a session without a loop, run by the worker. The settings of the checkout apply, because nothing was fixed
//! at a start.

use std::path::Path;
use std::sync::atomic::Ordering;

use jiff::Timestamp;
use verdone_core::base::span::Span;
use verdone_core::check::Stage;
use verdone_core::engine::run::Feedback;
use verdone_core::engine::session::{BlockCause, Finding, Open, Work};
use verdone_core::verify::Tree;

use crate::process::signal::Signals;
use crate::project::find_git_top;
use crate::verify::on_demand::{self, CheckoutRequest};

use super::drive::Quiet;
use super::worker::deadline;
use super::{StopError, tree, turn};

/// Runs the gates, or those of one stage. Only failing gates count: work in progress may change tests.
pub(super) fn verify(root: &Path, question: &str, stage: Option<Stage>, limit: Span) -> Result<Finding, StopError> {
    let signals = Signals::install().unwrap_or_else(|_| Signals::none());
    let overdue = deadline(limit, &signals);
    let ask = CheckoutRequest { root: root.to_owned(), story: None, stage, use_cache: true };
    let mut open = Open::default();
    let verified = on_demand::verify(&ask, &signals, &mut Quiet);
    match &verified {
        Ok(_) if overdue.load(Ordering::SeqCst) => {
            open.missing.push((BlockCause::CheckFailed, format!("The gates did not finish within {limit}")));
        }
        Ok(verified) if verified.report.was_interrupted() => return Err(StopError::CalledOff),
        Ok(verified) => open.failed = Feedback::from_runs(verified.report.runs_on(Tree::Attempt)).failed,
        Err(error) => open.missing.push((BlockCause::CheckFailed, format!("The gates could not run: {error}"))),
    }
    let top = find_git_top(root).map_err(|error| StopError::Settings(error.to_string()))?;
    let key = tree::fingerprint(root, &top, &[])?.key;
    Ok(Finding {
        at: format!("{} {}", Timestamp::now(), std::process::id()),
        // If files changed meanwhile, this answers another question.
        asked: if turn::question(&key, None) == question { question.to_owned() } else { String::new() },
        after: String::new(),
        tree: key,
        work: Work::Open(open),
        notes: Vec::new(),
        stands: verified.is_ok(),
        report: verified.ok().map(|verified| Box::new(verified.report)),
    })
}
