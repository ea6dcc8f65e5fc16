//! `verdone attach`: the live view of a run from another terminal, built from its journal and what the agent prints.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use verdone_core::journal::event::{Event, Recorded};
use verdone_core::journal::update::{Reporter, Speaker, Update};
use verdone_runtime::process::signal::Signals;
use verdone_runtime::store::JournalReader;
use verdone_runtime::store::live_output::LiveReader;

use super::ask::under_way;
use super::chosen_run::is_going;
use super::reporter::reporter;
use super::{Context, Outcome};
use crate::args::AttachArgs;
use crate::error::CliError;
use crate::terminal::{printable, say};

/// How often to read the journal and redraw the live line.
const LOOK: Duration = Duration::from_millis(200);

pub(super) fn run(args: &AttachArgs, context: &Context) -> Outcome {
    let AttachArgs {} = args;
    let stored = under_way(context)?;
    let project = context.project()?;
    say(&printable(&format!("Watching run {}. Ctrl-C stops only the watching.\n", stored.id)));
    let signals = Signals::install().map_err(|error| CliError::error(format!("cannot install signal handlers: {error}")))?;
    let mut watch = Watch {
        reporter: Box::new(reporter(false, false, &Signals::none(), context)),
        run_dir: &stored.dir,
        turn: None,
        iteration: 0,
    };
    let mut shown = 0;
    let mut has_caught_up = false;
    loop {
        // Check this before reading the journal, so that everything a run wrote before it ended is still shown.
        let going = is_going(&project, &stored);
        let mut reader = JournalReader::open_at(&stored.journal(), shown)?;
        for recorded in reader.by_ref() {
            watch.event(&recorded?, has_caught_up);
        }
        shown = reader.offset();
        has_caught_up = true;
        watch.output();
        if !going {
            return Ok(0);
        }
        watch.reporter.report(Update::Tick { now: Timestamp::now(), active_ms: None });
        if signals.requested().is_some() {
            drop(watch);
            say(&printable(&format!("\nRun {} continues. To watch it again: verdone attach\n", stored.id)));
            return Ok(0);
        }
        std::thread::sleep(LOOK);
    }
}

/// Shows a run from its journal, and the agent's output of the turn at hand.
struct Watch<'a> {
    reporter: Box<dyn Reporter>,
    run_dir: &'a Path,
    turn: Option<LiveReader>,
    iteration: u32,
}

impl Watch<'_> {
    /// `with_output`: an ended turn was watched, so what it printed last comes before its end.
    fn event(&mut self, recorded: &Recorded, with_output: bool) {
        match &recorded.event {
            Event::StorySelected { iteration, .. } => self.iteration = *iteration,
            Event::TurnEnded { .. } => {
                if with_output {
                    self.output();
                }
                self.turn = None;
            }
            _ => {}
        }
        self.reporter.report(Update::Event(recorded));
        if let Event::TurnStarted { place } = &recorded.event {
            self.turn = Some(LiveReader::new(self.run_dir, self.iteration, place.turn));
        }
    }

    fn output(&mut self) {
        for line in self.turn.iter_mut().flat_map(LiveReader::lines) {
            self.reporter.report(Update::Output { speaker: Speaker::Agent, stream: line.stream(), line: &line.line });
        }
    }
}
