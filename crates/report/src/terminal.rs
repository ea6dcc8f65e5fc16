//! A run on a terminal: lines that scroll, and a live line below them that is redrawn in place.
//!
//! The cursor is never hidden and rests at the start of the live line: after a resize, a terminal that reflows keeps it there,
//! so erasing from the cursor down always erases exactly what we drew.

use std::fmt;
use std::io::Write;

use jiff::Timestamp;
use verdone_core::journal::event::{Event, Recorded};
use verdone_core::journal::update::{Reporter, Speaker, Update};
use verdone_core::journal::view::RunView;

use crate::event_lines::{Line, lines};
use crate::live::{Heard, activity, live_line};
use crate::sink::Sink;
use crate::style::{Mark, Style};
use crate::summary::summary;
use crate::width::clean;

pub struct Terminal<W: Write, F: FnMut() -> usize> {
    sink: Sink<W>,
    style: Style,
    width: F,
    view: RunView,
    /// The active time of the run, as of the last tick.
    now: Option<u64>,
    /// The wall clock, for waits.
    wall: Option<Timestamp>,
    heard: Option<Heard>,
    /// The live line on the screen; empty when there is none.
    drawn: String,
}

impl<W: Write, F: FnMut() -> usize> Terminal<W, F> {
    /// `width` is called before every redraw, so a resize needs no signal.
    pub fn new(out: W, style: Style, width: F) -> Self {
        let (view, drawn) = (RunView::default(), String::new());
        Self { sink: Sink::new(out), style, width, view, now: None, wall: None, heard: None, drawn }
    }

    pub fn view(&self) -> &RunView {
        &self.view
    }

    /// Whether the terminal is gone. The run continues.
    pub fn broken(&self) -> bool {
        self.sink.broken()
    }

    /// Removes the live line from the screen.
    pub fn clear(&mut self) {
        if !self.drawn.is_empty() {
            self.drawn.clear();
            self.sink.put("\r\x1b[J");
        }
    }

    fn event(&mut self, recorded: &Recorded) {
        let phase = self.view.phase;
        self.view.apply(recorded);
        self.now = Some(self.view.active_ms());
        if self.view.phase != phase {
            self.heard = None;
        }
        let lines = lines(&self.view, &recorded.event, &self.style);
        self.draw(&lines);
        if matches!(recorded.event, Event::RunStopped { .. }) {
            self.clear();
            let text = summary(&self.view, &self.style);
            self.sink.put(&format!("\n{text}"));
        }
    }

    /// Agent output scrolls by. Check output is stored in files and quoted when a check fails.
    fn output(&mut self, speaker: Speaker<'_>, line: &str) {
        match speaker {
            Speaker::Agent => {
                let text = clean(line);
                let quote = Line::quote(line);
                if !text.is_empty() {
                    self.heard = Some(Heard::Agent { line: text });
                }
                self.draw(&[quote]);
            }
            Speaker::Script(name) => self.draw(&[Line::script(name, line)]),
            Speaker::Check(_) => {}
        }
    }

    /// Draws everything in one write: new lines replace the live line, which is redrawn below them.
    fn draw(&mut self, lines: &[Line]) {
        let width = (self.width)();
        let resized = width != self.style.width;
        self.style.width = width;
        let live = match self.now {
            Some(now) if self.view.ended.is_none() && self.view.started.is_some() => {
                live_line(&self.view, &activity(&self.view, self.heard.as_ref(), self.wall), now, &self.style)
            }
            Some(_) | None => String::new(),
        };
        if lines.is_empty() && live == self.drawn && !resized {
            return;
        }
        let mut out = String::new();
        if resized && !self.drawn.is_empty() {
            out.push_str("\r\x1b[J");
        }
        for row in lines.iter().flat_map(|line| line.rows(&self.style, Some(width))) {
            // Erase before writing: after a full row, some terminals would erase its last column.
            out.push_str("\r\x1b[K");
            out.push_str(&row);
            out.push('\n');
        }
        if !live.is_empty() || !self.drawn.is_empty() {
            out.push_str("\r\x1b[K");
            out.push_str(&live);
            out.push('\r');
        }
        self.drawn = live;
        self.sink.put(&out);
    }
}

impl<W: Write, F: FnMut() -> usize> Reporter for Terminal<W, F> {
    fn report(&mut self, update: Update<'_>) {
        match update {
            Update::Event(recorded) => self.event(recorded),
            Update::Output { speaker, line, stream: _ } => self.output(speaker, line),
            Update::Checking { name } => {
                self.heard = Some(Heard::Check { name: name.to_owned() });
                self.draw(&[]);
            }
            Update::Tick { now, active_ms } => {
                self.wall = Some(now);
                self.now = Some(active_ms.unwrap_or_else(|| self.view.active_ms_at(now)));
                self.draw(&[]);
            }
            Update::Continued => {
                self.drawn.clear();
                self.draw(&[]);
            }
            Update::Notification { .. } => {}
            Update::Notice { text } => self.draw(&[Line::top(Mark::Warn, clean(text))]),
        }
    }
}

impl<W: Write, F: FnMut() -> usize> Drop for Terminal<W, F> {
    fn drop(&mut self) {
        self.clear();
    }
}

impl<W: Write, F: FnMut() -> usize> fmt::Debug for Terminal<W, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terminal").field("style", &self.style).field("drawn", &self.drawn).finish_non_exhaustive()
    }
}
