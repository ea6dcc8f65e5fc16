//! A writer whose errors never stop a run: after the first error it discards all output and remembers the failure.

use std::io::Write;

#[derive(Debug)]
pub(crate) struct Sink<W: Write> {
    out: W,
    broken: bool,
}

impl<W: Write> Sink<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out, broken: false }
    }

    /// Writes everything in one call, so that a terminal never draws half a line.
    pub(crate) fn put(&mut self, text: &str) {
        if self.broken || text.is_empty() {
            return;
        }
        self.broken = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()).is_err();
    }

    pub(crate) fn broken(&self) -> bool {
        self.broken
    }
}
