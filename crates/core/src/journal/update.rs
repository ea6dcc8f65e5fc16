//! Updates that a running loop sends to its surfaces.

use jiff::Timestamp;

use crate::journal::event::Recorded;

/// Which of a child's streams a line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// Whose output it is. Each is shown separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker<'a> {
    Agent,
    /// A check, by name.
    Check(&'a str),
    /// A lifecycle script, by name.
    Script(&'a str),
}

/// One update to show. Text is redacted but not yet sanitised for a terminal.
#[derive(Debug, Clone, Copy)]
pub enum Update<'a> {
    /// An event that is recorded in the journal.
    Event(&'a Recorded),
    /// One line of output, without its line end.
    Output { speaker: Speaker<'a>, stream: Stream, line: &'a str },
    /// A check starts.
    Checking { name: &'a str },
    /// Time passed while something was running. `active_ms` is set if the sender knows the run's active time.
    Tick { now: Timestamp, active_ms: Option<u64> },
    /// The run continues after being stopped by the terminal. What was drawn may be gone.
    Continued,
    /// Something that the terminal should notify its user of. Already redacted and without control characters.
    Notification { title: &'a str, text: &'a str },
    /// Something the user should read that is not part of the run's history.
    Notice { text: &'a str },
}

/// A surface that shows a run. It never decides anything.
pub trait Reporter {
    fn report(&mut self, update: Update<'_>);
}
