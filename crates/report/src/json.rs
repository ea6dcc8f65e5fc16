//! A run for programs: one JSON object a line.

use std::fmt::{self, Write as _};
use std::io::Write;

use jiff::Timestamp;
use serde::Serialize;
use verdone_core::journal::update::{Reporter, Update};

use crate::sink::Sink;
use crate::stream::TransientLine;

pub struct Json<W: Write, C: FnMut() -> Timestamp = fn() -> Timestamp> {
    sink: Sink<W>,
    clock: C,
}

impl<W: Write> Json<W> {
    pub fn new(out: W) -> Self {
        Self { sink: Sink::new(out), clock: Timestamp::now }
    }
}

impl<W: Write, C: FnMut() -> Timestamp> Json<W, C> {
    pub fn with_clock(out: W, clock: C) -> Self {
        Self { sink: Sink::new(out), clock }
    }

    /// Whether the reader is gone. The run continues.
    pub fn broken(&self) -> bool {
        self.sink.broken()
    }

    fn line(&mut self, value: &impl Serialize) {
        if let Ok(json) = serde_json::to_string(value) {
            let mut out = escape_json(&json);
            out.push('\n');
            self.sink.put(&out);
        }
    }
}

impl<W: Write, C: FnMut() -> Timestamp> Reporter for Json<W, C> {
    fn report(&mut self, update: Update<'_>) {
        match update {
            Update::Event(recorded) => self.line(recorded),
            Update::Output { speaker, stream, line } => {
                let line = TransientLine::output((self.clock)(), speaker, stream, line);
                self.line(&line);
            }
            Update::Notice { text } => {
                let line = TransientLine::notice((self.clock)(), text);
                self.line(&line);
            }
            Update::Tick { .. } | Update::Checking { .. } | Update::Continued | Update::Notification { .. } => {}
        }
    }
}

impl<W: Write, C: FnMut() -> Timestamp> fmt::Debug for Json<W, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Json").field("broken", &self.sink.broken()).finish_non_exhaustive()
    }
}

/// Escapes C1 controls and direction marks, which JSON leaves unescaped: somebody may view it on a terminal. Such characters only occur
/// inside strings, where the escape means the same.
pub fn escape_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len() + 1);
    for c in json.chars() {
        if matches!(c, '\u{7f}'..='\u{9f}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}') {
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}
