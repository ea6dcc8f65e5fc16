//! A run in a log file or a pipe: the same lines as on a terminal, without moving the cursor.

use std::io::Write;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use verdone_core::journal::event::Event;
use verdone_core::journal::update::{Reporter, Speaker, Update};
use verdone_core::journal::view::RunView;

use crate::event_lines::{Line, lines};
use crate::sink::Sink;
use crate::style::{Mark, Style};
use crate::summary::summary;
use crate::width::clean;

/// How much to print.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Verbosity {
    #[default]
    Normal,
    /// Only problems and the summary.
    Quiet,
}

#[derive(Debug)]
pub struct Plain<W: Write> {
    sink: Sink<W>,
    style: Style,
    loudness: Verbosity,
    /// If set, each line starts with the local time.
    zone: Option<TimeZone>,
    view: RunView,
    now: Option<Timestamp>,
}

impl<W: Write> Plain<W> {
    pub fn new(out: W, style: Style, loudness: Verbosity) -> Self {
        Self { sink: Sink::new(out), style, loudness, zone: None, view: RunView::default(), now: None }
    }

    #[must_use]
    pub fn with_times(mut self, zone: TimeZone) -> Self {
        self.zone = Some(zone);
        self
    }

    pub fn view(&self) -> &RunView {
        &self.view
    }

    /// Whether the reader is gone. The run continues.
    pub fn broken(&self) -> bool {
        self.sink.broken()
    }

    fn say(&mut self, lines: Vec<Line>) {
        let mut out = String::new();
        for line in lines {
            match self.loudness {
                Verbosity::Normal => self.write(&mut out, &line),
                // Without headings, each problem names its story.
                Verbosity::Quiet if line.is_problem() => {
                    let story = self.view.current.as_ref().map(|current| clean(current.story.as_str()));
                    self.write(&mut out, &line.without_heading(story.as_deref()));
                }
                Verbosity::Quiet => {}
            }
        }
        self.sink.put(&out);
    }

    fn write(&self, out: &mut String, line: &Line) {
        if let (Some(zone), Some(now)) = (&self.zone, self.now) {
            out.push_str(&now.to_zoned(zone.clone()).strftime("%H:%M:%S ").to_string());
        }
        for row in line.rows(&self.style, None) {
            out.push_str(row.trim_end());
            out.push('\n');
        }
    }
}

impl<W: Write> Reporter for Plain<W> {
    fn report(&mut self, update: Update<'_>) {
        match update {
            Update::Event(recorded) => {
                self.view.apply(recorded);
                self.now = Some(recorded.at);
                self.say(lines(&self.view, &recorded.event, &self.style));
                if matches!(recorded.event, Event::RunStopped { .. }) {
                    let text = summary(&self.view, &self.style);
                    self.sink.put(&format!("\n{text}"));
                }
            }
            Update::Output { speaker: Speaker::Agent, line, stream: _ } if self.loudness == Verbosity::Normal => {
                self.say(vec![Line::quote(line)]);
            }
            Update::Output { speaker: Speaker::Script(name), line, stream: _ } if self.loudness == Verbosity::Normal => {
                self.say(vec![Line::script(name, line)]);
            }
            Update::Output { .. } | Update::Checking { .. } | Update::Continued | Update::Notification { .. } => {}
            Update::Tick { now, active_ms: _ } => self.now = Some(now),
            Update::Notice { text } => self.say(vec![Line::top(Mark::Warn, clean(text))]),
        }
    }
}
