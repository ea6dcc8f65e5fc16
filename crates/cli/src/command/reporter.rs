//! Selects the reporter that shows the progress of a run or of planning.

use verdone_core::journal::update::Reporter;
use verdone_report::{Json, Loudness, Plain, Terminal};
use verdone_runtime::process::signal::Signals;

use super::Context;
use super::run_request::RunRequestParts;
use crate::terminal::{Shown, stdout_width};

/// JSON lines, a live line, or plain lines.
pub(super) fn reporter(json: bool, quiet: bool, signals: &Signals, context: &Context) -> RunRequestParts {
    let style = context.terminal.report_style();
    let shown: Box<dyn Reporter> = match (json, quiet, context.terminal.live) {
        (true, _, _) => Box::new(Json::new(Shown::new())),
        (false, true, _) => Box::new(Plain::new(Shown::new(), style, Loudness::Quiet)),
        (false, false, true) => Box::new(Terminal::new(Shown::new(), style, stdout_width)),
        (false, false, false) => Box::new(Plain::new(Shown::new(), style, Loudness::Normal)),
    };
    RunRequestParts::new(shown, signals.clone())
}
