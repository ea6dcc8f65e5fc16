//! What a running loop tells its surfaces.

use jiff::Timestamp;

use crate::journal::event::Recorded;

/// Which of a child's streams a line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// Whose output it is: shown apart from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker<'a> {
    Agent,
    /// A check, by name.
    Check(&'a str),
    /// A lifecycle script, by name.
    Script(&'a str),
}

/// One thing to show. Text is redacted but not yet sanitised for a terminal.
#[derive(Debug, Clone, Copy)]
pub enum Update<'a> {
    /// Journalled, so it is a fact.
    Event(&'a Recorded),
    /// One line of output, without its line end.
    Output { speaker: Speaker<'a>, stream: Stream, line: &'a str },
    /// A check begins.
    Checking { name: &'a str },
    /// Time went by while something was running. Who drives the run knows its active time, too.
    Tick { now: Timestamp, active_ms: Option<u64> },
    /// The run was stopped by the terminal and goes on: what was drawn may be gone.
    Continued,
    /// Something the user should read that is not part of the run's history.
    Notice { text: &'a str },
}

/// A surface that shows a run. It never decides anything.
pub trait Reporter {
    fn report(&mut self, update: Update<'_>);
}
