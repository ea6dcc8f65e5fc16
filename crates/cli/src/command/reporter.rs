//! Selects the reporter that shows the progress of a run or of planning.

use verdone_core::journal::update::Reporter;
use verdone_report::{Json, Plain, Terminal, Verbosity};
use verdone_runtime::process::signal::Signals;

use super::Context;
use super::stop_announcer::StopAnnouncer;
use super::terminal_notifier::TerminalNotifier;
use crate::terminal::{Shown, stdout_width};

/// JSON lines, a live line, or plain lines.
pub(super) fn reporter(json: bool, quiet: bool, signals: &Signals, context: &Context) -> StopAnnouncer {
    let style = context.terminal.report_style();
    let shown: Box<dyn Reporter> = match (json, quiet, context.terminal.live) {
        (true, _, _) => Box::new(Json::new(Shown::new())),
        (false, true, _) => Box::new(Plain::new(Shown::new(), style, Verbosity::Quiet)),
        (false, false, true) => Box::new(Terminal::new(Shown::new(), style, stdout_width)),
        (false, false, false) => Box::new(Plain::new(Shown::new(), style, Verbosity::Normal)),
    };
    StopAnnouncer::new(Box::new(TerminalNotifier::new(shown, &context.environment)), signals.clone())
}
