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
    reporter: Box<dyn Reporter + 'a>,
    run_dir: &'a Path,
    turn: Option<WatchedTurn>,
    iteration: u32,
}

/// The output of a turn is read once, even if the turn is repeated after a wait: then its file continues.
struct WatchedTurn {
    iteration: u32,
    turn: u32,
    output: LiveReader,
}

impl Watch<'_> {
    /// `with_output`: an ended turn was watched, so what it printed last comes before its end.
    fn event(&mut self, recorded: &Recorded, with_output: bool) {
        if let Event::StorySelected { iteration, .. } = &recorded.event {
            self.iteration = *iteration;
        }
        if matches!(recorded.event, Event::TurnEnded { .. }) {
            self.end_turn(with_output);
        }
        self.reporter.report(Update::Event(recorded));
        if let Event::TurnStarted { place } = &recorded.event {
            self.start_turn(place.turn);
        }
    }

    fn start_turn(&mut self, turn: u32) {
        let iteration = self.iteration;
        if self.turn.as_ref().is_none_or(|watched| (watched.iteration, watched.turn) != (iteration, turn)) {
            let output = LiveReader::new(self.run_dir, iteration, turn);
            self.turn = Some(WatchedTurn { iteration, turn, output });
        }
    }

    fn end_turn(&mut self, with_output: bool) {
        if with_output {
            self.output();
        } else {
            self.turn = None;
        }
    }

    fn output(&mut self) {
        for line in self.turn.iter_mut().flat_map(|watched| watched.output.lines()) {
            self.reporter.report(Update::Output { speaker: Speaker::Agent, stream: line.stream(), line: &line.line });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use verdone_core::agent::{TurnOutcome, Usage};
    use verdone_core::base::id::StoryId;
    use verdone_core::journal::event::{Place, TurnTests};
    use verdone_core::journal::update::Stream;
    use verdone_runtime::store::live_output::LiveOutput;

    struct Lines<'a>(&'a RefCell<Vec<String>>);

    impl Reporter for Lines<'_> {
        fn report(&mut self, update: Update<'_>) {
            if let Update::Output { line, .. } = update {
                self.0.borrow_mut().push(line.to_owned());
            }
        }
    }

    fn recorded(event: Event) -> Recorded {
        Recorded { v: 1, seq: 1, at: Timestamp::UNIX_EPOCH, active_ms: None, event }
    }

    fn place(turn: u32) -> Place {
        Place { story: StoryId::from("A"), attempt: 1, turn }
    }

    fn started(turn: u32) -> Recorded {
        recorded(Event::TurnStarted { place: place(turn) })
    }

    fn ended(turn: u32) -> Recorded {
        recorded(Event::TurnEnded {
            place: place(turn),
            outcome: TurnOutcome::UsageLimit { reason: "later".to_owned(), resets_at: None },
            duration_ms: 1,
            usage: Usage::default(),
            prompt: None,
            output: None,
            leftovers: 0,
            tests: TurnTests::default(),
            session: None,
            exit_code: None,
            allowance: None,
            claim: None,
        })
    }

    #[test]
    fn a_repeated_turn_shows_only_its_new_output() {
        let (dir, shown) = (tempfile::tempdir().unwrap(), RefCell::default());
        let mut watch = Watch { reporter: Box::new(Lines(&shown)), run_dir: dir.path(), turn: None, iteration: 1 };
        for (turn, line) in [(1, "first"), (1, "again"), (2, "next")] {
            watch.event(&started(turn), true);
            LiveOutput::begin(dir.path(), 1, turn, 1_000).line(Stream::Stdout, line);
            watch.event(&ended(turn), true);
        }
        assert_eq!(*shown.borrow(), ["first", "again", "next"]);
    }

    #[test]
    fn a_watcher_that_comes_later_sees_the_whole_turn_once() {
        let (dir, shown) = (tempfile::tempdir().unwrap(), RefCell::default());
        let mut watch = Watch { reporter: Box::new(Lines(&shown)), run_dir: dir.path(), turn: None, iteration: 1 };
        let mut output = LiveOutput::begin(dir.path(), 1, 1, 1_000);
        for line in ["first", "again"] {
            output.line(Stream::Stdout, line);
        }
        for past in [started(1), ended(1), started(1)] {
            watch.event(&past, false);
        }
        watch.output();
        watch.event(&ended(1), true);
        assert_eq!(*shown.borrow(), ["first", "again"]);
    }
}
