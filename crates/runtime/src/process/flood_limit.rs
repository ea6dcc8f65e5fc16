//! Limits how much of a flood of output is shown live. Everything is still digested, and its beginning and end are kept. But no one reads
//! thousands of lines a second, and showing them would cost more than the run itself.

use std::collections::VecDeque;
use std::time::Duration;

use crate::process::output::Stream;

/// How many lines may come at once, and how many per second after that.
const BURST: i64 = 5000;
const RATE: i64 = 2000;
/// A line longer than this counts as several.
const LINE: usize = 200;
/// The last lines are always shown, because they say how it ended.
const LAST: usize = 20;

#[derive(Debug)]
pub(crate) struct FloodLimit {
    /// Negative after long lines: they use up future room.
    room: i64,
    filled: Duration,
    left_out: u64,
    last: VecDeque<(Stream, String)>,
}

impl FloodLimit {
    pub(crate) fn new() -> Self {
        Self { room: BURST, filled: Duration::ZERO, left_out: 0, last: VecDeque::new() }
    }

    /// Passes a line on if there is room.
    pub(crate) fn line(&mut self, stream: Stream, text: &str, on: &mut dyn FnMut(Stream, &str)) {
        if self.room > 0 {
            self.room -= cost(text);
            return on(stream, text);
        }
        self.left_out += 1;
        let oldest = if self.last.len() < LAST { None } else { self.last.pop_front() };
        let mut place = oldest.map_or_else(String::new, |(_, text)| text);
        place.clear();
        place.push_str(text);
        self.last.push_back((stream, place));
    }

    /// Adds room for the time that has passed, and reports how many lines were left out.
    /// Also shows the last lines here, because nothing may come after them.
    pub(crate) fn fill(&mut self, now: Duration, on: &mut dyn FnMut(Stream, &str)) {
        let millis = now.saturating_sub(self.filled).as_millis() as i64;
        self.filled = now;
        self.room = (self.room + millis * RATE / 1000).min(BURST);
        if self.left_out > 0 && self.room > 0 {
            self.room -= self.last.iter().map(|(_, text)| cost(text)).sum::<i64>();
            self.show_last(on);
        }
    }

    /// Shows the end, regardless of the room left.
    pub(crate) fn finish(&mut self, on: &mut dyn FnMut(Stream, &str)) {
        self.room = BURST;
        self.show_last(on);
    }

    fn show_last(&mut self, on: &mut dyn FnMut(Stream, &str)) {
        let before = self.left_out - self.last.len() as u64;
        if before > 0 {
            self.report_omitted(before, on);
        }
        self.left_out = 0;
        for (stream, text) in self.last.drain(..) {
            on(stream, &text);
        }
    }

    fn report_omitted(&self, lines: u64, on: &mut dyn FnMut(Stream, &str)) {
        let stream = self.last.back().map_or(Stream::Stdout, |(stream, _)| *stream);
        on(stream, &format!("[... {lines} lines not shown ...]"));
    }
}

fn cost(text: &str) -> i64 {
    1 + i64::try_from(text.len() / LINE).unwrap_or(BURST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_shown_at_its_beginning_and_its_end() {
        let (mut flow, mut seen) = (FloodLimit::new(), Vec::new());
        let mut on = |_: Stream, text: &str| seen.push(text.to_owned());
        for n in 0..8000 {
            flow.line(Stream::Stdout, &n.to_string(), &mut on);
        }
        flow.fill(Duration::from_millis(100), &mut on);
        for n in 8000..9000 {
            flow.line(Stream::Stderr, &n.to_string(), &mut on);
        }
        flow.finish(&mut on);
        flow.line(Stream::Stdout, "and then", &mut on);
        assert_eq!(seen.len(), 5000 + 1 + 200 + 1 + LAST + 1);
        assert_eq!(seen[4999..5002], ["4999", "[... 2980 lines not shown ...]", "7980"]);
        assert_eq!(seen[5020..5022], ["7999", "8000"]);
        assert_eq!(seen[5200..5203], ["8179", "[... 800 lines not shown ...]", "8980"]);
        assert_eq!(seen[5221..], ["8999", "and then"]);
    }

    #[test]
    fn the_end_is_shown_when_time_goes_by_after_it() {
        let (mut flow, mut seen) = (FloodLimit::new(), Vec::new());
        let mut on = |_: Stream, text: &str| seen.push(text.to_owned());
        for n in 0..8000 {
            flow.line(Stream::Stdout, &n.to_string(), &mut on);
        }
        flow.fill(Duration::from_millis(100), &mut on);
        flow.finish(&mut on);
        assert_eq!(seen.last().map(String::as_str), Some("7999"));
    }

    #[test]
    fn long_lines_are_paid_for() {
        let (mut flow, mut shown, line) = (FloodLimit::new(), 0, "x".repeat(16_000));
        for millis in 0..10_000 {
            flow.line(Stream::Stdout, &line, &mut |_, text| shown += text.len());
            flow.fill(Duration::from_millis(millis), &mut |_, text| shown += text.len());
        }
        let most = (BURST + 10 * RATE) as usize * LINE + LAST * line.len();
        assert!(shown < most, "{shown} bytes, and {most} are allowed");
    }

    #[test]
    fn what_is_no_flood_is_shown_whole() {
        let (mut flow, mut seen) = (FloodLimit::new(), 0);
        for second in 0..100 {
            for _ in 0..1500 {
                flow.line(Stream::Stdout, "x", &mut |_, _| seen += 1);
            }
            flow.fill(Duration::from_secs(second), &mut |_, _| seen += 1);
        }
        assert_eq!(seen, 150_000);
    }
}
