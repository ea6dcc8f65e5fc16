//! `verdone attach`: the live view of a run from another terminal, built from its journal.

use std::time::Duration;

use jiff::Timestamp;
use verdone_core::journal::update::{Reporter as _, Update};
use verdone_runtime::process::signal::Signals;
use verdone_runtime::store::JournalReader;

use super::ask::under_way;
use super::chosen_run::is_going;
use super::reporter::reporter;
use super::{Context, Outcome};
use crate::args::AttachArgs;
use crate::terminal::{printable, say};

/// How often to read the journal and redraw the live line.
const LOOK: Duration = Duration::from_millis(200);

pub(super) fn run(args: &AttachArgs, context: &Context) -> Outcome {
    let AttachArgs {} = args;
    let stored = under_way(context)?;
    let project = context.project()?;
    say(&printable(&format!("Watching run {}. Ctrl-C stops only the watching.\n", stored.id)));
    let mut reporter = reporter(false, false, &Signals::none(), context);
    let mut shown = 0;
    loop {
        // Check this before reading the journal, so that everything a run wrote before it ended is still shown.
        let going = is_going(&project, &stored);
        let mut reader = JournalReader::open_at(&stored.journal(), shown)?;
        for recorded in reader.by_ref() {
            reporter.report(Update::Event(&recorded?));
        }
        shown = reader.offset();
        if !going {
            return Ok(0);
        }
        reporter.report(Update::Tick { now: Timestamp::now(), active_ms: None });
        std::thread::sleep(LOOK);
    }
}
